//! `{% generation %}` marks the assistant's tokens for training. Serving has no use for it, so the
//! tag becomes an `if true`, which keeps its whitespace control and every line number.

pub fn strip_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.as_bytes().get(1) {
            Some(b'#') => end_after(rest, "#}"),
            Some(b'{') => end_of_tag(rest, "}}"),
            Some(b'%') => end_of_tag(rest, "%}"),
            _ => 1,
        };
        let (item, after) = rest.split_at(length);
        rest = after;
        match tag_name(item) {
            Some("generation") => out.push_str(&item.replacen("generation", "if true", 1)),
            Some("endgeneration") => out.push_str(&item.replacen("endgeneration", "endif", 1)),
            Some("raw") => {
                out.push_str(item);
                let length = raw_length(rest);
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            _ => out.push_str(item),
        }
    }
    out.push_str(rest);
    out
}

fn end_after(text: &str, end: &str) -> usize {
    text.find(end).map_or(text.len(), |at| at + end.len())
}

/// Like `end_after`, but an end inside a quoted string is part of the string.
fn end_of_tag(text: &str, end: &str) -> usize {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 2;
    while at < bytes.len() {
        match quote {
            Some(_) if bytes[at] == b'\\' => at += 1,
            Some(q) if bytes[at] == q => quote = None,
            Some(_) => {}
            None if bytes[at] == b'"' || bytes[at] == b'\'' => quote = Some(bytes[at]),
            None if bytes[at..].starts_with(end.as_bytes()) => return at + end.len(),
            None => {}
        }
        at += 1;
    }
    text.len()
}

/// The one word of a tag `{% word %}`.
fn tag_name(item: &str) -> Option<&str> {
    let inner = item.strip_prefix("{%")?.strip_suffix("%}")?;
    Some(inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim())
}

/// Everything before the matching endraw.
fn raw_length(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%").map(|at| at + from) {
        let length = end_after(&text[at..], "%}");
        if tag_name(&text[at..at + length]) == Some("endraw") {
            return at;
        }
        from = at + 2;
    }
    text.len()
}
