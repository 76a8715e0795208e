//! The bytes that a terminal sends for a key.

/// Returns the bytes of a key by its name in the key map.
pub fn typed(key: &str) -> String {
    let named = match key {
        "space" => " ",
        "tab" => "\t",
        "shift-tab" => "\u{1b}[Z",
        "enter" => "\r",
        "esc" => "\u{1b}",
        "up" => "\u{1b}[A",
        "down" => "\u{1b}[B",
        "right" => "\u{1b}[C",
        "left" => "\u{1b}[D",
        "home" => "\u{1b}[H",
        "end" => "\u{1b}[F",
        "page-up" => "\u{1b}[5~",
        "page-down" => "\u{1b}[6~",
        "f1" => "\u{1b}OP",
        _ => "",
    };
    match key.strip_prefix("ctrl-").map(str::as_bytes) {
        Some([letter]) => char::from(letter & 0x1f).to_string(),
        _ if named.is_empty() => {
            assert_eq!(
                key.chars().count(),
                1,
                "what does a terminal send for `{key}`?"
            );
            key.to_owned()
        }
        _ => named.to_owned(),
    }
}
