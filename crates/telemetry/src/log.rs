//! Log lines to standard error.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::TryInitError;
use tracing_subscriber::{Layer, layer::SubscriberExt, util::SubscriberInitExt};

use otel_webhook_review::{one_line, one_line_of_json};

/// Levels of kube unless the flag sets them. kube logs each failed attempt of a watch; the store logs a failure
/// once, with the remedy.
const QUIET: &str = "kube_runtime::watcher=error";

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Plain text, coloured on a terminal unless `NO_COLOR` is set
    #[default]
    Text,
    /// One JSON object per line, for log collectors
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
        /// The invalid part.
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
        /// The error of the parser.
        source: ParseError,
    },
    /// Logging was set up before, in the same process.
    #[error("logging is already set up")]
    AlreadySet(#[from] TryInitError),
}

/// The log of the process. Dropping this writes the remaining lines, with a timeout of two seconds.
#[must_use = "buffered lines would be lost"]
#[derive(Debug)]
pub struct Logging {
    writer: Option<WorkerGuard>,
    /// Returns how many lines were dropped because standard error was not read in time.
    pub dropped: ErrorCounter,
}

/// Logs panics instead of printing them: a thread that prints waits for as long as standard error is not read.
pub fn log_panics() {
    panic::set_hook(Box::new(|info| {
        let (message, location) = (info.payload_as_str(), info.location().map(ToString::to_string));
        tracing::error!(panic = message, location, "panicked");
    }));
}

impl Drop for Logging {
    fn drop(&mut self) {
        // The guard waits for a second, and then prints that it was not enough: forever, if standard output is not read
        // either. So it is dropped by another thread, which the process does not wait for when it ends.
        let writer = self.writer.take();
        let (ended, end) = mpsc::channel::<()>();
        let thread = thread::Builder::new().spawn(move || drop((writer, ended)));
        if thread.is_ok() {
            // An error, when the other end is dropped or too late.
            let _ = end.recv_timeout(LAST_LINES);
        }
    }
}

/// How long the end of the process may take because of the log.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The number of buffered lines, of some hundred bytes each. Further lines are dropped and counted, so that a slow
/// reader of the log never delays a review.
const MOST_WAITING: usize = 8 * 1024;

