//! Writing JSON text: what goes into a patch is written once, as bytes.

use serde::Serialize;

/// Appends a JSON string, quoted and escaped.
pub fn string(out: &mut String, text: &str) {
    if is_plain(text) {
        quoted(out, text);
    } else {
        out.push_str(&of(text));
    }
}

/// Appends `"name":` and a JSON string.
pub fn member(out: &mut String, name: &'static str, text: &str) {
    quoted(out, name);
    out.push(':');
    string(out, text);
}

fn quoted(out: &mut String, plain: &str) {
    out.reserve(plain.len() + 2);
    out.push('"');
    out.push_str(plain);
    out.push('"');
}

/// Whether nothing has to be escaped. Looks at every byte, without an end on
/// the way, which the compiler turns into vector instructions.
fn is_plain(text: &str) -> bool {
    let special = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    text.bytes().fold(0, |any, byte| any | special(byte)) == 0
}

/// The JSON of a value that cannot fail to be one.
pub fn of<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("strings, numbers and JSON values are JSON")
}

/// Appends the items as a list, parted by commas.
pub fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, write: impl Fn(&mut String, T)) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_where_they_must_be() {
        for text in ["", "plain", "ünï", "\"quoted\"", "back\\slash", "line\nbreak", "\u{1}"] {
            let mut out = String::new();
            string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).expect("a string"), text);
        }
    }
}
