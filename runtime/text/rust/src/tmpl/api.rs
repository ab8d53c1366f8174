//! C entries of the chat templates. `ashlar_text.h` states what each promises.

use super::{Limits, Template};
use crate::boundary::{guard, Buffer, Bytes, Fault, Outcome};
use std::sync::Arc;
use std::time::Duration;

unsafe fn compile(source: Bytes, bos: Bytes, eos: Bytes) -> Outcome<Template> {
    Template::compile(source.text("chat template")?, bos.text("bos token")?, eos.text("eos token")?)
}

#[no_mangle]
pub unsafe extern "C" fn tmpl_compile(
    source: Bytes,
    bos: Bytes,
    eos: Bytes,
    out: *mut *const Template,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let template = compile(source, bos, eos).map_err(|fault| {
            fault.or("a Jinja template as Hugging Face renders them", "correct the chat template")
        })?;
        *out = Arc::into_raw(Arc::new(template));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tmpl_free(template: *const Template) {
    if !template.is_null() {
        drop(Arc::from_raw(template));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tmpl_render(
    template: *const Template,
    document: Bytes,
    max_output_bytes: usize,
    max_milliseconds: u32,
    now_seconds: i64,
    out: *mut Buffer,
    error: *mut *mut Fault,
) -> i32 {
    guard(error, || {
        let max_time = Duration::from_millis(max_milliseconds.into());
        let limits = Limits { max_output_bytes, max_time, now_seconds };
        let text = document
            .text("template variables")
            .and_then(|document| (*template).render(document, &limits))
            .map_err(|fault| {
                fault.or(
                    "messages and variables of the shape that the chat template expects",
                    "change the request, or use another chat template",
                )
            })?;
        *out = Buffer::of(text.into_bytes());
        Ok(())
    })
}
