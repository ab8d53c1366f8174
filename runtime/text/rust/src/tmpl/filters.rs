//! Filters and tests that answer as Jinja2 does where the engine's own differ.

use super::tojson::tojson;
use minijinja::value::ValueKind;
use minijinja::{Environment, Value};

pub fn add(environment: &mut Environment) {
    // Not in Hugging Face's environment, or of no use there, and quadratic in nesting.
    environment.remove_filter("pprint");
    environment.remove_global("debug");
    environment.add_filter("tojson", tojson);
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
    environment.add_test("number", is_number);
}

/// Python: whatever has a length and items, so strings and mappings too.
fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Bytes)
        || (value.kind() == ValueKind::Iterable && value.len().is_some())
}

fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || matches!(value.kind(), ValueKind::Iterable | ValueKind::Undefined)
}

/// Python: a boolean is a number.
fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}
