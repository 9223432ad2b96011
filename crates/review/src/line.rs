//! Text for a line of the log or a header.

/// Text without control characters. The API server calls webhooks before it
/// validates names; a line break in one would forge lines of the log.
pub fn one_line(text: impl Into<String>) -> String {
    let text = text.into();
    let is_plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if is_plain { text } else { text.replace(char::is_control, " ") }
}
