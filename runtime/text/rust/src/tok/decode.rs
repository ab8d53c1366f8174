//! Streaming decode: bytes of tokens in, whole UTF-8 out.

use super::Tok;
use std::sync::Arc;

/// Invariant: the concatenated output after `finish` is the lossy UTF-8 decoding of the
/// concatenated bytes of all tokens pushed, whatever the cut between tokens.
pub struct Decoder {
    tok: Arc<Tok>,
    skip_special: bool,
    pending: Vec<u8>,
    out: String,
}

impl Decoder {
    pub fn new(tok: Arc<Tok>, skip_special: bool) -> Decoder {
        Decoder { tok, skip_special, pending: Vec::new(), out: String::new() }
    }

    pub fn push(&mut self, id: u32) -> &str {
        self.out.clear();
        let pieces = self.tok.pieces();
        if !(self.skip_special && pieces.is_special(id)) {
            self.pending.extend_from_slice(pieces.bytes(id));
            self.emit_whole();
        }
        &self.out
    }

    pub fn finish(&mut self) -> &str {
        self.out.clear();
        if !self.pending.is_empty() {
            self.out.push(char::REPLACEMENT_CHARACTER);
            self.pending.clear();
        }
        &self.out
    }

    /// Moves everything but an incomplete last character to `out`.
    fn emit_whole(&mut self) {
        let mut rest: &[u8] = &self.pending;
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.out.push_str(text);
                    rest = &[];
                    break;
                }
                Err(e) => {
                    let (whole, tail) = rest.split_at(e.valid_up_to());
                    self.out.push_str(&String::from_utf8_lossy(whole));
                    rest = tail;
                    match e.error_len() {
                        Some(bad) => {
                            self.out.push(char::REPLACEMENT_CHARACTER);
                            rest = &rest[bad..];
                        }
                        None => break,
                    }
                }
            }
        }
        let kept = rest.len();
        self.pending.drain(..self.pending.len() - kept);
    }
}
