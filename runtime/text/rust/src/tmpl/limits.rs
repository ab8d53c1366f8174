//! What bounds a render: steps, depth, output and time.
//!
//! The engine counts steps (one for an instruction and for each 64 bytes made) and calls. Time is
//! that of the rendering thread, so that a busy machine fails nobody's request; it is read wherever
//! text is written or one of our functions runs, and between two such points the steps bound it.
//!
//! A template can nest values as deep as its steps allow, and the engine compares, prints and drops
//! them by recursion: a render has a thread of its own whose stack holds that many levels.

use super::number;
use minijinja::value::Object;
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use std::fmt;
use std::io;
use std::time::Duration;

use crate::boundary::{Fault, Outcome, Status};

pub const STEPS: u64 = 1_000_000;
pub const DEPTH: usize = 64;

/// Of address space; what is not used is not memory.
pub const STACK_BYTES: usize = 512 << 20;

/// The engine counts a macro call as four levels.
const LEVELS_PER_CALL: usize = 4;

/// Name of the variable that holds the deadline; no template can spell it.
pub const DEADLINE: &str = "\u{0}deadline";

pub struct Limits {
    pub max_output_bytes: usize,
    pub max_time: Duration,
    /// What strftime_now shows: seconds since 1970, UTC.
    pub now_seconds: i64,
}

pub fn apply(environment: &mut Environment) {
    environment.set_fuel(Some(STEPS));
    environment.set_recursion_limit(DEPTH * LEVELS_PER_CALL);
}

#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: Duration,
    max_time: Duration,
    pub now_seconds: i64,
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, and this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Object for Deadline {}

impl Deadline {
    /// On the thread that renders.
    pub fn start(limits: &Limits) -> Deadline {
        Deadline {
            end: thread_time() + limits.max_time,
            max_time: limits.max_time,
            now_seconds: limits.now_seconds,
        }
    }

    /// The deadline of this render.
    pub fn of(state: &State) -> Option<Deadline> {
        state.lookup(DEADLINE)?.downcast_object_ref::<Deadline>().copied()
    }
}

#[derive(Debug)]
struct Exceeded(String);

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Exceeded {}

fn exceeded(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, "limit").with_source(Exceeded(reason))
}

/// Why the render was stopped, when one of our limits stopped it.
pub fn reason(error: &Error) -> Option<String> {
    use std::error::Error as _;
    error.source()?.downcast_ref::<Exceeded>().map(|e| e.0.clone())
}

pub fn too_deep() -> Error {
    exceeded(format!("nests values deeper than {}", super::tojson::DEPTH))
}

/// Called by everything of ours that a template can call.
pub fn check_time(state: &mut State) -> Result<(), Error> {
    let deadline = match state.get_extension::<Deadline>() {
        Some(deadline) => *deadline,
        None => {
            let Some(deadline) = Deadline::of(state) else { return Ok(()) };
            *state.get_or_insert_extension(deadline)
        }
    };
    if thread_time() > deadline.end {
        return Err(exceeded(format!("takes more than {} ms", deadline.max_time.as_millis())));
    }
    Ok(())
}

/// Writes one value as Jinja2's str() would.
pub fn format(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    check_time(state)?;
    match number::as_float(value) {
        Some(float) => out.write_str(&number::python_float(float)).map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}

/// Collects output up to a limit; one byte more stops the render.
pub struct LimitedWriter {
    bytes: Vec<u8>,
    limit: usize,
    exceeded: bool,
}

impl LimitedWriter {
    pub fn new(limit: usize) -> LimitedWriter {
        LimitedWriter { bytes: Vec::new(), limit, exceeded: false }
    }

    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    pub fn into_text(self) -> Outcome<String> {
        String::from_utf8(self.bytes)
            .map_err(|e| Fault::new(Status::Failed, "chat template", e.to_string()))
    }
}

impl io::Write for &mut LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.exceeded = true;
            return Err(io::Error::other("output limit"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
