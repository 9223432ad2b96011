//! The maximum sizes of what a response and the log say about a pod, whatever the pod says.
//!
//! The sentences themselves are bounded by `otel_webhook_inject::shown`.

use std::fmt::Display;

use otel_webhook_inject::{
    line::one_line,
    shown::{LONGEST_TEXT, Short, shown},
};

/// The maximum length of a warning, in bytes: the API server truncates at 256 characters.
pub const LONGEST_WARNING: usize = 250;

/// The maximum size of all warnings, in bytes; the API server ignores more.
pub const MOST_WARNINGS: usize = 4096;

/// The maximum length of the audit annotation, and of the same list in a line of the log, in bytes.
pub const LONGEST_SUMMARY: usize = 4096;

/// The room that is kept for the number of those that are left out.
const ROOM_FOR_MORE: usize = 60;

/// A name for a line of the log, which shows its control characters as escapes.
pub fn name_in_line(name: &str) -> String {
    shown(name).to_string()
}

/// Another text for a line of the log, which shows its control characters as escapes.
pub fn text_in_line(text: &impl Display) -> String {
    Short { what: text, longest: LONGEST_TEXT }.to_string()
}

/// The items that fit into a summary, separated by spaces, and how many more there are.
pub fn summary_of<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    joined(items, " ")
}

/// The sentences that fit into a summary, separated by semicolons, and how many more there are.
pub fn sentences_of<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    joined(items, "; ")
}

fn joined<T: Display>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = String::with_capacity(64);
    let mut more = 0;
    for item in items {
        let before = text.len();
        if more == 0 {
            if before > 0 {
                text.push_str(separator);
            }
            text += &one_line(item.to_string());
        }
        if more > 0 || text.len() > LONGEST_SUMMARY - ROOM_FOR_MORE {
            text.truncate(before);
            more += 1;
        }
    }
    if more > 0 {
        text += &[" and ", &more.to_string(), " more"].concat();
    }
    text
}

/// The warnings that the API server accepts, and how many more there are.
pub fn warnings_of<W: Display>(warnings: impl IntoIterator<Item = W>) -> Vec<String> {
    let mut said = Vec::new();
    let mut left = MOST_WARNINGS - ROOM_FOR_MORE;
    let mut more = 0;
    for warning in warnings {
        // Those after the first that does not fit are counted, and not written.
        let text = if more == 0 { warning_of(&warning) } else { String::new() };
        if more == 0 && text.len() <= left {
            left -= text.len();
            said.push(text);
        } else {
            more += 1;
        }
    }
    said.extend((more > 0).then(|| format!("otel-webhook: and {more} more warnings")));
    said
}

/// One warning, truncated and valid in a header: the API server drops those with control characters. They are
/// shown as escapes.
pub fn warning_of(warning: &impl Display) -> String {
    const END: usize = '…'.len_utf8();
    let text = Short { what: warning, longest: LONGEST_WARNING }.to_string();
    let mut text = one_line(text);
    if text.len() > LONGEST_WARNING {
        text.truncate(text.floor_char_boundary(LONGEST_WARNING - END));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_truncated_between_characters() {
        let cut = warning_of(&"ü".repeat(300));
        assert!(cut.len() <= LONGEST_WARNING && cut.ends_with("ü…"), "{cut}");
        let exact = "w".repeat(LONGEST_WARNING);
        assert_eq!(warning_of(&exact), exact);
    }

    #[test]
    fn characters_that_are_not_seen_are_escapes_within_the_bounds() {
        let name = "a\n\u{202e}b";
        assert_eq!(warning_of(&name), "a\\n\\u{202e}b");
        assert_eq!(summary_of([name, "c"]), "a\\n\\u{202e}b c");
        let many = "\u{202e}".repeat(80);
        assert!(warning_of(&many).len() <= LONGEST_WARNING);
        assert!(summary_of(vec![many; 80]).len() <= LONGEST_SUMMARY);
    }

    #[test]
    fn the_warnings_that_do_not_fit_are_counted() {
        let few = warnings_of(["one", "two"]);
        assert_eq!(few, ["one", "two"]);
        let many = warnings_of((0..50_000).map(|index| format!("{index} {}", "w".repeat(300))));
        assert_eq!(many.last().map(String::as_str), Some("otel-webhook: and 49984 more warnings"));
        assert!(many.iter().map(String::len).sum::<usize>() <= MOST_WARNINGS, "{}", many.len());
    }

    #[test]
    fn a_summary_has_the_items_that_fit_and_the_number_of_the_others() {
        assert_eq!(summary_of(["java/app=Injected", "go=WindowsPod"]), "java/app=Injected go=WindowsPod");
        let many = summary_of((0..50_000).map(|index| format!("java/c{index}=Injected")));
        assert!(many.len() <= LONGEST_SUMMARY, "{}", many.len());
        let shown = many.split(' ').filter(|item| item.starts_with("java/")).count();
        assert!(many.ends_with(&format!(" and {} more", 50_000 - shown)), "{many}");
        assert!(sentences_of((0..50_000).map(|index| format!("java {index}: off"))).len() <= LONGEST_SUMMARY);
        assert_eq!(sentences_of(["java: not there", "go: off"]), "java: not there; go: off");
    }
}
