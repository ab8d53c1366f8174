//! A tokenizer from a Hugging Face tokenizer.json.
//!
//! The tokenizer library reads the file; what it would take in silence is read here a second time:
//! repeated names and rules, holes, and component types that it cannot name in its messages.

use super::check::{duplicate, hole, MergeRules};
use super::pieces::{Speller, Spelling};
use super::{Pieces, Tok, CACHED_WORDS};
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
    check_components(&file)?;
    let tokens = check_vocabulary(&file)?;
    check_merges(text, &file)?;
    let spelling = spelling_of(&file)?;

    let mut engine =
        Tokenizer::from_bytes(text).map_err(|e| Fault::input(FILE, e.to_string()))?;
    // Cutting and padding belong to the server, not to the file.
    engine.with_truncation(None).map_err(|e| Fault::input(FILE, e.to_string()))?;
    engine.with_padding(None);
    shrink_cache(&mut engine);

    let mut tok = Tok::with(engine, pieces(&file, &tokens, spelling));
    tok.leading_space = file.decoder.as_ref().is_some_and(strips_leading_space);
    Ok(tok)
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

const NORMALIZERS: &[&str] = &[
    "BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Sequence",
    "Lowercase", "Nmt", "Precompiled", "Replace", "Prepend", "ByteLevel",
];
const PRE_TOKENIZERS: &[&str] = &[
    "BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Whitespace", "Sequence",
    "Split", "Punctuation", "WhitespaceSplit", "Digits", "UnicodeScripts", "FixedLength",
];
const POST_PROCESSORS: &[&str] =
    &["RobertaProcessing", "BertProcessing", "ByteLevel", "TemplateProcessing", "Sequence"];
const DECODERS: &[&str] = &["ByteLevel", "Metaspace", "ByteFallback", "Fuse", "Strip", "Replace", "Sequence"];

fn check_components(file: &File) -> Outcome<()> {
    for (name, value, known) in [
        ("normalizer", &file.normalizer, NORMALIZERS),
        ("pre_tokenizer", &file.pre_tokenizer, PRE_TOKENIZERS),
        ("post_processor", &file.post_processor, POST_PROCESSORS),
        ("decoder", &file.decoder, DECODERS),
    ] {
        if let Some(value) = value {
            check_component(name, value, known)?;
        }
    }
    Ok(())
}

fn check_component(name: &str, value: &Value, known: &[&str]) -> Outcome<()> {
    let kind = type_of(value);
    if !known.contains(&kind) {
        return Err(Fault::input(
            format!("{FILE} {name}"),
            format!("type {kind:?} is not supported"),
        )
        .allowed(format!("supported are {}", known.join(", "))));
    }
    steps(value).iter().try_for_each(|step| check_component(name, step, known))
}

fn type_of(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or("")
}

/// The steps of a Sequence, under whichever name the component kind uses.
fn steps(value: &Value) -> &[Value] {
    ["normalizers", "pretokenizers", "processors", "decoders"]
        .iter()
        .find_map(|key| value.get(key))
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn any_step(value: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    test(value) || steps(value).iter().any(|step| any_step(step, test))
}

fn spelling_of(file: &File) -> Outcome<Spelling> {
    let Some(decoder) = &file.decoder else {
        return Ok(Spelling::Plain);
    };
    let has = |kind: &str| any_step(decoder, &|step| type_of(step) == kind);
    if has("ByteLevel") {
        return Ok(Spelling::ByteLevel);
    }
    let spaces = any_step(decoder, &|step| {
        type_of(step) == "Replace"
            && step["pattern"]["String"] == "\u{2581}"
            && step["content"] == " "
    });
    if any_step(decoder, &|step| type_of(step) == "Replace") && !spaces {
        return Err(Fault::input("tokenizer.json decoder", "Replace of an unusual pattern")
            .allowed("Replace of \u{2581} by a space"));
    }
    if spaces || has("Metaspace") {
        return Ok(Spelling::Metaspace { bytes: has("ByteFallback") });
    }
    Ok(Spelling::Plain)
}

fn strips_leading_space(decoder: &Value) -> bool {
    any_step(decoder, &|step| match type_of(step) {
        "Strip" => step["start"].as_u64().unwrap_or(0) > 0,
        "Metaspace" => {
            step["prepend_scheme"] != "never" && step["add_prefix_space"] != Value::Bool(false)
        }
        _ => false,
    })
}

fn pieces(file: &File, tokens: &[&str], spelling: Spelling) -> Pieces {
    let added: AHashMap<u32, bool> =
        file.added_tokens.iter().map(|a| (a.id, a.special)).collect();
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
