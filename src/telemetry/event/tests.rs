use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, registry};

use super::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Written {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Events of all kinds, without their times.
fn lines<L>(layer: impl FnOnce(Written) -> L) -> Vec<String>
where
    L: Layer<Registry> + Send + Sync,
{
    let written = Written::default();
    let subscriber = registry().with(layer(written.clone()));
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!("plain");
        let (namespace, owner) = ("a \"b\"\\ü\n", "ReplicaSet/a");
        tracing::warn!(namespace, %owner, injected = true, findings = ?["x"], micros = 5u64, "reviewed");
        tracing::error!(less = -5, half = 0.5, r#type = "raw", "a {} message", "\"formatted\"");
        tracing::debug!(only = "fields");
        tracing::info!(target: "elsewhere", escape = %"ü", "b\u{1b}[0mc\tü");
        tracing::info_span!("span", of = "it").in_scope(|| tracing::trace!("within"));
    });
    let written = written.0.lock().expect("no panic").clone();
    let text = String::from_utf8(written).expect("text");
    assert!(text.ends_with('\n'));
    text.lines().map(without_time).collect()
}

/// Zeros for the digits of the time, and nothing else changed.
fn without_time(line: &str) -> String {
    let start = line.find("20").expect("a year");
    let (before, rest) = line.split_at(start);
    let (time, rest) = rest.split_at("2026-01-01T00:00:00.000000Z".len());
    [before, &time.replace(|char: char| char.is_ascii_digit(), "0"), rest].concat()
}

#[test]
fn text_is_what_tracing_subscriber_writes() {
    let text = || fmt::layer().with_ansi(false);
    let own = lines(|to| text().with_writer(to).map_event_format(|rare| Direct { style: Style::Text, rare }));
    assert_eq!(own, lines(|to| text().with_writer(to)));
    assert!(own[1].starts_with("0000-00-00T00:00:00.000000Z  WARN otel_webhook::telemetry::event::"));
}

#[test]
fn json_is_what_tracing_subscriber_writes() {
    let json = || fmt::layer().json().flatten_event(true);
    let own = lines(|to| json().with_writer(to).map_event_format(|rare| Direct { style: Style::Json, rare }));
    assert_eq!(own, lines(|to| json().with_writer(to)));
    assert!(own.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn what_a_field_says_is_no_command_to_a_terminal() {
    let written = Written::default();
    let layer = fmt::layer().with_ansi(false).with_writer(written.clone());
    let layer = layer.map_event_format(|rare| Direct { style: Style::Text, rare });
    tracing::subscriber::with_default(registry().with(layer), || {
        tracing::info!(shown = %"a\u{1b}[0m\0\u{9b}b", "said");
    });
    let written = written.0.lock().expect("no panic").clone();
    let text = String::from_utf8(written).expect("text");
    assert!(text.ends_with(": said shown=a\\x1b[0m\\x00\\u{9b}b\n"), "{text}");
}

#[test]
fn the_time_is_the_present_one() {
    let before = Timestamp::now();
    let mut text = String::new();
    timestamp(&mut text);
    let read: Timestamp = text.parse().expect("a time");
    let passed = read.duration_since(before).as_micros();
    assert!((-1..1_000_000).contains(&passed), "{text} after {before}");
    assert_eq!(text.len(), "2026-01-01T00:00:00.000000Z".len());
}
