//! What the process tells about itself: log lines to standard error, and metrics.
//!
//! Uses nothing else of this crate, so that everything else may use it.

mod event;
mod lines;
mod managed;
mod metrics;
mod process;

pub use lines::Flushing;
pub use managed::{ManagedMetrics, ManagedOperation};
pub use metrics::{Metrics, ReviewOutcome};

use std::io::{self, IsTerminal};

use event::{Direct, Style};
use lines::Lines;
use thiserror::Error;
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
    /// The thread that writes the lines cannot be had.
    #[error("no thread to write log lines: {0}")]
    NoThread(#[from] io::Error),
}

/// Sends the process's log lines of `level` and above to standard error.
///
/// `level` is a level (`info`) or a list of levels by target (`info,kube=debug`). Lines of the
/// `log` crate are taken too. Lines may wait for some milliseconds, but none is left when what is
/// returned is dropped.
///
/// # Errors
/// When `level` is not understood, or logging was set up before.
pub fn init_logging(format: LogFormat, level: &str) -> Result<Flushing, LoggingError> {
    let filter = parse_level(level)?;
    let writer = Lines::start(Box::new(io::stderr()))?;
    let flushing = writer.flushing();
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match format {
        LogFormat::Text if io::stderr().is_terminal() => lines.boxed(),
        LogFormat::Text => {
            let direct = |rare| Direct { style: Style::Text, rare };
            lines.with_ansi(false).map_event_format(direct).boxed()
        }
        LogFormat::Json => {
            let direct = |rare| Direct { style: Style::Json, rare };
            lines.json().flatten_event(true).map_event_format(direct).boxed()
        }
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(flushing)
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
    use super::*;

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

    #[test]
    fn logging_is_set_up_once() {
        let _flushing = init_logging(LogFormat::Json, "off").expect("the first time");
        let again = init_logging(LogFormat::Text, "off");
        assert!(matches!(again, Err(LoggingError::AlreadySet(_))));
    }
}
