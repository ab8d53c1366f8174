//! The pre-tokenizers that a GGUF may name in tokenizer.ggml.pre, each as one row.
//!
//! The patterns are those of the models' own tokenizer.json files. A pattern list is applied in
//! order; each splits what the ones before left whole.

use crate::boundary::{Fault, Outcome};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::normalizer::SplitDelimiterBehavior;
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper};

pub struct Row {
    pub name: &'static str,
    splits: &'static [Splitter],
    /// GPT-2's own pattern is applied last.
    gpt2: bool,
    pub nfc: bool,
    /// A whole word that is in the vocabulary is taken as it is.
    pub ignore_merges: bool,
}

enum Splitter {
    EachDigit,
    Pattern(&'static str),
}

use Splitter::{EachDigit, Pattern};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3_WORDS: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

const fn row(name: &'static str, splits: &'static [Splitter], gpt2: bool) -> Row {
    Row { name, splits, gpt2, nfc: false, ignore_merges: false }
}

const fn qwen(name: &'static str, splits: &'static [Splitter]) -> Row {
    Row { name, splits, gpt2: false, nfc: true, ignore_merges: false }
}

const fn whole_words(name: &'static str, splits: &'static [Splitter]) -> Row {
    Row { name, splits, gpt2: false, nfc: false, ignore_merges: true }
}

const ROWS: &[Row] = &[
    row(
        "default",
        &[
            Pattern(r"[\p{P}\$\+<=>\^~\|]+"),
            Pattern(GPT2),
            Pattern(r"\p{N}+"),
            Pattern("[0-9][0-9][0-9]"),
        ],
        false,
    ),
    row("gpt-2", &[], true),
    row("phi-2", &[], true),
    row("olmo", &[], true),
    row("mpt", &[], true),
    row("exaone4", &[], true),
    row("granite-docling", &[], true),
    row("smollm", &[EachDigit], true),
    row("starcoder", &[EachDigit], true),
    row("refact", &[EachDigit], true),
    row("command-r", &[EachDigit], true),
    row("codeshell", &[EachDigit], true),
    whole_words("llama-bpe", &[Pattern(LLAMA3)]),
    whole_words("llama3", &[Pattern(LLAMA3)]),
    whole_words("llama-v3", &[Pattern(LLAMA3)]),
    whole_words("falcon3", &[Pattern(LLAMA3)]),
    row("dbrx", &[Pattern(LLAMA3)], false),
    row("smaug-bpe", &[Pattern(LLAMA3)], false),
    row("chatglm-bpe", &[Pattern(LLAMA3)], false),
    row("glm4", &[Pattern(LLAMA3)], false),
    qwen("qwen2", &[Pattern(QWEN2)]),
    qwen("deepseek-r1-qwen", &[Pattern(QWEN2)]),
    qwen("qwen35", &[Pattern(QWEN35)]),
    row("stablelm2", &[Pattern(QWEN2)], false),
    whole_words("tekken", &[Pattern(TEKKEN)]),
    row("gpt-4o", &[Pattern(GPT4O)], false),
    row("llama4", &[Pattern(GPT4O)], false),
    row(
        "deepseek-v3",
        &[Pattern(r"\p{N}{1,3}"), Pattern("[一-龥぀-ゟ゠-ヿ]+"), Pattern(DEEPSEEK3_WORDS)],
        false,
    ),
];

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

pub fn find(name: &str) -> Outcome<&'static Row> {
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        Fault::input("tokenizer.ggml.pre", format!("{name:?} is not a known pre-tokenizer"))
            .allowed(format!("supported are {}", names.join(", ")))
            .next("use a folder with tokenizer.json, which states its pre-tokenizer itself")
    })
}

impl Row {
    pub fn normalizer(&self) -> Option<NormalizerWrapper> {
        self.nfc.then(|| NFC.into())
    }

    pub fn pre_tokenizer(&self) -> Outcome<PreTokenizerWrapper> {
        let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
        for splitter in self.splits {
            steps.push(match splitter {
                EachDigit => Digits::new(true).into(),
                Pattern(pattern) => Split::new(
                    SplitPattern::Regex((*pattern).to_string()),
                    SplitDelimiterBehavior::Isolated,
                    false,
                )
                .map_err(|e| Fault::input("tokenizer.ggml.pre", format!("{}: {e}", self.name)))?
                .into(),
            });
        }
        steps.push(ByteLevel::new(false, true, self.gpt2).into());
        Ok(Sequence::new(steps).into())
    }
}
