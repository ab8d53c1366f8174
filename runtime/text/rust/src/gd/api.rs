//! C entries of the grammars. `ashlar_text.h` states what each promises.

use super::{Factory, Grammar};
use crate::boundary::{guard, Buffer, Bytes, Fault};
use crate::tok::Tok;
use std::sync::Arc;

fn usable(fault: Fault) -> Fault {
    fault.or(
        "a grammar that the engine supports, fed the tokens that it allows",
        "change the grammar",
    )
}

#[no_mangle]
pub unsafe extern "C" fn gd_factory_new(
    tok: *const Tok,
    eos: u32,
    out: *mut *const Factory,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        Arc::increment_strong_count(tok);
        let factory = Factory::new(Arc::from_raw(tok), eos).map_err(usable)?;
        *out = Arc::into_raw(Arc::new(factory));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn gd_factory_free(factory: *const Factory) {
    if !factory.is_null() {
        drop(Arc::from_raw(factory));
    }
}

#[no_mangle]
pub unsafe extern "C" fn gd_compile(
    factory: *const Factory,
    kind: Bytes,
    text: Bytes,
    out: *mut *const Grammar,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let grammar = kind
            .text("grammar kind")
            .and_then(|kind| (*factory).compile(kind, text.text("grammar")?))
            .map_err(usable)?;
        *out = Arc::into_raw(Arc::new(grammar));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn gd_free(grammar: *const Grammar) {
    if !grammar.is_null() {
        drop(Arc::from_raw(grammar));
    }
}

#[no_mangle]
pub unsafe extern "C" fn gd_mask(
    grammar: *const Grammar,
    words: *mut u32,
    count: usize,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        if count == 0 {
            return Err(usable(Fault::input("mask", "holds no word")));
        }
        (*grammar).mask(std::slice::from_raw_parts_mut(words, count)).map_err(usable)
    })
}

#[no_mangle]
pub unsafe extern "C" fn gd_accept(
    grammar: *const Grammar,
    id: u32,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || (*grammar).accept(id).map_err(usable))
}

#[no_mangle]
pub unsafe extern "C" fn gd_rollback(
    grammar: *const Grammar,
    tokens: usize,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || (*grammar).rollback(tokens).map_err(usable))
}

#[no_mangle]
pub unsafe extern "C" fn gd_forced(
    grammar: *const Grammar,
    out: *mut Buffer,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        *out = Buffer::of_ids(&(*grammar).forced().map_err(usable)?);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn gd_is_stopped(grammar: *const Grammar) -> bool {
    (*grammar).is_stopped()
}
