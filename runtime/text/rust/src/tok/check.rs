//! Mistakes in a vocabulary that would otherwise be taken in silence.

use crate::boundary::{Fault, Outcome};
use std::collections::HashMap;

/// Merge rules already seen, by their two halves.
pub struct MergeRules<'a> {
    seen: HashMap<(&'a str, &'a str), usize, ahash::RandomState>,
    whole: String,
}

impl<'a> MergeRules<'a> {
    pub fn with_capacity(rules: usize) -> MergeRules<'a> {
        MergeRules {
            seen: HashMap::with_capacity_and_hasher(rules, ahash::RandomState::new()),
            whole: String::new(),
        }
    }

    /// `place` names rule `index`, and is asked only when the rule is refused.
    pub fn add(
        &mut self,
        index: usize,
        halves: (&'a str, &'a str),
        place: impl Fn() -> String,
        known: impl Fn(&str) -> bool,
    ) -> Outcome<()> {
        let (left, right) = halves;
        if let Some(first) = self.seen.insert(halves, index) {
            return Err(Fault::input(
                place(),
                format!("{:?} repeats the rule of index {first}", format!("{left} {right}")),
            )
            .allowed("each merge rule once")
            .next("restore the file from its source"));
        }
        self.whole.clear();
        self.whole.push_str(left);
        self.whole.push_str(right);
        for piece in [left, right, &self.whole] {
            if !known(piece) {
                return Err(Fault::input(place(), format!("{piece:?} is not in the vocabulary"))
                    .allowed("rules whose halves and result are tokens"));
            }
        }
        Ok(())
    }
}

pub fn hole(place: &str, index: usize) -> Fault {
    Fault::input(place, format!("id {index} has no token"))
        .allowed("a vocabulary without holes")
        .next("restore the file from its source")
}

pub fn duplicate(place: &str, piece: &str, first: u32, second: usize) -> Fault {
    Fault::input(place, format!("token {piece:?} stands at id {first} and again at id {second}"))
        .allowed("each token once")
}