/// Sends the process's log lines of `level` and above to standard error.
///
/// `level` is a level (`info`) or a list of levels by target (`info,kube=debug`). Includes lines of the `log` crate.
///
/// # Errors
/// If `level` is invalid, or logging is already set up.
pub fn init_logging(format: LogFormat, level: &str) -> Result<Logging, LoggingError> {
    let filter = parse_level(level)?;
    let (writer, logging) = writer(io::stderr(), MOST_WAITING);
    let is_coloured = format == LogFormat::Text && io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(Shown { to: writer, format, is_coloured });
    let lines = match format {
        LogFormat::Text if is_coloured => lines.boxed(),
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(logging)
}

/// A writer of log lines that shows characters that are not seen as escapes: names in a line may come from users.
#[derive(Clone)]
struct Shown<W> {
    to: W,
    format: LogFormat,
    /// Whether lines have the escape sequences of colours. Those in values are escaped before.
    is_coloured: bool,
}

impl<W: Write> Write for Shown<W> {
    /// Writes one event, with the line break at its end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (line, end) = text.strip_suffix('\n').map_or((&*text, ""), |line| (line, "\n"));
        let line = match self.format {
            LogFormat::Json => one_line_of_json(line),
            LogFormat::Text if self.is_coloured => {
                let parts: Vec<_> = line.split(ESCAPE).map(one_line).collect();
                parts.join(ESCAPE).into()
            }
            LogFormat::Text => one_line(line).into(),
        };
        self.to.write_all(&[line.as_bytes(), end.as_bytes()].concat())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write + Clone> MakeWriter<'_> for Shown<W> {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The character that begins the escape sequence of a colour.
const ESCAPE: &str = "\u{1b}";

/// Returns a writer that never blocks, and the guard of the thread that writes its lines to `to`.
fn writer(to: impl Write + Send + 'static, most_waiting: usize) -> (NonBlocking, Logging) {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(most_waiting).lossy(true);
    let (writer, guard) = builder.thread_name("log").finish(to);
    let dropped = writer.error_counter();
    (writer, Logging { writer: Some(guard), dropped })
}

fn parse_level(value: &str) -> Result<EnvFilter, LoggingError> {
    // A filter reads a word that is not a level as the name of a target, and then logs only this target: `--log=verbose`
    // would silence the program.
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
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn levels_and_targets_are_parsed() {
        for value in ["off", "error", "WARN", "info", "debug", "trace", "info,kube=debug,hyper=off"] {
            assert!(parse_level(value).is_ok(), "{value}");
        }
    }

    #[test]
    fn kube_does_not_log_watch_failures_unless_its_level_is_set() {
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
    fn a_word_that_is_not_a_level_is_rejected_by_name() {
        for value in ["verbose", "info,verbose"] {
            let error = parse_level(value).expect_err(value).to_string();
            assert!(error.contains(value), "{error}");
            assert!(error.contains("\"verbose\" is not a level"), "{error}");
            assert!(error.contains("off, error, warn, info, debug and trace"), "{error}");
        }
    }

    #[test]
    fn an_empty_level_is_rejected() {
        assert!(matches!(parse_level(""), Err(LoggingError::UnknownLevel { .. })));
    }

    #[test]
    fn an_invalid_level_of_a_target_is_rejected() {
        let error = parse_level("kube=loud").expect_err("loud is no level");
        assert!(matches!(error, LoggingError::BadFilter { .. }), "{error}");
        assert!(error.to_string().contains("\"kube=loud\""), "{error}");
    }

    /// What was written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines that a value makes in a log.
    fn logged(value: &str, format: LogFormat) -> String {
        let written = Written::default();
        let shown = Shown { to: written.clone(), format, is_coloured: false };
        let lines = tracing_subscriber::fmt::layer().with_writer(shown).with_ansi(false).without_time();
        let lines = match format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::error!(name = value, shown = %value, "event");
        });
        String::from_utf8(written.0.lock().expect("no panic").clone()).expect("UTF-8")
    }

    #[test]
    fn a_value_forges_no_line_and_shows_its_hidden_characters() {
        let value = "a\nERROR forged\u{202e}x\u{2028}";
        let text = logged(value, LogFormat::Text);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#"name="a\nERROR forged\u{202e}x\u{2028}""#), "{text}");
        assert!(text.contains(r"shown=a\nERROR forged\u{202e}x\u{2028}"), "{text}");
        let json = logged(value, LogFormat::Json);
        assert!(json.is_ascii() && json.lines().count() == 1, "{json}");
        let line: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&line["name"], &line["shown"]), (&value.into(), &value.into()));
    }

    #[test]
    fn the_level_of_the_program_is_that_of_each_of_its_crates() {
        let written = Written::default();
        let to = written.clone();
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || to.clone());
        let filter = parse_level("error,otel_webhook=debug").expect("valid");
        let registry = tracing_subscriber::registry().with(lines.with_filter(filter));
        tracing::subscriber::with_default(registry, || {
            tracing::debug!(target: "otel_webhook::serve", "one");
            tracing::debug!(target: "otel_webhook_server::listen", "two");
            tracing::debug!(target: "kube_client::client", "three");
        });
        let text = String::from_utf8(written.0.lock().expect("no panic").clone()).expect("UTF-8");
        let last = |line: &str| line.rsplit(' ').next().map(str::to_owned);
        assert_eq!(text.lines().filter_map(last).collect::<Vec<_>>(), ["one", "two"], "{text}");
    }

    #[test]
    fn logging_is_set_up_once() {
        let _logging = init_logging(LogFormat::Json, "off").expect("the first time");
        let again = init_logging(LogFormat::Text, "off");
        assert!(matches!(again, Err(LoggingError::AlreadySet(_))));
    }
}
