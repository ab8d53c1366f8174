//! Tokenizers: strings to ids and back.

mod api;
mod check;
mod components;
mod decode;
mod gguf;
mod json;
mod pieces;
mod pre;
mod spm;

pub use decode::Decoder;
pub use pieces::Pieces;

use crate::boundary::{Fault, Outcome, Status};
use tokenizers::Tokenizer;

/// Words remembered per thread and tokenizer. The library keeps this cache in thread-local storage
/// until the thread ends, so it is held small: about 100 KB for each serving thread.
const CACHED_WORDS: usize = 1024;

pub struct Tok {
    engine: Tokenizer,
    pieces: Pieces,
    /// Put around a text by `encode` when specials are asked for; None where the tokenizer's own
    /// post-processor does it.
    bos: Option<u32>,
    eos: Option<u32>,
    /// Encode put a space in front, so a whole text is decoded without it.
    leading_space: bool,
}

impl Tok {
    fn with(engine: Tokenizer, pieces: Pieces) -> Tok {
        Tok { engine, pieces, bos: None, eos: None, leading_space: false }
    }

    pub fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    pub fn encode(&self, text: &str, add_special: bool) -> Outcome<Vec<u32>> {
        let encoding = self
            .engine
            .encode_fast(text, add_special)
            .map_err(|e| Fault::new(Status::Failed, "text", format!("cannot be tokenized: {e}")))?;
        let ids = encoding.get_ids();
        if !add_special || (self.bos.is_none() && self.eos.is_none()) {
            return Ok(ids.to_vec());
        }
        Ok(self.bos.iter().chain(ids).chain(self.eos.iter()).copied().collect())
    }

    /// Text of a whole sequence. Invalid UTF-8 becomes U+FFFD, one for each maximal cut character.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            if !(skip_special && self.pieces.is_special(id)) {
                bytes.extend_from_slice(self.pieces.bytes(id));
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match text.strip_prefix(' ') {
            Some(rest) if self.leading_space => rest.to_string(),
            _ => text.into_owned(),
        }
    }

    pub fn token_id(&self, piece: &str) -> Option<u32> {
        self.engine.token_to_id(piece)
    }
}
