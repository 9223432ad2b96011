//! Values and names in messages.

use std::fmt;

use serde_json::Value;

/// The maximum length of a value in a message, in characters.
const SHOWN: usize = 80;

/// A string in quotes, truncated if it is long.
pub fn quoted(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return format!("{text:?}");
    }
    format!("{:?} ({length} characters)", shortened(text))
}

/// A string, truncated if it is long.
pub fn shortened(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}

/// A value for a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        plain => plain.to_string(),
    }
}

/// ` (did you mean "…"?)` if one of the valid words is similar to the given one, else empty.
pub fn suggestion<'v>(written: &str, valid: impl IntoIterator<Item = &'v str>) -> String {
    nearest(written, valid).map(|word| format!(" (did you mean {word:?}?)")).unwrap_or_default()
}

/// The most similar word, if at most a third of its letters differ.
pub fn nearest<'v>(written: &str, valid: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
    // The time is the product of the lengths, and a long string is no misspelt word.
    if written.len() > SHOWN {
        return None;
    }
    let plain = |word: &str| word.trim().to_lowercase().replace('-', "_");
    let written = plain(written);
    let distance = |word: &str| strsim::levenshtein(&written, &plain(word));
    let candidates = valid.into_iter().filter(|word| !word.is_empty()).map(|word| (distance(word), word));
    let (distance, word) = candidates.min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= word.chars().count()).then_some(word)
}

/// A comma-separated list.
pub fn list<'v>(words: impl IntoIterator<Item = &'v str>) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Whether a string is a valid object name.
pub fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        label.chars().all(is_inner) && is_end(label.chars().next()) && is_end(label.chars().last())
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether a string is a qualified name, as of a label, an annotation or a resource: a word,
/// or a domain, `/` and a word.
pub fn is_qualified(name: &str) -> bool {
    let (domain, word) = name.split_once('/').map_or((None, name), |(domain, word)| (Some(domain), word));
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    domain.is_none_or(is_dns_name)
        && word.len() <= 63
        && word.chars().all(is_inner)
        && is_end(word.chars().next())
        && is_end(word.chars().last())
}

/// The path of a field, each part with a reference to its parent.
#[derive(Clone, Copy, Debug)]
pub enum Path<'p> {
    /// The root, such as `spec`.
    Root(&'p str),
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An item of a list.
    Item(&'p Self, usize),
}

impl<'p> Path<'p> {
    /// The path of a member.
    pub fn member(&'p self, name: &'p str) -> Self {
        Path::Member(self, name)
    }

    /// The path of an item.
    pub fn item(&'p self, index: usize) -> Self {
        Path::Item(self, index)
    }

    /// The last name, and the one of its parent, without positions.
    pub fn last_names(&self) -> (&'p str, &'p str) {
        match self {
            Path::Root(name) => (name, ""),
            Path::Member(above, name) => (name, above.last_names().0),
            Path::Item(list, _) => list.last_names(),
        }
    }
}

impl fmt::Display for Path<'_> {
    /// Keys of maps that contain dots are in brackets, as the API server writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(name) => f.write_str(name),
            Path::Item(list, index) => write!(f, "{list}[{index}]"),
            Path::Member(above, name) => {
                let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                if is_plain {
                    write!(f, "{above}.{name}")
                } else {
                    // A line break in a key must not begin a new line of the log.
                    write!(f, "{above}[{}]", name.escape_debug())
                }
            }
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_word_is_suggested() {
        let words = ["always_on", "always_off", "traceidratio"];
        for (written, expected) in [
            ("always-on", Some("always_on")),
            (" always_on", Some("always_on")),
            ("ALWAYS_OFF", Some("always_off")),
            ("traceidration", Some("traceidratio")),
            ("sometimes", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, words), expected, "{written}");
        }
    }

    #[test]
    fn long_values_are_truncated() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        let long = quoted(&"ü".repeat(100));
        assert!(long.ends_with("ü…\" (100 characters)"), "{long}");
    }

    #[test]
    fn object_names_follow_the_rules_of_kubernetes() {
        for name in ["a", "my-inst", "a.b-c.0"] {
            assert!(is_dns_name(name), "{name}");
        }
        for name in ["", "A", "-a", "a-", "a..b", "a_b", &"a".repeat(254)] {
            assert!(!is_dns_name(name), "{name}");
        }
    }

    #[test]
    fn qualified_names_may_have_a_domain() {
        for name in ["app", "app.kubernetes.io/name", "A_b.c-d", "example.com/GPU"] {
            assert!(is_qualified(name), "{name}");
        }
        for name in ["", "/a", "a/", "a/b/c", "a b", "-a", "a..b/c", "Example.com/a", &"a".repeat(64)] {
            assert!(!is_qualified(name), "{name}");
        }
    }

    #[test]
    fn a_path_is_written_as_the_api_server_writes_it() {
        let root = Path::Root("spec");
        let list = root.member("env");
        let item = list.item(3);
        assert_eq!(item.member("value_from").to_string(), "spec.env[3].value_from");
        assert_eq!(root.member("example.com/gpu").to_string(), "spec[example.com/gpu]");
        assert_eq!(root.member("a\nb").to_string(), r"spec[a\nb]");
        assert_eq!(item.last_names(), ("env", "spec"));
    }
}
