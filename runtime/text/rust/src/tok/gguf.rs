//! A tokenizer from the arrays of a GGUF.

use super::check::{duplicate, hole, MergeRules};
use super::pieces::{Speller, Spelling};
use super::{pre, spm, Pieces, Tok, CACHED_WORDS};
use crate::boundary::{Fault, Outcome};
use ahash::AHashMap;
use tokenizers::models::bpe::{BpeBuilder, BPE};
use tokenizers::normalizers::prepend::Prepend;
use tokenizers::normalizers::replace::Replace;
use tokenizers::normalizers::utils::Sequence;
use tokenizers::{AddedToken, NormalizerWrapper, Tokenizer};

pub struct Vocabulary<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub scores: &'a [f64],
    pub types: &'a [i64],
    pub merges: Vec<&'a str>,
    pub bos: i32,
    pub eos: i32,
    pub add_bos: bool,
    pub add_eos: bool,
    pub add_space_prefix: bool,
}

// Values of tokenizer.ggml.token_type.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

const TOKENS: &str = "tokenizer.ggml.tokens";

pub fn build(vocabulary: &Vocabulary) -> Outcome<Tok> {
    check_sizes(vocabulary)?;
    let ids = index(&vocabulary.tokens)?;
    let sentencepiece = match vocabulary.model {
        "gpt2" => false,
        "llama" => true,
        other => {
            return Err(Fault::input(
                "tokenizer.ggml.model",
                format!("{other:?} is not a known tokenizer model"),
            )
            .allowed("supported are gpt2, llama"))
        }
    };
    let mut tok = if sentencepiece {
        build_sentencepiece(vocabulary, ids)?
    } else {
        build_byte_level(vocabulary, ids)?
    };
    add_tokens(&mut tok.engine, vocabulary)?;
    tok.bos = special_id(vocabulary, vocabulary.add_bos, vocabulary.bos, "bos")?;
    tok.eos = special_id(vocabulary, vocabulary.add_eos, vocabulary.eos, "eos")?;
    Ok(tok)
}

fn check_sizes(vocabulary: &Vocabulary) -> Outcome<()> {
    let tokens = vocabulary.tokens.len();
    if tokens == 0 {
        return Err(Fault::input(TOKENS, "holds no token"));
    }
    for (name, len) in [("scores", vocabulary.scores.len()), ("token_type", vocabulary.types.len())]
    {
        if len != 0 && len != tokens {
            return Err(Fault::input(
                format!("tokenizer.ggml.{name}"),
                format!("{len} entries for {tokens} tokens"),
            )
            .allowed("one entry for each token, or none"));
        }
    }
    Ok(())
}

fn index(tokens: &[&str]) -> Outcome<AHashMap<String, u32>> {
    let mut ids = AHashMap::with_capacity(tokens.len());
    for (id, token) in tokens.iter().enumerate() {
        if token.is_empty() {
            return Err(hole(TOKENS, id));
        }
        if let Some(first) = ids.insert((*token).to_string(), id as u32) {
            return Err(duplicate(TOKENS, token, first, id));
        }
    }
    Ok(ids)
}

fn build_byte_level(vocabulary: &Vocabulary, ids: AHashMap<String, u32>) -> Outcome<Tok> {
    let row = pre::find(vocabulary.pre)?;
    if vocabulary.merges.is_empty() {
        return Err(Fault::input("tokenizer.ggml.merges", "holds no rule"));
    }
    let merges = read_merges(vocabulary, &ids)?;
    let bpe = finish_model(
        BPE::builder().vocab_and_merges(ids, merges).ignore_merges(row.ignore_merges),
    )?;
    let mut engine = Tokenizer::new(bpe);
    engine.with_pre_tokenizer(Some(row.pre_tokenizer()?));
    set_normalizer(&mut engine, row.normalizer())?;
    Ok(Tok::with(engine, pieces(vocabulary, Spelling::ByteLevel)))
}

