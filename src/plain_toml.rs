//! Says what is wrong with a user's TOML file in plain words instead of the parser's.
//!
//! Does not depend on what the file is for.

/// Maximum number of names that a hint lists.
const MOST_LISTED: usize = 12;

/// What is wrong, and what was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Puts a message of the parser into plain words.
pub(crate) fn plain(message: &str) -> Wrong {
    let message = message.trim().replace('\n', " ");
    let unknown_option = message.strip_prefix("unknown field ");
    let unknown_name = message.strip_prefix("unknown variant ");
    if let Some((name, known)) = unknown_option.or(unknown_name).and_then(name_and_known) {
        let what = unknown_option.map_or("name", |_| "option");
        let similar = similar(name, &known).map(|name| format!("did you mean `{name}`?"));
        let listed = unknown_name.filter(|_| known.len() <= MOST_LISTED);
        return Wrong {
            message: format!("unknown {what} `{name}`"),
            hint: similar
                .or_else(|| listed.map(|_| format!("possible values: {}", known.join(", ")))),
        };
    }
    let mismatch = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "));
    let is_too_large = message.contains("integer")
        && ["overflowed", "expected any value", "expected i64"]
            .iter()
            .any(|end| message.ends_with(end));
    let message = if is_too_large {
        "the number is out of range".to_owned()
    } else if let Some((found, wanted)) = mismatch {
        format!(
            "expected {}, found {}",
            wanted_words(wanted),
            found_words(found)
        )
    } else if let Some(name) = message.strip_prefix("missing field ") {
        format!("{name} is missing")
    } else if message == "string values must be quoted, expected literal string" {
        "expected a value; text needs quotes".to_owned()
    } else if message == "wanted string or table" {
        format!("expected {}", wanted_words("a string"))
    } else {
        message
    };
    Wrong {
        message,
        hint: None,
    }
}

/// Splits "`x`, expected one of `a`, `b`".
fn name_and_known(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, known) = text.strip_prefix('`')?.rsplit_once("`, expected ")?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

/// Returns the known name that is most similar to an unknown one.
pub(crate) fn similar<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    const MIN_SIMILARITY: f64 = 0.8;
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(unknown, name), *name))
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

fn wanted_words(wanted: &str) -> &str {
    match wanted {
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        "usize" | "i64" => "a whole number",
        _ if wanted.starts_with("struct ") => "a table",
        _ => wanted,
    }
}

fn found_words(found: &str) -> &str {
    // The type of an integer that no other type can hold.
    let found = found.trim_end_matches(" as i128");
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    match found {
        "sequence" => "a list",
        "map" => "a table",
        _ => kinds
            .iter()
            .find_map(|kind| found.strip_prefix(kind))
            .unwrap_or(found),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Colour {
        Green,
        Grey,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct File {
        width: usize,
        name: Option<String>,
        colours: Option<Vec<Colour>>,
        wraps: Option<bool>,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        depth: Option<u8>,
    }

    /// Returns what is made of the real parser's message, so that the tests notice if the parser changes its words.
    fn wrong(text: &str) -> (String, Option<String>) {
        let error = toml::from_str::<File>(text).expect_err("must be refused");
        let Wrong { message, hint } = plain(error.message());
        (message, hint)
    }

    #[test]
    fn an_unknown_name_comes_with_what_was_meant_or_could_be() {
        let hint = |text: &str| Some(text.to_owned());
        assert_eq!(
            wrong("widht = 1"),
            (
                "unknown option `widht`".to_owned(),
                hint("did you mean `width`?")
            )
        );
        assert_eq!(wrong("xyz = 1"), ("unknown option `xyz`".to_owned(), None));
        assert_eq!(
            wrong("width = 1\ncolours = [\"gray\"]"),
            (
                "unknown name `gray`".to_owned(),
                hint("did you mean `grey`?")
            )
        );
        assert_eq!(
            wrong("width = 1\ncolours = [\"xyz\"]"),
            (
                "unknown name `xyz`".to_owned(),
                hint("possible values: green, grey")
            )
        );
    }

    #[test]
    fn a_value_of_another_kind_is_shown_as_it_stands_in_the_file() {
        for (text, said) in [
            ("name = 'x'", "`width` is missing"),
            ("width = 'x'", "expected a whole number, found \"x\""),
            ("width = -1", "expected a whole number, found `-1`"),
            ("width = 1.5", "expected a whole number, found `1.5`"),
            (
                "width = 1\nname = true",
                "expected text in quotes, found `true`",
            ),
            ("width = 1\nwraps = 3", "expected true or false, found `3`"),
            (
                "width = 1\nwraps = []",
                "expected true or false, found a list",
            ),
            (
                "width = 1\nname = {}",
                "expected text in quotes, found a table",
            ),
            (
                "width = 1\ncolours = 'grey'",
                "expected a list in brackets, found \"grey\"",
            ),
            ("width = 1\ncolours = [1]", "expected text in quotes"),
            ("width = 1\ninner = 1", "expected a table, found `1`"),
            (
                "width = 1\nname = 18446744073709551616",
                "expected text in quotes, found `18446744073709551616`",
            ),
            ("name = x", "expected a value; text needs quotes"),
            ("name = ", "expected a value; text needs quotes"),
        ] {
            assert_eq!(wrong(text), (said.to_owned(), None), "{text}");
        }
    }
}
