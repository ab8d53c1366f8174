//! The functions that Hugging Face adds for chat templates.

use super::clock;
use super::limits::{check_time, Deadline};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::fmt;

/// Carried by the error of raise_exception, so that it is told apart from a failure.
#[derive(Debug)]
pub struct Raised(pub String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

pub fn add(environment: &mut Environment) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raised by the template")
        .with_source(Raised(message.to_string())))
}

fn strftime_now(state: &mut State, format: &str) -> Result<String, Error> {
    check_time(state)?;
    let now = Deadline::of(state).map_or(0, |deadline| deadline.now_seconds);
    clock::strftime(now, format)
        .map_err(|what| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {what}")))
}
