//! Merge rules of a SentencePiece vocabulary, which states only scores.
//!
//! A rule for every way to cut a token into two tokens; better scores first. Rules for one token
//! are ordered by the scores of their halves, as transformers orders them.

use ahash::AHashMap;

pub fn merges_from_scores(
    tokens: &[&str],
    scores: &[f64],
    ids: &AHashMap<String, u32>,
) -> Vec<(String, String)> {
    let mut rules: Vec<(f64, u32, u32)> = Vec::new();
    for (id, token) in tokens.iter().enumerate() {
        let begin = rules.len();
        for (cut, _) in token.char_indices().skip(1) {
            if let (Some(&left), Some(&right)) = (ids.get(&token[..cut]), ids.get(&token[cut..])) {
                rules.push((scores[id], left, right));
            }
        }
        let score = |id: u32| scores[id as usize];
        rules[begin..].sort_by(|a, b| {
            score(b.1).total_cmp(&score(a.1)).then(score(b.2).total_cmp(&score(a.2)))
        });
    }
    rules.sort_by(|a, b| b.0.total_cmp(&a.0));
    rules
        .into_iter()
        .map(|(_, left, right)| {
            (tokens[left as usize].to_string(), tokens[right as usize].to_string())
        })
        .collect()
}
