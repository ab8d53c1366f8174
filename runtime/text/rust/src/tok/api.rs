//! C entries of the tokenizers. `ashlar_text.h` states what each promises.

use super::gguf::{self, Vocabulary};
use super::{json, Decoder, Tok};
use crate::boundary::{array, guard, Buffer, Bytes, Fault, Outcome};
use std::sync::Arc;

/// `tok_vocabulary` in ashlar_text.h.
#[repr(C)]
pub struct RawVocabulary {
    model: Bytes,
    pre: Bytes,
    tokens: *const Bytes,
    token_count: usize,
    scores: *const f64,
    score_count: usize,
    types: *const i64,
    type_count: usize,
    merges: *const Bytes,
    merge_count: usize,
    bos: i32,
    eos: i32,
    add_bos: bool,
    add_eos: bool,
    add_space_prefix: bool,
}

unsafe fn texts<'a>(data: *const Bytes, size: usize, place: &str) -> Outcome<Vec<&'a str>> {
    array(data, size)
        .iter()
        .enumerate()
        .map(|(index, bytes)| {
            std::str::from_utf8(bytes.slice()).map_err(|_| {
                Fault::input(format!("{place}[{index}]"), "is not valid UTF-8")
                    .allowed("UTF-8 text")
            })
        })
        .collect()
}

#[no_mangle]
pub unsafe extern "C" fn tok_from_json(
    text: Bytes,
    out: *mut *const Tok,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let tok = text.text("tokenizer.json").and_then(json::build).map_err(|fault| {
            fault.or(
                "a tokenizer.json as Hugging Face's tokenizers writes it",
                "restore the file from its source",
            )
        })?;
        *out = Arc::into_raw(Arc::new(tok));
        Ok(())
    })
}

unsafe fn read<'a>(raw: &RawVocabulary) -> Outcome<Vocabulary<'a>> {
    Ok(Vocabulary {
        model: raw.model.text("tokenizer.ggml.model")?,
        pre: raw.pre.text("tokenizer.ggml.pre")?,
        tokens: texts(raw.tokens, raw.token_count, "tokenizer.ggml.tokens")?,
        scores: array(raw.scores, raw.score_count),
        types: array(raw.types, raw.type_count),
        merges: texts(raw.merges, raw.merge_count, "tokenizer.ggml.merges")?,
        bos: raw.bos,
        eos: raw.eos,
        add_bos: raw.add_bos,
        add_eos: raw.add_eos,
        add_space_prefix: raw.add_space_prefix,
    })
}

#[no_mangle]
pub unsafe extern "C" fn tok_from_gguf(
    raw: *const RawVocabulary,
    out: *mut *const Tok,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let tok = read(&*raw).and_then(|vocabulary| gguf::build(&vocabulary)).map_err(|fault| {
            fault.or(
                "the vocabulary that the model was trained with",
                "convert the model again, or fetch the file anew",
            )
        })?;
        *out = Arc::into_raw(Arc::new(tok));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tok_free(tok: *const Tok) {
    if !tok.is_null() {
        drop(Arc::from_raw(tok));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tok_size(tok: *const Tok) -> usize {
    (*tok).pieces().len()
}

#[no_mangle]
pub unsafe extern "C" fn tok_bytes(tok: *const Tok, id: u32) -> Bytes {
    Bytes::of((*tok).pieces().bytes(id))
}

#[no_mangle]
pub unsafe extern "C" fn tok_is_special(tok: *const Tok, id: u32) -> bool {
    (*tok).pieces().is_special(id)
}

#[no_mangle]
pub unsafe extern "C" fn tok_id(tok: *const Tok, piece: Bytes) -> i64 {
    match std::str::from_utf8(piece.slice()) {
        Ok(piece) => (*tok).token_id(piece).map_or(-1, i64::from),
        Err(_) => -1,
    }
}

#[no_mangle]
pub unsafe extern "C" fn tok_encode(
    tok: *const Tok,
    text: Bytes,
    add_special: bool,
    out: *mut Buffer,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let ids = text
            .text("text")
            .and_then(|text| (*tok).encode(text, add_special))
            .map_err(|fault| fault.or("text that the tokenizer can split", "change the text"))?;
        *out = Buffer::of_ids(&ids);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tok_decode(
    tok: *const Tok,
    ids: *const u32,
    count: usize,
    skip_special: bool,
    out: *mut Buffer,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        *out = Buffer::of((*tok).decode(array(ids, count), skip_special).into_bytes());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tok_decoder_new(tok: *const Tok, skip_special: bool) -> *mut Decoder {
    Arc::increment_strong_count(tok);
    Box::into_raw(Box::new(Decoder::new(Arc::from_raw(tok), skip_special)))
}

#[no_mangle]
pub unsafe extern "C" fn tok_decoder_free(decoder: *mut Decoder) {
    if !decoder.is_null() {
        drop(Box::from_raw(decoder));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tok_decoder_push(
    decoder: *mut Decoder,
    id: u32,
    out: *mut Bytes,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        *out = Bytes::of((*decoder).push(id).as_bytes());
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tok_decoder_finish(
    decoder: *mut Decoder,
    out: *mut Bytes,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        *out = Bytes::of((*decoder).finish().as_bytes());
        Ok(())
    })
}
