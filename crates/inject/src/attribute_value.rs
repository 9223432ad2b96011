//! Resource attributes as they are written to `OTEL_RESOURCE_ATTRIBUTES` (D34).

/// Appends the value of an attribute, percent-encoded.
///
/// The specification requires it for `,` and `=`, which would make other attributes. A `%` that begins no
/// escape would be an error for agents; one that does may have been written by a user who knows the format, and
/// is not encoded again. References such as `$(NODE)` have none of the three, so the kubelet still expands them.
pub fn push_encoded(text: &mut String, value: &str) {
    let mut rest = value;
    while let Some(at) = rest.find([',', '=', '%']) {
        let (before, special) = rest.split_at(at);
        text.push_str(before);
        text.push_str(match special.as_bytes()[0] {
            b',' => "%2C",
            b'=' => "%3D",
            _ if is_escape(special.as_bytes()) => "%",
            _ => "%25",
        });
        rest = &special[1..];
    }
    text.push_str(rest);
}

/// Whether encoding changes a value.
pub fn is_encoded(value: &str) -> bool {
    let mut specials = value.match_indices([',', '=', '%']);
    specials.any(|(at, special)| special != "%" || !is_escape(&value.as_bytes()[at..]))
}

/// Whether a key can be written. Agents do not agree on decoding keys, so that none is encoded.
pub fn is_key(key: &str) -> bool {
    !key.is_empty() && !key.contains([',', '=']) && !key.contains(char::is_control)
}

/// Whether a text that begins with `%` begins with an escape.
pub fn is_escape(text: &[u8]) -> bool {
    text.get(1..3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &str) -> String {
        let mut text = String::new();
        push_encoded(&mut text, value);
        text
    }

    #[test]
    fn what_would_make_another_attribute_is_encoded() {
        for (value, expected) in [
            ("a,b=c", "a%2Cb%3Dc"),
            ("100%", "100%25"),
            ("%4", "%254"),
            ("%zz", "%25zz"),
            ("%%41", "%25%41"),
            ("%\u{fc}1", "%25\u{fc}1"),
            ("%$(A)", "%25$(A)"),
            ("$(A,B)", "$(A%2CB)"),
        ] {
            assert_eq!(encoded(value), expected);
            assert!(is_encoded(value), "{value}");
        }
    }

    #[test]
    fn nothing_is_encoded_twice_and_references_stay() {
        for value in ["", "a%2Cb%3dc", "$(NODE)", "\u{fc} b;c\"d", "%41%"] {
            let once = encoded(value);
            assert_eq!(encoded(&once), once);
            assert_eq!(is_encoded(value), once != value, "{value}");
        }
        assert_eq!(
            encoded("$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME).a"),
            "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME).a"
        );
    }

    #[test]
    fn some_keys_cannot_be_written() {
        for key in ["team", "a.b/c", "a b", "\u{fc}"] {
            assert!(is_key(key), "{key}");
        }
        for key in ["", "a,b", "a=b", "a\nb", "a\u{7f}"] {
            assert!(!is_key(key), "{key:?}");
        }
    }
}
