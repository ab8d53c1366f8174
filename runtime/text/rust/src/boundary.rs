//! What crosses the C boundary: borrowed bytes in, owned buffers out, and faults.

use std::panic::{catch_unwind, AssertUnwindSafe};

/// Numbers of `ashlar_status` in ashlar_text.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Status {
    Input = 1,
    Raised = 2,
    Failed = 3,
    Limit = 4,
    Panic = 5,
}

const MAX_PART_CHARACTERS: usize = 400;

/// A refusal in the four parts of the runtime's `Problem`.
#[derive(Debug)]
pub struct Fault {
    pub status: Status,
    pub place: String,
    pub found: String,
    pub allowed: String,
    pub next: String,
}

impl Fault {
    pub fn new(status: Status, place: impl Into<String>, found: impl Into<String>) -> Fault {
        Fault {
            status,
            place: place.into(),
            found: found.into(),
            allowed: String::new(),
            next: String::new(),
        }
    }

    pub fn input(place: impl Into<String>, found: impl Into<String>) -> Fault {
        Fault::new(Status::Input, place, found)
    }

    /// Fills the parts that are still empty.
    pub fn or(mut self, allowed: &str, next: &str) -> Fault {
        if self.allowed.is_empty() {
            self.allowed = allowed.to_string();
        }
        if self.next.is_empty() {
            self.next = next.to_string();
        }
        self
    }

    /// A part may quote input of any length; a message stays short.
    fn shorten(&mut self) {
        for part in [&mut self.place, &mut self.found, &mut self.allowed, &mut self.next] {
            if let Some((end, _)) = part.char_indices().nth(MAX_PART_CHARACTERS) {
                part.truncate(end);
                part.push_str("...");
            }
        }
    }

    pub fn allowed(mut self, allowed: impl Into<String>) -> Fault {
        self.allowed = allowed.into();
        self
    }

    pub fn next(mut self, next: impl Into<String>) -> Fault {
        self.next = next.into();
        self
    }
}

pub type Outcome<T> = Result<T, Fault>;

/// `ashlar_bytes`: borrowed for the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    data: *const u8,
    size: usize,
}

impl Bytes {
    pub fn of(slice: &[u8]) -> Bytes {
        Bytes { data: slice.as_ptr(), size: slice.len() }
    }

    /// # Safety
    /// `data` points to `size` readable bytes, or `size` is 0.
    pub unsafe fn slice<'a>(self) -> &'a [u8] {
        array(self.data, self.size)
    }

    /// # Safety
    /// As `slice`.
    pub unsafe fn text<'a>(self, place: &str) -> Outcome<&'a str> {
        std::str::from_utf8(self.slice()).map_err(|e| {
            Fault::input(place, format!("byte {} is not valid UTF-8", e.valid_up_to()))
                .allowed("UTF-8 text")
        })
    }
}

/// # Safety
/// `data` points to `size` readable values, or `size` is 0.
pub unsafe fn array<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, size)
    }
}

/// `ashlar_buffer`: made here, freed by `ashlar_buffer_free`.
#[repr(C)]
pub struct Buffer {
    data: *mut u8,
    size: usize,
}

impl Buffer {
    pub fn of(bytes: Vec<u8>) -> Buffer {
        let boxed = bytes.into_boxed_slice();
        let size = boxed.len();
        Buffer { data: Box::into_raw(boxed) as *mut u8, size }
    }

    pub fn of_ids(ids: &[u32]) -> Buffer {
        Buffer::of(ids.iter().flat_map(|id| id.to_ne_bytes()).collect())
    }
}

/// # Safety
/// `buffer` came from this library and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn ashlar_buffer_free(buffer: Buffer) {
    if !buffer.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(buffer.data, buffer.size)));
    }
}

/// Runs one entry. A fault, or a panic as a fault, goes to `*error`, which the caller frees.
///
/// # Safety
/// `error` is null or writable.
pub unsafe fn guard(error: *mut *mut Fault, entry: impl FnOnce() -> Outcome<()>) -> i32 {
    let mut fault = match catch_unwind(AssertUnwindSafe(entry)) {
        Ok(Ok(())) => return 0,
        Ok(Err(fault)) => fault,
        Err(payload) => {
            let what = if let Some(text) = payload.downcast_ref::<&str>() {
                (*text).to_string()
            } else if let Some(text) = payload.downcast_ref::<String>() {
                text.clone()
            } else {
                "no message".to_string()
            };
            Fault::new(Status::Panic, "text library", format!("internal panic: {what}"))
                .allowed("no input may cause one")
                .next("report this input")
        }
    };
    fault.shorten();
    let status = fault.status as i32;
    if !error.is_null() {
        *error = Box::into_raw(Box::new(fault));
    }
    status
}

/// One part of a fault, borrowed from it: 0 place, 1 found, 2 allowed, 3 next.
///
/// # Safety
/// `error` came from a failed call and was not freed.
#[no_mangle]
pub unsafe extern "C" fn err_part(error: *const Fault, part: i32) -> Bytes {
    let fault = &*error;
    Bytes::of(match part {
        0 => fault.place.as_bytes(),
        1 => fault.found.as_bytes(),
        2 => fault.allowed.as_bytes(),
        _ => fault.next.as_bytes(),
    })
}

/// # Safety
/// `error` is null, or came from a failed call and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn err_free(error: *mut Fault) {
    if !error.is_null() {
        drop(Box::from_raw(error));
    }
}

/// Panics inside the guard: the proof, in any build, that a panic returns as a status.
///
/// # Safety
/// `error` is null or writable.
#[no_mangle]
pub unsafe extern "C" fn err_probe_panic(error: *mut *mut Fault) -> i32 {
    guard(error, || panic!("probe"))
}
