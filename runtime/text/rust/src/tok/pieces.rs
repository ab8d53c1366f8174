//! The vocabulary as raw bytes: one packed array, shared by decoding, logprobs and grammars.

use std::collections::HashMap;

/// How a token's inner spelling becomes bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spelling {
    /// GPT-2's alphabet: one printable character stands for each byte.
    ByteLevel,
    /// SentencePiece: U+2581 is a space; <0xNN> is one byte when `bytes` is set.
    Metaspace {
        bytes: bool,
    },
    Plain,
}

#[derive(Default)]
pub struct Pieces {
    data: Vec<u8>,
    ends: Vec<usize>,
    special: Vec<bool>,
}

impl Pieces {
    pub fn with_capacity(tokens: usize) -> Pieces {
        Pieces {
            data: Vec::with_capacity(tokens * 8),
            ends: Vec::with_capacity(tokens),
            special: Vec::with_capacity(tokens),
        }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Empty for an id outside the vocabulary: models pad their logits beyond it.
    pub fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        if id >= self.ends.len() {
            return &[];
        }
        let begin = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.data[begin..self.ends[id]]
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }

    pub fn push(&mut self, bytes: &[u8], special: bool) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len());
        self.special.push(special);
    }
}

/// Undoes one spelling; holds the table that it needs.
pub struct Speller {
    spelling: Spelling,
    alphabet: HashMap<char, u8>,
    scratch: Vec<u8>,
}

impl Speller {
    pub fn new(spelling: Spelling) -> Speller {
        let alphabet = match spelling {
            Spelling::ByteLevel => byte_level_alphabet(),
            _ => HashMap::new(),
        };
        Speller { spelling, alphabet, scratch: Vec::new() }
    }

    /// The bytes that `piece` stands for. A byte-level piece with a character outside the alphabet
    /// is an added token and stands for itself.
    pub fn bytes(&mut self, piece: &str) -> &[u8] {
        self.scratch.clear();
        match self.spelling {
            Spelling::Plain => self.scratch.extend_from_slice(piece.as_bytes()),
            Spelling::ByteLevel => {
                for c in piece.chars() {
                    match self.alphabet.get(&c) {
                        Some(&byte) => self.scratch.push(byte),
                        None => {
                            self.scratch.clear();
                            self.scratch.extend_from_slice(piece.as_bytes());
                            break;
                        }
                    }
                }
            }
            Spelling::Metaspace { bytes } => match byte_token(piece) {
                Some(byte) if bytes => self.scratch.push(byte),
                _ => self.scratch.extend_from_slice(piece.replace('\u{2581}', " ").as_bytes()),
            },
        }
        &self.scratch
    }
}

/// The byte of a piece spelled <0xNN>.
pub fn byte_token(piece: &str) -> Option<u8> {
    let hex = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        u8::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}

/// GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the other bytes, in order, for
/// the characters from U+0100 on.
fn byte_level_alphabet() -> HashMap<char, u8> {
    let printable = |b: u8| (b'!'..=b'~').contains(&b) || (0xA1..=0xAC).contains(&b) || b >= 0xAE;
    let mut next = 0x100u32;
    let mut alphabet = HashMap::with_capacity(256);
    for byte in 0..=255u8 {
        let c = if printable(byte) {
            byte as char
        } else {
            next += 1;
            char::from_u32(next - 1).unwrap_or('\u{FFFD}')
        };
        alphabet.insert(c, byte);
    }
    alphabet
}
