//! The components that a tokenizer.json names: which are supported, and what the decoder says about
//! the spelling of pieces.

use super::pieces::Spelling;
use crate::boundary::{Fault, Outcome};
use serde_json::Value;

const NORMALIZERS: &[&str] = &[
    "BertNormalizer",
    "Strip",
    "StripAccents",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Sequence",
    "Lowercase",
    "Nmt",
    "Precompiled",
    "Replace",
    "Prepend",
    "ByteLevel",
];
const PRE_TOKENIZERS: &[&str] = &[
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Metaspace",
    "Whitespace",
    "Sequence",
    "Split",
    "Punctuation",
    "WhitespaceSplit",
    "Digits",
    "UnicodeScripts",
    "FixedLength",
];
const POST_PROCESSORS: &[&str] =
    &["RobertaProcessing", "BertProcessing", "ByteLevel", "TemplateProcessing", "Sequence"];
const DECODERS: &[&str] =
    &["ByteLevel", "Metaspace", "ByteFallback", "Fuse", "Strip", "Replace", "Sequence"];

/// `part` is the key of tokenizer.json that `value` stands under.
pub fn check(part: &str, value: &Value) -> Outcome<()> {
    let known = match part {
        "normalizer" => NORMALIZERS,
        "pre_tokenizer" => PRE_TOKENIZERS,
        "post_processor" => POST_PROCESSORS,
        _ => DECODERS,
    };
    check_known(part, value, known)
}

fn check_known(part: &str, value: &Value, known: &[&str]) -> Outcome<()> {
    let kind = type_of(value);
    if !known.contains(&kind) {
        return Err(Fault::input(
            format!("tokenizer.json {part}"),
            format!("type {kind:?} is not supported"),
        )
        .allowed(format!("supported are {}", known.join(", "))));
    }
    steps(value).iter().try_for_each(|step| check_known(part, step, known))
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

/// How the pieces are spelled, told from the decoder that undoes it.
pub fn spelling(decoder: Option<&Value>) -> Outcome<Spelling> {
    let Some(decoder) = decoder else {
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

/// A whole text is decoded without the space that encoding put in front.
pub fn strips_leading_space(decoder: &Value) -> bool {
    any_step(decoder, &|step| match type_of(step) {
        "Strip" => step["start"].as_u64().unwrap_or(0) > 0,
        "Metaspace" => {
            step["prepend_scheme"] != "never" && step["add_prefix_space"] != Value::Bool(false)
        }
        _ => false,
    })
}
