//! The text of the annotation that lists the problems, for `kubectl describe pod`.
//!
//! It has the sentences of the warnings. `kubectl describe` truncates each line of an
//! annotation, so they are wrapped.

use super::{finding::Finding, line::one_line, warning::warnings_of};

/// The maximum length of the text, in bytes.
pub const LONGEST: usize = 2048;

/// The maximum length of a line, in bytes, unless a word is longer: `kubectl describe` shows 138 characters of
/// each.
const LONGEST_LINE: usize = 130;

/// The room that is kept for the number of the sentences that are left out.
const ROOM_FOR_MORE: usize = 40;

/// The sentences of all warnings, each on its own lines; `None` if there is no warning.
pub fn of(findings: &[Finding]) -> Option<String> {
    let mut text = String::new();
    let mut more = 0;
    for warning in warnings_of(findings) {
        // Those after the first that does not fit are counted, and not written.
        let wrapped = if more == 0 { wrapped(&one_line(warning.to_string())) } else { String::new() };
        let first = text.is_empty();
        if more == 0 && text.len() + wrapped.len() < LONGEST - ROOM_FOR_MORE {
            text.extend((!first).then_some('\n'));
            text += &wrapped;
        } else if first {
            text = cut(wrapped);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        text.extend(["\nand ", &more.to_string(), " more warnings"]);
    }
    (!text.is_empty()).then_some(text)
}

/// The beginning of a single sentence that is too long.
fn cut(mut sentence: String) -> String {
    sentence.truncate(sentence.floor_char_boundary(LONGEST - ROOM_FOR_MORE - '…'.len_utf8()));
    sentence.push('…');
    sentence
}

/// A sentence in lines that `kubectl describe` shows whole.
fn wrapped(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len());
    let mut length = 0;
    for word in sentence.split(' ') {
        let fits = length + 1 + word.len() <= LONGEST_LINE;
        if !text.is_empty() {
            text.push(if fits { ' ' } else { '\n' });
        }
        length = if fits { length + 1 + word.len() } else { word.len() };
        text += word;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{ObjectName, Reason, Unknown};
    use crate::shown::Names;

    fn finding(language: &'static str, reason: Reason) -> Finding {
        Finding { language, agent: None, container: None, instrumentation: None, reason, notes: Vec::new() }
    }

    fn missing(namespace: &str) -> Reason {
        let name = ObjectName { namespace: namespace.into(), name: "ordr".into() };
        Reason::InstrumentationNotFound { name, known: Names::of(["order"]) }
    }

    #[test]
    fn there_is_none_if_nothing_is_amiss() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[finding("java", Reason::Injected), finding("go", Reason::NothingToAdd)]), None);
    }

    #[test]
    fn it_has_the_sentence_of_each_warning() {
        let disabled = Reason::LanguageDisabled { language: "go" };
        let text = of(&[finding("java", missing("shop")), finding("go", disabled)]);
        let expected = "java: Instrumentation \"shop/ordr\" not found; its namespace has: order\n\
                        go: the language go is not enabled in this installation; --languages lists the enabled ones";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[test]
    fn lines_are_short_enough_for_kubectl_describe() {
        let known = Names::of((0..60).map(|index| format!("container-{index}")));
        let reason = Reason::ContainerNotFound { container: Unknown::One("ghost".to_owned()), known };
        let text = of(&[finding("java", reason.clone())]).expect("a warning");
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.len() <= LONGEST_LINE), "{text}");
        assert_eq!(text.replace('\n', " "), format!("java: {reason}"));
    }

    #[test]
    fn it_is_bounded_and_counts_the_others() {
        let languages = ["java", "nodejs", "python", "dotnet", "go", "apache-httpd", "nginx", "sdk"];
        for length in [10, 200, 1000, 100_000] {
            let findings = languages.map(|language| finding(language, missing(&"ü".repeat(length))));
            let text = of(&findings).expect("warnings");
            assert!(text.len() <= LONGEST, "{}", text.len());
            let said = text.lines().filter(|line| line.contains(": Instrumentation")).count();
            let more = languages.len() - said;
            assert!(more == 0 || text.ends_with(&format!("\nand {more} more warnings")), "{said} {text}");
        }
    }

    #[test]
    fn characters_that_are_not_seen_are_escapes() {
        let text = of(&[finding("java", missing("a\n\u{202e}b"))]).expect("a warning");
        assert!(text.contains("\"a\\n\\u{202e}b/ordr\""), "{text}");
    }
}