fn build_sentencepiece(vocabulary: &Vocabulary, ids: AHashMap<String, u32>) -> Outcome<Tok> {
    let merges = if !vocabulary.merges.is_empty() {
        read_merges(vocabulary, &ids)?
    } else if !vocabulary.scores.is_empty() {
        spm::merges_from_scores(&vocabulary.tokens, vocabulary.scores, &ids)
    } else {
        return Err(Fault::input("tokenizer.ggml", "has neither merges nor scores")
            .allowed("a llama vocabulary with one of them"));
    };
    let mut builder =
        BPE::builder().vocab_and_merges(ids, merges).fuse_unk(true).byte_fallback(true);
    if let Some(unknown) = vocabulary.types.iter().position(|&t| t == UNKNOWN) {
        builder = builder.unk_token(vocabulary.tokens[unknown].to_string());
    }
    let mut engine = Tokenizer::new(finish_model(builder)?);
    let spaces: NormalizerWrapper = Replace::new(" ", "\u{2581}")
        .map_err(|e| Fault::input("tokenizer.ggml", e.to_string()))?
        .into();
    let mut steps = Vec::new();
    if vocabulary.add_space_prefix {
        steps.push(Prepend::new("\u{2581}".to_string()).into());
    }
    steps.push(spaces);
    set_normalizer(&mut engine, Some(Sequence::new(steps).into()))?;
    let mut tok = Tok::with(engine, pieces(vocabulary, Spelling::Metaspace { bytes: true }));
    tok.leading_space = vocabulary.add_space_prefix;
    Ok(tok)
}

/// "left right"; a half may itself begin with a space.
fn read_merges(
    vocabulary: &Vocabulary,
    ids: &AHashMap<String, u32>,
) -> Outcome<Vec<(String, String)>> {
    let mut rules = MergeRules::with_capacity(vocabulary.merges.len());
    let mut merges = Vec::with_capacity(vocabulary.merges.len());
    for (index, line) in vocabulary.merges.iter().enumerate() {
        let place = || format!("tokenizer.ggml.merges[{index}]");
        let first = line.chars().next().map_or(0, char::len_utf8);
        let Some(cut) = line[first..].find(' ').map(|at| at + first) else {
            return Err(Fault::input(place(), format!("{line:?} is no merge rule"))
                .allowed("two tokens with a space between"));
        };
        let halves = (&line[..cut], &line[cut + 1..]);
        rules.add(index, halves, place, |piece| ids.contains_key(piece))?;
        merges.push((halves.0.to_string(), halves.1.to_string()));
    }
    Ok(merges)
}

fn finish_model(builder: BpeBuilder) -> Outcome<BPE> {
    builder
        .cache_capacity(CACHED_WORDS)
        .build()
        .map_err(|e| Fault::input("tokenizer.ggml", e.to_string()))
}

fn set_normalizer(engine: &mut Tokenizer, normalizer: Option<NormalizerWrapper>) -> Outcome<()> {
    engine
        .with_normalizer(normalizer)
        .map_err(|e| Fault::input("tokenizer.ggml", e.to_string()))?;
    Ok(())
}

fn pieces(vocabulary: &Vocabulary, spelling: Spelling) -> Pieces {
    let mut speller = Speller::new(spelling);
    let mut pieces = Pieces::with_capacity(vocabulary.tokens.len());
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        let kind = kind(vocabulary, id);
        let bytes = if kind != Kind::Normal && spelling == Spelling::ByteLevel {
            token.as_bytes()
        } else {
            speller.bytes(token)
        };
        pieces.push(bytes, kind == Kind::Special);
    }
    pieces
}

#[derive(PartialEq)]
enum Kind {
    Normal,
    Special,
    UserDefined,
}

fn kind(vocabulary: &Vocabulary, id: usize) -> Kind {
    match vocabulary.types.get(id) {
        Some(&CONTROL) | Some(&UNKNOWN) => Kind::Special,
        Some(&USER_DEFINED) => Kind::UserDefined,
        Some(_) => Kind::Normal,
        None if id as i64 == vocabulary.bos as i64 || id as i64 == vocabulary.eos as i64 => {
            Kind::Special
        }
        None => Kind::Normal,
    }
}

fn add_tokens(engine: &mut Tokenizer, vocabulary: &Vocabulary) -> Outcome<()> {
    let mut added = Vec::new();
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        let kind = kind(vocabulary, id);
        if kind != Kind::Normal {
            added.push(AddedToken::from(*token, kind == Kind::Special).normalized(false));
        }
    }
    engine.add_tokens(added).map(|_| ()).map_err(|e| Fault::input(TOKENS, e.to_string()))
}

fn special_id(vocabulary: &Vocabulary, wanted: bool, id: i32, name: &str) -> Outcome<Option<u32>> {
    if !wanted {
        return Ok(None);
    }
    if id < 0 || id as usize >= vocabulary.tokens.len() {
        return Err(Fault::input(
            format!("tokenizer.ggml.{name}_token_id"),
            format!("{id} is not in the vocabulary, yet add_{name}_token is set"),
        )
        .allowed(format!("0 to {}", vocabulary.tokens.len() - 1)));
    }
    Ok(Some(id as u32))
}
