//! A tokenizer from a Hugging Face tokenizer.json.
//!
//! The tokenizer library reads the file; what it would take in silence is read here a second time:
//! repeated names and rules, holes, and component types that it cannot name in its messages.

use super::check::{duplicate, hole, MergeRules};
use super::pieces::{Speller, Spelling};
use super::{components, Pieces, Tok, CACHED_WORDS};
use crate::boundary::{Fault, Outcome};
use ahash::{AHashMap, AHashSet};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::Value;
use std::borrow::Cow;
use tokenizers::{ModelWrapper, Tokenizer};

const MAX_BYTES: usize = 64 << 20;
const FILE: &str = "tokenizer.json";

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Model<'a>,
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Option<Value>,
    #[serde(default)]
    pre_tokenizer: Option<Value>,
    #[serde(default)]
    post_processor: Option<Value>,
    #[serde(default)]
    decoder: Option<Value>,
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(default, borrow)]
    vocab: Option<Vocab<'a>>,
    #[serde(default, borrow)]
    merges: Vec<&'a RawValue>,
}

/// Names to ids in file order; a Unigram's list is left to the library.
#[derive(Default)]
struct Vocab<'a>(Vec<(Cow<'a, str>, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vocab<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object of token ids or a list of scored tokens")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((Name(name), id)) = map.next_entry()? {
                    entries.push((name, id));
                }
                Ok(Vocab(entries))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Vocab<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(Scored(name)) = seq.next_element()? {
                    let id = u32::try_from(entries.len()).map_err(A::Error::custom)?;
                    entries.push((name, id));
                }
                Ok(Vocab(entries))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Scored<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Scored<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (Name(name), _): (Name<'de>, IgnoredAny) = Deserialize::deserialize(deserializer)?;
        Ok(Scored(name))
    }
}

pub fn build(text: &str) -> Outcome<Tok> {
    if text.len() > MAX_BYTES {
        return Err(Fault::input(FILE, format!("{} bytes", text.len()))
            .allowed(format!("at most {MAX_BYTES} bytes")));
    }
    let file: File = serde_json::from_str(text).map_err(|e| Fault::input(FILE, e.to_string()))?;
    for (part, value) in [
        ("normalizer", &file.normalizer),
        ("pre_tokenizer", &file.pre_tokenizer),
        ("post_processor", &file.post_processor),
        ("decoder", &file.decoder),
    ] {
        value.iter().try_for_each(|value| components::check(part, value))?;
    }
    let tokens = check_vocabulary(&file)?;
    check_merges(text, &file)?;
    let spelling = components::spelling(file.decoder.as_ref())?;

    let mut engine = Tokenizer::from_bytes(text).map_err(|e| Fault::input(FILE, e.to_string()))?;
    // Cutting and padding belong to the server, not to the file.
    engine.with_truncation(None).map_err(|e| Fault::input(FILE, e.to_string()))?;
    engine.with_padding(None);
    shrink_cache(&mut engine);

    let mut tok = Tok::with(engine, pieces(&file, &tokens, spelling));
    tok.leading_space = file.decoder.as_ref().is_some_and(components::strips_leading_space);
    check_encoding(&tok)?;
    Ok(tok)
}

/// Ids that a post-processor adds are stated apart from the vocabulary.
fn check_encoding(tok: &Tok) -> Outcome<()> {
    let ids = tok.encode("a", true)?;
    match ids.iter().find(|&&id| id as usize >= tok.pieces().len()) {
        Some(id) => Err(Fault::input(
            "tokenizer.json post_processor",
            format!("adds id {id}, which has no token"),
        )
        .allowed(format!("0 to {}", tok.pieces().len() - 1))),
        None => Ok(()),
    }
}

fn shrink_cache(engine: &mut Tokenizer) {
    if let ModelWrapper::BPE(bpe) = engine.get_model() {
        let mut bpe = bpe.clone();
        bpe.resize_cache(CACHED_WORDS);
        engine.with_model(bpe);
    }
}

