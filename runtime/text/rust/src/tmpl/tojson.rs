//! JSON in and out. Out is Python's json.dumps as Hugging Face calls it: nothing is escaped for
//! HTML, text is not reduced to ASCII, and floats are written as Python writes them.

use super::limits::{check_time, too_deep};
use super::number;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// Of values; deeper ones come only from a template that nests on purpose.
pub const DEPTH: usize = 200;

/// A parsed document as template values, keys in order.
pub fn from_json(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(signed), _) => Value::from(signed),
            (None, Some(unsigned)) => Value::from(unsigned),
            (None, None) => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s),
        serde_json::Value::Array(items) => {
            Value::from(items.into_iter().map(from_json).collect::<Vec<_>>())
        }
        serde_json::Value::Object(fields) => {
            Value::from_pairs(fields.into_iter().map(|(key, value)| (key, from_json(value))))
        }
    }
}

struct Style {
    ascii: bool,
    indent: Option<String>,
    item: String,
    key: String,
    sorted: bool,
}

/// tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)
pub fn tojson(
    state: &mut State,
    value: &Value,
    positional: Rest<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    check_time(state)?;
    let argument = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        match positional.get(index) {
            Some(value) => Ok(Some(value.clone())),
            None => named.get(name),
        }
    };
    let indent = match argument(1, "indent")? {
        Some(v) if v.kind() == ValueKind::String => v.as_str().map(str::to_string),
        Some(v) if v.is_none() => None,
        Some(v) => Some(" ".repeat(usize::try_from(v)?.min(16))),
        None => None,
    };
    let (mut item, mut key) = match indent {
        Some(_) => (",".to_string(), ": ".to_string()),
        None => (", ".to_string(), ": ".to_string()),
    };
    if let Some(pair) = argument(2, "separators")?.filter(|v| !v.is_none()) {
        item = pair.get_item_by_index(0)?.to_string();
        key = pair.get_item_by_index(1)?.to_string();
    }
    let style = Style {
        ascii: argument(0, "ensure_ascii")?.is_some_and(|v| v.is_true()),
        indent,
        item,
        key,
        sorted: argument(3, "sort_keys")?.is_some_and(|v| v.is_true()),
    };
    named.assert_all_used()?;
    let mut out = String::new();
    write(state, &style, value, 0, &mut out)?;
    Ok(Value::from(out))
}

fn write(
    state: &State,
    style: &Style,
    value: &Value,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(too_deep());
    }
    state.consume_fuel(1)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number_text(value)),
        ValueKind::String => {
            let text = value.as_str().unwrap_or("");
            state.consume_fuel(text.len() as u64 / 32)?;
            write_string(text, style.ascii, out);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut first = true;
            out.push('[');
            for item in value.try_iter()? {
                separate(style, depth, &mut first, out);
                write(state, style, &item, depth + 1, out)?;
            }
            close(style, depth, first, ']', out);
        }
        ValueKind::Map => {
            let mut first = true;
            out.push('{');
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sorted {
                keys.sort();
            }
            for key in keys {
                separate(style, depth, &mut first, out);
                write_string(&key_text(&key)?, style.ascii, out);
                out.push_str(&style.key);
                write(state, style, &value.get_item(&key)?, depth + 1, out)?;
            }
            close(style, depth, first, '}', out);
        }
        kind => {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                format!("a value of type {kind} is not JSON"),
            ))
        }
    }
    Ok(())
}

fn separate(style: &Style, depth: usize, first: &mut bool, out: &mut String) {
    if !std::mem::take(first) {
        out.push_str(&style.item);
    }
    new_line(style, depth + 1, out);
}

fn close(style: &Style, depth: usize, empty: bool, end: char, out: &mut String) {
    if !empty {
        new_line(style, depth, out);
    }
    out.push(end);
}

fn new_line(style: &Style, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn number_text(value: &Value) -> String {
    match number::as_float(value) {
        Some(f) if f.is_nan() => "NaN".to_string(),
        Some(f) if f.is_infinite() => if f > 0.0 { "Infinity" } else { "-Infinity" }.to_string(),
        Some(f) => number::python_float(f),
        None => value.to_string(),
    }
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or("").to_string()),
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_string()),
        ValueKind::Number => Ok(number_text(key)),
        kind => Err(Error::new(
            ErrorKind::BadSerialization,
            format!("a key of type {kind} is not JSON"),
        )),
    }
}

fn write_string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
