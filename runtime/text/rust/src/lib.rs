//! Tokenizers, chat templates and grammars behind the C functions of ashlar_text.h.
//!
//! Each group is a plain module plus `api.rs` with its C entries. An entry only converts its
//! arguments and runs inside `boundary::guard`, which turns an error or a panic into a status.
//! Handles are `Arc`s; nothing is global.

mod boundary;
mod gd;
mod tmpl;
mod tok;
