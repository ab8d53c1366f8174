//! A tokenizer as the grammar engine sees it.

use crate::boundary::{Fault, Outcome};
use crate::tok::Tok;
use std::sync::Arc;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

struct Env {
    tok: Arc<Tok>,
    trie: TokTrie,
}

pub fn make(tok: Arc<Tok>, eos: u32) -> Outcome<TokEnv> {
    let pieces = tok.pieces();
    if eos as usize >= pieces.len() {
        return Err(Fault::input("grammar", format!("end of sequence {eos} is not a token"))
            .allowed(format!("0 to {}", pieces.len() - 1)));
    }
    let words: Vec<Vec<u8>> = (0..pieces.len() as u32)
        .map(|id| {
            let mut word = Vec::new();
            // Special tokens are told apart from text that merely looks like them.
            if pieces.is_special(id) {
                word.push(TokTrie::SPECIAL_TOKEN_MARKER);
            }
            word.extend_from_slice(pieces.bytes(id));
            word
        })
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, eos), &words);
    Ok(Arc::new(Env { tok, trie }))
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tok.encode(text, false).unwrap_or_default()
        })
    }
}