/// The token of each id; refuses doubled names, ids that collide, and holes.
fn check_vocabulary<'f>(file: &'f File) -> Outcome<Vec<&'f str>> {
    const PLACE: &str = "tokenizer.json model.vocab";
    let entries: &[(Cow<str>, u32)] = file.model.vocab.as_ref().map_or(&[], |v| &v.0);
    let limit = entries.len() + file.added_tokens.len();
    let mut tokens: Vec<Option<&str>> = Vec::new();
    let mut names: AHashMap<&str, u32> = AHashMap::with_capacity(limit);
    let added = file.added_tokens.iter().map(|a| (a.content.as_str(), a.id, true));
    for (name, id, is_added) in entries.iter().map(|(n, id)| (n.as_ref(), *id, false)).chain(added)
    {
        if let Some(first) = names.insert(name, id) {
            if is_added && first == id {
                continue;
            }
            return Err(duplicate(PLACE, name, first, id as usize));
        }
        let at = id as usize;
        if at >= limit {
            // Fewer tokens than ids: the lowest free id is the hole.
            return Err(hole(PLACE, lowest_free(file, limit)));
        }
        if tokens.len() <= at {
            tokens.resize(at + 1, None);
        }
        if let Some(other) = tokens[at].replace(name) {
            return Err(Fault::input(PLACE, format!("{other:?} and {name:?} share id {id}"))
                .allowed("one token for each id"));
        }
    }
    if tokens.is_empty() {
        return Err(Fault::input(PLACE, "holds no token"));
    }
    tokens.iter().enumerate().map(|(id, token)| token.ok_or_else(|| hole(PLACE, id))).collect()
}

fn lowest_free(file: &File, limit: usize) -> usize {
    let entries = file.model.vocab.iter().flat_map(|v| v.0.iter().map(|e| e.1));
    let used: AHashSet<u32> = entries.chain(file.added_tokens.iter().map(|a| a.id)).collect();
    (0..limit).find(|&id| !used.contains(&(id as u32))).unwrap_or(limit)
}

fn check_merges(text: &str, file: &File) -> Outcome<()> {
    let entries: &[(Cow<str>, u32)] = file.model.vocab.as_ref().map_or(&[], |v| &v.0);
    let names: AHashSet<&str> = entries.iter().map(|(name, _)| name.as_ref()).collect();
    let parsed: Vec<(Cow<str>, Cow<str>)> = file
        .model
        .merges
        .iter()
        .enumerate()
        .map(|(index, raw)| read_merge(raw.get()).ok_or((index, *raw)))
        .collect::<Result<_, _>>()
        .map_err(|(index, raw)| {
            Fault::input(merge_place(text, index, raw), format!("{} is no merge rule", raw.get()))
                .allowed("\"left right\" or [\"left\", \"right\"]")
        })?;
    let mut rules = MergeRules::with_capacity(parsed.len());
    for (index, (left, right)) in parsed.iter().enumerate() {
        let place = || merge_place(text, index, file.model.merges[index]);
        rules.add(index, (left, right), place, |piece| names.contains(piece))?;
    }
    Ok(())
}

fn read_merge(raw: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    if raw.starts_with('[') {
        let (Name(left), Name(right)) = serde_json::from_str(raw).ok()?;
        return Some((left, right));
    }
    let Name(line) = serde_json::from_str(raw).ok()?;
    let (left, right) = line.split_once(' ')?;
    (!right.contains(' ')).then(|| (left.to_string().into(), right.to_string().into()))
}

fn merge_place(text: &str, index: usize, raw: &RawValue) -> String {
    let offset = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let line = 1 + text.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count();
    format!("{FILE}:{line} model.merges[{index}]")
}

fn pieces(file: &File, tokens: &[&str], spelling: Spelling) -> Pieces {
    let added: AHashMap<u32, bool> = file.added_tokens.iter().map(|a| (a.id, a.special)).collect();
    let mut speller = Speller::new(spelling);
    let mut pieces = Pieces::with_capacity(tokens.len());
    for (id, token) in tokens.iter().enumerate() {
        match added.get(&(id as u32)) {
            Some(&special) if spelling == Spelling::ByteLevel => {
                pieces.push(token.as_bytes(), special)
            }
            special => pieces.push(speller.bytes(token), special.copied().unwrap_or(false)),
        }
    }
    pieces
}
