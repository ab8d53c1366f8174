//! Grammars: which tokens may come next.

mod api;
mod env;

use crate::boundary::{Fault, Outcome, Status};
use crate::tok::Tok;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use std::sync::{Arc, Mutex};

const MAX_GRAMMAR_BYTES: usize = 64 << 10;

/// One for a model; compiles grammars for any thread.
pub struct Factory {
    inner: ParserFactory,
}

/// One for a request. The lock only makes sharing harmless; a grammar has one owner.
pub struct Grammar {
    matcher: Mutex<Matcher>,
    words: usize,
}

impl Factory {
    pub fn new(tok: Arc<Tok>, eos: u32) -> Outcome<Factory> {
        let env = env::make(tok, eos)?;
        let mut inner = ParserFactory::new_simple(&env)
            .map_err(|e| Fault::new(Status::Failed, "grammar", e.to_string()))?;
        inner.quiet();
        let limits = inner.limits_mut();
        limits.max_lexer_states = 50_000;
        limits.verbose_errors = false;
        Ok(Factory { inner })
    }

    pub fn compile(&self, kind: &str, text: &str) -> Outcome<Grammar> {
        if text.len() > MAX_GRAMMAR_BYTES {
            return Err(Fault::input(kind, format!("{} bytes", text.len()))
                .allowed(format!("at most {MAX_GRAMMAR_BYTES} bytes")));
        }
        let grammar = match kind {
            "json_schema" => TopLevelGrammar::from_json_schema(
                serde_json::from_str(text).map_err(|e| Fault::input(kind, e.to_string()))?,
            ),
            "regex" => TopLevelGrammar::from_regex(text),
            "lark" => TopLevelGrammar::from_lark(text.to_string()),
            _ => {
                return Err(Fault::input("grammar", format!("kind {kind:?} is not known"))
                    .allowed("json_schema, regex or lark"))
            }
        };
        let parser =
            self.inner.create_parser(grammar).map_err(|e| Fault::input(kind, e.to_string()))?;
        let words = self.inner.tok_env().tok_trie().vocab_size().div_ceil(32);
        Ok(Grammar { matcher: Mutex::new(Matcher::new(Ok(parser))), words })
    }
}

impl Grammar {
    fn with<T>(&self, act: impl FnOnce(&mut Matcher) -> anyhow::Result<T>) -> Outcome<T> {
        let mut matcher = self.matcher.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        act(&mut matcher).map_err(|e| Fault::new(Status::Failed, "grammar", e.to_string()))
    }

    /// Bit i of the mask, counted from the lowest bit of word 0, is set when token i may come next.
    /// Words past the vocabulary are cleared. A stopped grammar allows the end of sequence only.
    pub fn mask(&self, out: &mut [u32]) -> Outcome<()> {
        if out.len() < self.words {
            return Err(Fault::input("mask", format!("{} words", out.len()))
                .allowed(format!("at least {}", self.words)));
        }
        let mask = self.with(Matcher::compute_mask_or_eos)?;
        let words = &mask.as_slice()[..self.words];
        out[..words.len()].copy_from_slice(words);
        out[words.len()..].fill(0);
        Ok(())
    }

    pub fn accept(&self, id: u32) -> Outcome<()> {
        self.with(|matcher| matcher.consume_token(id))
    }

    pub fn rollback(&self, tokens: usize) -> Outcome<()> {
        self.with(|matcher| matcher.rollback(tokens))
    }

    pub fn forced(&self) -> Outcome<Vec<u32>> {
        self.with(|matcher| Ok(matcher.compute_ff_tokens()))
    }

    pub fn is_stopped(&self) -> bool {
        self.with(|matcher| Ok(matcher.is_stopped())).unwrap_or(true)
    }
}
