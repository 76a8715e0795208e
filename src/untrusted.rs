//! Parses JSON documents that another program or another user may have written: all of their strings are made
//! printable.
//!
//! pipetop makes what it reads from this machine printable at once, so its own documents are parsed without this
//! module.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::units::{is_terminal_control, printable};

/// Parses a document of type `T`.
///
/// # Errors
/// Returns an error if the text is not JSON, or not that of a `T`.
pub(crate) fn from_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    if is_printable(text) {
        return serde_json::from_slice(text);
    }
    // Converted back to text, because parsing a `T` from a `Value`, too, would compile its parser twice.
    let text = serde_json::to_vec(&cleaned(serde_json::from_slice(text)?))?;
    serde_json::from_slice(&text)
}

/// Whether no string of the document can contain a terminal control character, literally or as an escape.
fn is_printable(text: &[u8]) -> bool {
    if !text.iter().any(|byte| matches!(byte, b'\\' | 0x7f..)) {
        return true;
    }
    let Ok(text) = str::from_utf8(text) else {
        // The parser will refuse it.
        return true;
    };
    let mut escaped = false;
    text.chars().all(|c| {
        let plain = match (escaped, c) {
            (true, _) => matches!(c, '"' | '\\' | '/'),
            // Between strings.
            (false, '\n' | '\r' | '\t') => true,
            (false, _) => !is_terminal_control(c),
        };
        escaped = !escaped && c == '\\';
        plain
    })
}

fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable(&text)),
        Value::Array(values) => values.into_iter().map(cleaned).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, value)| (printable(&name), cleaned(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn strings_and_names_are_printable_whatever_they_hold() {
        let text = r#"{"a\u001b[2J":["b\u0007","\u202ec","d\n"],"e":{"f":"g"}}"#;
        let raw = "{\"h\":\"\u{9b}2J\u{2066}\u{7f}\"}";
        let value: Value = from_json(text.as_bytes()).unwrap();
        let shown =
            "{\"a\u{fffd}[2J\":[\"b\u{fffd}\",\"\u{fffd}c\",\"d\u{fffd}\"],\"e\":{\"f\":\"g\"}}";
        assert_eq!(value.to_string(), shown);
        let value: Value = from_json(raw.as_bytes()).unwrap();
        assert_eq!(value["h"], "\u{fffd}2J\u{fffd}\u{fffd}");
    }

    #[test]
    fn other_documents_are_parsed_as_they_are() {
        let text = "{\n\t\"größe \\\"a\\\" c:\\\\new\": 18446744073709551615\r\n}";
        assert!(is_printable(text.as_bytes()));
        let found: BTreeMap<String, u64> = from_json(text.as_bytes()).unwrap();
        assert_eq!(found, [("größe \"a\" c:\\new".to_owned(), u64::MAX)].into());
        for broken in [&b"\xff"[..], b"{\"a\\u001b", b""] {
            assert!(from_json::<Value>(broken).is_err());
        }
    }
}
