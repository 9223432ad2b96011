//! Log lines to standard error.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::util::TryInitError;
use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};

/// What of kube is logged at the usual levels. It says of a watch that fails for
/// want of permission so at each attempt; the store says it, and what to do.
const QUIET: &str = "kube_runtime::watcher=error";

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people, coloured on a terminal unless `NO_COLOR` is set.
    #[default]
    Text,
    /// One JSON object a line, for log collectors.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// A part of the level is neither a level nor `target=level`.
    #[error(
        "log level {value:?}: {part:?} is not a level; valid are off, error, warn, info, debug and trace, \
         each alone or for a target (`info,kube=debug`)"
    )]
    UnknownLevel {
        /// The level as given.
        value: String,
        /// The part of it that is not understood.
        part: String,
    },
    /// The level is not a list of filter directives.
    #[error(
        "log level {value:?} is not a filter such as `info` or `info,kube=debug`, with the levels \
         off, error, warn, info, debug and trace"
    )]
    BadFilter {
        /// The level as given.
        value: String,
        /// What the parser of filters says.
        source: ParseError,
    },
    /// Logging was set up before, in the same process.
    #[error("logging is already set up")]
    AlreadySet(#[from] TryInitError),
}

/// The log of the process. What still waits is written when this is dropped, as far as
/// standard error takes it within a second.
#[must_use = "lines that wait would be lost"]
#[derive(Debug)]
pub struct Logging {
    _writer: WorkerGuard,
    /// How many lines were dropped, since whatever reads them did not keep up.
    pub dropped: ErrorCounter,
}

/// Lines that may wait to be written, some hundred bytes each. Further ones are dropped and
/// counted: a slow reader of the log never delays a review.
const MOST_WAITING: usize = 8 * 1024;

/// Sends the process's log lines of `level` and above to standard error.
///
/// `level` is a level (`info`) or a list of levels by target (`info,kube=debug`). Lines of the
/// `log` crate are taken too.
///
/// # Errors
/// When `level` is not understood, or logging was set up before.
pub fn init_logging(format: LogFormat, level: &str) -> Result<Logging, LoggingError> {
    let filter = parse_level(level)?;
    let (writer, logging) = writer(io::stderr(), MOST_WAITING);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match format {
        LogFormat::Text if io::stderr().is_terminal() => lines.boxed(),
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(logging)
}

/// A writer that never waits, and what writes its lines to `to`.
fn writer(to: impl io::Write + Send + 'static, most_waiting: usize) -> (NonBlocking, Logging) {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(most_waiting).lossy(true);
    let (writer, guard) = builder.thread_name("log").finish(to);
    let dropped = writer.error_counter();
    (writer, Logging { _writer: guard, dropped })
}

fn parse_level(value: &str) -> Result<EnvFilter, LoggingError> {
    // A filter takes a bare word that is no level for the name of a target, and then logs nothing
    // but that target: `--log-level=verbose` would silence the program.
    let unknown = value
        .split(',')
        .map(str::trim)
        .find(|part| part.is_empty() || !part.contains(['=', '[']) && part.parse::<LevelFilter>().is_err());
    if let Some(part) = unknown {
        return Err(LoggingError::UnknownLevel { value: value.to_owned(), part: part.to_owned() });
    }
    let filter = EnvFilter::builder()
        .parse(value)
        .map_err(|source| LoggingError::BadFilter { value: value.to_owned(), source })?;
    let is_usual = [LevelFilter::WARN, LevelFilter::INFO].map(Some).contains(&filter.max_level_hint());
    let quiet = QUIET.parse().ok().filter(|_| is_usual && !value.contains("kube"));
    Ok(quiet.into_iter().fold(filter, EnvFilter::add_directive))
}

#[cfg(test)]
mod tests {
    use std::{io::Write, sync::mpsc};

    use super::*;
    use crate::telemetry::Metrics;

    #[test]
    fn levels_and_targets_are_understood() {
        for value in ["off", "error", "WARN", "info", "debug", "trace", "info,kube=debug,hyper=off"] {
            assert!(parse_level(value).is_ok(), "{value}");
        }
    }

    #[test]
    fn failures_of_watches_are_left_to_the_store_unless_kube_is_asked_for() {
        for (value, expected) in [
            ("info", true),
            ("warn", true),
            ("info,otel_webhook=warn", true),
            ("off", false),
            ("error", false),
            ("debug", false),
            ("info,kube=debug", false),
            ("info,kube_runtime=warn", false),
        ] {
            let filter = parse_level(value).expect(value).to_string();
            assert_eq!(filter.contains(QUIET), expected, "{value}: {filter}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_by_name() {
        for value in ["verbose", "info,verbose"] {
            let error = parse_level(value).expect_err(value).to_string();
            assert!(error.contains(value), "{error}");
            assert!(error.contains("\"verbose\" is not a level"), "{error}");
            assert!(error.contains("off, error, warn, info, debug and trace"), "{error}");
        }
    }

    #[test]
    fn an_empty_level_is_refused() {
        assert!(matches!(parse_level(""), Err(LoggingError::UnknownLevel { .. })));
    }

    #[test]
    fn a_level_that_no_target_can_have_is_refused() {
        let error = parse_level("kube=loud").expect_err("loud is no level");
        assert!(matches!(error, LoggingError::BadFilter { .. }), "{error}");
        assert!(error.to_string().contains("\"kube=loud\""), "{error}");
    }

    /// Nobody reads what is written to it, until the other end is dropped.
    struct Unread(mpsc::Receiver<()>);

    impl Write for Unread {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_nobody_reads_delays_nobody_and_what_is_dropped_is_counted() {
        let (reader, unread) = mpsc::channel();
        let (mut writer, logging) = writer(Unread(unread), 1);
        for _ in 0..10 {
            writer.write_all(b"line\n").expect("never waits");
        }
        // One may be on its way, and one waits.
        let dropped = logging.dropped.dropped_lines();
        assert!((8..10).contains(&dropped), "{dropped}");
        let line = format!("otel_webhook_log_lines_dropped_total {dropped}");
        let text = Metrics::new().with_log(&logging).encode();
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        drop(reader);
    }

    #[test]
    fn logging_is_set_up_once() {
        let _logging = init_logging(LogFormat::Json, "off").expect("the first time");
        let again = init_logging(LogFormat::Text, "off");
        assert!(matches!(again, Err(LoggingError::AlreadySet(_))));
    }
}
