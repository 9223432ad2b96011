//! Writing JSON text: what goes into a patch is written once, as bytes.

use serde::Serialize;

/// Appends a JSON string, quoted and escaped.
pub fn string(out: &mut String, text: &str) {
    out.push_str(&of(text));
}

/// Appends a member that is a string. The key comes as JSON, with whatever stands before it, such as
/// `{"name":`.
pub fn member(out: &mut String, key: &'static str, text: &str) {
    out.push_str(key);
    string(out, text);
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
