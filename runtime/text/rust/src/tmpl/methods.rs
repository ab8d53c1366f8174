//! Methods of Python's str, dict and list that templates call.

use super::limits::check_time;
use minijinja::value::{from_args, Tuple, ValueKind};
use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    check_time(state)?;
    if value.kind() == ValueKind::String {
        if let Some(text) = value.as_str() {
            state.consume_fuel(text.len() as u64 / 64)?;
            if let Some(result) = string_method(text, method, args) {
                return result;
            }
        }
    }
    unknown_method_callback(state, value, method, args)
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match method {
        "rsplit" => rsplit(text, args),
        "partition" => cut(args, |sep| match text.split_once(sep) {
            Some((before, after)) => [before, sep, after].map(str::to_string),
            None => [text, "", ""].map(str::to_string),
        }),
        "rpartition" => cut(args, |sep| match text.rsplit_once(sep) {
            Some((before, after)) => [before, sep, after].map(str::to_string),
            None => ["", "", text].map(str::to_string),
        }),
        "removeprefix" => from_args(args)
            .map(|(prefix,): (&str,)| Value::from(text.strip_prefix(prefix).unwrap_or(text))),
        "removesuffix" => from_args(args)
            .map(|(suffix,): (&str,)| Value::from(text.strip_suffix(suffix).unwrap_or(text))),
        _ => return None,
    })
}

fn cut(args: &[Value], at: impl Fn(&str) -> [String; 3]) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    Ok(Value::from(Tuple::from(at(separator).map(Value::from))))
}

fn rsplit(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
    let limit = limit.filter(|&n| n >= 0).map_or(usize::MAX, |n| n as usize);
    let mut parts: Vec<&str> = match separator {
        Some(separator) => text.rsplitn(limit.saturating_add(1), separator).collect(),
        None => rsplit_whitespace(text, limit),
    };
    parts.reverse();
    Ok(Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>()))
}

/// Last part first; the remainder keeps its inner and leading space, as Python's does.
fn rsplit_whitespace(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim_end();
    while !rest.is_empty() {
        if parts.len() == limit {
            parts.push(rest);
            break;
        }
        match rest.rfind(char::is_whitespace) {
            Some(at) => {
                let begin = at + rest[at..].chars().next().map_or(1, char::len_utf8);
                parts.push(&rest[begin..]);
                rest = rest[..at].trim_end();
            }
            None => {
                parts.push(rest);
                break;
            }
        }
    }
    parts
}
