//! Writing JSON text: what goes into a patch is written once, as bytes.

use serde::Serialize;
use wide::u8x16;

/// Appends a JSON string, quoted and escaped.
pub fn string(out: &mut String, text: &str) {
    if is_plain(text) {
        out.reserve(text.len() + 2);
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.reserve(text.len() + text.len() / 4 + 2);
        out.push('"');
        escape(out, text);
        out.push('"');
    }
}

/// Appends a text with what has to be escaped in it escaped.
fn escape(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    // Up to here it is written, and up to there it is known what has to be escaped.
    let (mut written, mut at) = (0, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let mut special = if let Some(sixteen) = rest.first_chunk() {
            specials(sixteen)
        } else {
            let mut last = [b' '; 16];
            last[..rest.len()].copy_from_slice(rest);
            specials(&last)
        };
        while special != 0 {
            let found = at + special.trailing_zeros() as usize;
            out.push_str(&text[written..found]);
            match &text[found..=found] {
                one @ ("\"" | "\\") => out.extend(["\\", one]),
                // So rare that it may take a detour.
                control => out.push_str(of(control).trim_matches('"')),
            }
            written = found + 1;
            special &= special - 1;
        }
        at += 16;
    }
    out.push_str(&text[written..]);
}

/// Appends a member that is a string. The key comes as JSON, with whatever stands before it, such as
/// `{"name":`. Inlined, so that a key that is known when the program is compiled is stored and not copied.
#[inline]
pub fn member(out: &mut String, key: &'static str, text: &str) {
    out.push_str(key);
    string(out, text);
}

/// Whether nothing has to be escaped.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    // What is left over by sixteens or eights is looked at once more, with its neighbours.
    match (bytes.last_chunk::<16>(), bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(last), ..) => bytes.as_chunks().0.iter().chain([last]).all(are_plain),
        (None, Some(first), Some(last)) => {
            let mut both = [0; 16];
            both[..8].copy_from_slice(first);
            both[8..].copy_from_slice(last);
            are_plain(&both)
        }
        _ => bytes.iter().all(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\'),
    }
}

fn are_plain(bytes: &[u8; 16]) -> bool {
    specials(bytes) == 0
}

/// One bit for each byte that has to be escaped, the lowest for the first.
fn specials(bytes: &[u8; 16]) -> u32 {
    let bytes = u8x16::new(*bytes);
    let control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    let special = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
    (control | special).to_bitmask()
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
        for special in [
            "", "plain", "ünï", "\"", "\\", "\n", "\r", "\t", "\0", "\u{8}", "\u{c}", "\u{1f}", "\u{7f}",
            "\"ü\\", " ",
        ] {
            for (before, after) in (0..40).flat_map(|before| [(before, 0), (before, 1), (before, 20)]) {
                let text = ["a".repeat(before).as_str(), special, &"b".repeat(after)].concat();
                let mut out = String::new();
                string(&mut out, &text);
                assert_eq!(out, serde_json::to_string(&text).expect("JSON"));
            }
        }
    }
}
