//! Text that users set, in a line of a log, a header or a terminal.

use std::{borrow::Cow, fmt::Write};

/// Text with escapes for all characters that are not seen, such as `\n` and `\u{202e}`.
///
/// The API server calls webhooks before it validates names: a line break in one would forge lines of the log, and
/// bidirectional controls would show another text than there is.
pub fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    if !text.contains(is_hidden) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        if is_hidden(one) { shown.extend(one.escape_default()) } else { shown.push(one) }
    }
    shown
}

/// JSON text with JSON's escapes for characters that are not seen. Outside of strings it has none of them.
pub fn one_line_of_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for one in json.chars() {
        if is_hidden(one) {
            for unit in one.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("strings can always be written");
            }
        } else {
            shown.push(one);
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is not seen: controls, bidirectional controls, separators of lines and paragraphs, and others
/// without a width. Joiners are not among them: some scripts and emoji require them.
pub fn is_hidden(one: char) -> bool {
    one.is_control()
        || matches!(one,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bidirectional control, and the separators of lines and paragraphs.
    const BIDIRECTIONAL: &str = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{2028}\u{2029}";

    #[test]
    fn characters_that_are_not_seen_are_shown_as_escapes() {
        assert_eq!(one_line("a\nb\tc\u{1b}[31m"), "a\\nb\\tc\\u{1b}[31m");
        assert_eq!(one_line("user\u{202e}nimda"), "user\\u{202e}nimda");
        assert_eq!(one_line("\u{7f}\u{85}\u{feff}\u{e0041}"), "\\u{7f}\\u{85}\\u{feff}\\u{e0041}");
        assert!(BIDIRECTIONAL.chars().all(is_hidden));
        let shown = one_line(BIDIRECTIONAL);
        assert!(
            shown.is_ascii() && shown.matches("\\u{").count() == BIDIRECTIONAL.chars().count(),
            "{shown}"
        );
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "",
            "plain: \"a\" \\n",
            "Gr\u{fc}\u{df}e \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{1f469}\u{200d}\u{1f4bb}",
        ] {
            assert_eq!(one_line(text), text);
            assert!(matches!(one_line_of_json(text), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let text = format!("a\n\u{7f}{BIDIRECTIONAL}\u{e0041}\u{fc}");
        let json = serde_json::to_string(&text).expect("JSON");
        let shown = one_line_of_json(&json);
        assert!(!shown.contains(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), text);
    }
}
