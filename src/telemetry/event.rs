//! One event as a log line, as `tracing-subscriber` itself writes it but in a fraction of the time: there
//! each field goes through several layers of formatting, which is a twentieth of what a review costs.
//! Text differs in two things: control characters are escaped in all fields, not in the message alone, and
//! an error does not bring its sources.
//!
//! What is rare is left to `tracing-subscriber`: events within spans, and those of the `log` crate.

use std::cell::RefCell;
use std::fmt::{self, Debug, Write as _};

use jiff::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Writes events, and leaves the rare ones to another format, which writes them alike.
#[derive(Debug)]
pub struct Direct<F> {
    pub style: Style,
    pub rare: F,
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `2026-01-01T00:00:00.000000Z  INFO target: message field=value`, without colours.
    Text,
    /// One JSON object, with the fields of the event between those of all events.
    Json,
}

impl<S, N, F> FormatEvent<S, N> for Direct<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let has_span = event.parent().is_some() || context.lookup_current().is_some();
        if has_span || metadata.target() == "log" {
            return self.rare.format_event(context, writer, event);
        }
        let mut line = Line { text: String::with_capacity(384), style: self.style, is_first: true };
        line.begin(*metadata.level(), metadata.target());
        event.record(&mut line);
        line.end(metadata.target());
        writer.write_str(&line.text)
    }
}

/// A line that is being written.
struct Line {
    text: String,
    style: Style,
    /// Whether no field has come yet.
    is_first: bool,
}

impl Line {
    fn begin(&mut self, level: Level, target: &str) {
        match self.style {
            Style::Text => {
                timestamp(&mut self.text);
                self.text.push_str(match level {
                    Level::ERROR => " ERROR ",
                    Level::WARN => "  WARN ",
                    Level::INFO => "  INFO ",
                    Level::DEBUG => " DEBUG ",
                    Level::TRACE => " TRACE ",
                });
                self.text.push_str(target);
                self.text.push_str(": ");
            }
            Style::Json => {
                self.text.push_str("{\"timestamp\":\"");
                timestamp(&mut self.text);
                self.text.push_str("\",\"level\":\"");
                self.text.push_str(level.as_str());
                self.text.push('"');
            }
        }
    }

    fn end(&mut self, target: &str) {
        if self.style == Style::Json {
            self.text.push_str(",\"target\":");
            self.json(target);
            self.text.push('}');
        }
        self.text.push('\n');
    }

    /// What stands before the value of a field.
    fn name(&mut self, field: &Field) {
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        match self.style {
            Style::Text => {
                if !self.is_first {
                    self.text.push(' ');
                }
                if name != "message" {
                    self.text.push_str(name);
                    self.text.push('=');
                }
            }
            Style::Json => {
                self.text.push_str(",\"");
                self.text.push_str(name);
                self.text.push_str("\":");
            }
        }
        self.is_first = false;
    }

    fn json(&mut self, value: &str) {
        self.text.push_str(&serde_json::to_string(value).unwrap_or_default());
    }

    fn number(&mut self, field: &Field, number: impl fmt::Display) {
        self.name(field);
        let _ = write!(self.text, "{number}");
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        let start = self.text.len();
        let _ = write!(self.text, "{value:?}");
        match self.style {
            Style::Text if self.text.as_bytes()[start..].iter().copied().all(is_harmless) => {}
            Style::Text => {
                let written = self.text.split_off(start);
                written.chars().for_each(|char| escape(&mut self.text, char));
            }
            Style::Json => {
                let written = self.text.split_off(start);
                self.json(&written);
            }
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match self.style {
            Style::Text if field.name() == "message" => self.record_debug(field, &format_args!("{value}")),
            Style::Text => self.record_debug(field, &value),
            Style::Json => {
                self.name(field);
                self.json(value);
            }
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match self.style {
            Style::Text => self.record_debug(field, &value),
            Style::Json => {
                self.name(field);
                self.text.push_str(&serde_json::json!(value).to_string());
            }
        }
    }
}

fn is_harmless(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte)
}

/// Keeps what a value says from being taken for commands by a terminal. Line breaks stay: messages of panics
/// have them.
fn escape(text: &mut String, char: char) {
    match char {
        '\n' | '\r' | '\t' => text.push(char),
        '\0'..' ' | '\x7f' => drop(write!(text, "\\x{:02x}", u32::from(char))),
        '\u{80}'..'\u{a0}' => text.extend(char.escape_unicode()),
        _ => text.push(char),
    }
}

thread_local! {
    /// The last second that a line was written in, and how it is written.
    static SECOND: RefCell<(i64, String)> = RefCell::default();
}

/// Appends the time: RFC 3339, with microseconds, in UTC.
fn timestamp(text: &mut String) {
    let now = Timestamp::now();
    SECOND.with_borrow_mut(|(second, written)| {
        if *second != now.as_second() || written.is_empty() {
            *second = now.as_second();
            *written = now.strftime("%FT%T").to_string();
        }
        text.push_str(written);
    });
    text.push('.');
    let micros = now.subsec_nanosecond().unsigned_abs() / 1_000;
    for place in [100_000, 10_000, 1_000, 100, 10, 1] {
        text.push(char::from_digit(micros / place % 10, 10).unwrap_or('0'));
    }
    text.push('Z');
}

#[cfg(test)]
mod tests;
