//! Where the controller asks what arrives, and `heard`, which prints the configuration of a Collector that can be asked.

use std::{io::Write, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use hyper::Uri;
use jiff::SignedDuration;

use super::{
    names::duration,
    output::{Failure, finish},
    pace::signed,
};
use otel_webhook_controller::{Asked, HeardSettings, QUERY};
use otel_webhook_fleet::heard::Signals;
use otel_webhook_inject::reason::ObjectName;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  # What to add to a Collector for controller --heard-source=collector
  otel-webhook heard --print-collector-config";

const COLLECTOR_CONFIG: &str = include_str!("heard/collector.yaml");

/// Flags of `heard`.
#[derive(Debug, Args)]
pub struct HeardArgs {
    /// Print what to add to the configuration of a Collector, so that the controller can ask it
    #[arg(long, required = true)]
    print_collector_config: bool,
}

/// Prints the configuration.
///
/// # Errors
/// If it cannot be written.
pub fn run(_: &HeardArgs) -> Result<ExitCode, Failure> {
    finish(std::io::stdout().write_all(COLLECTOR_CONFIG.as_bytes()), ExitCode::SUCCESS)
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The query API of Prometheus, as Mimir and Thanos have it too
    Prometheus,
    /// A Prometheus endpoint of a Collector (otel-webhook heard --print-collector-config)
    Collector,
}

/// Telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Signal {
    Metrics,
    Spans,
}

/// Flags of where it is asked what arrives.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whether data arrives")]
pub struct HeardFlags {
    /// What is asked whether data of injected pods arrives; without it, that is not known
    #[arg(long = "heard-source", env = "OTEL_WEBHOOK_HEARD_SOURCE", value_enum, requires = "url")]
    source: Option<Source>,

    /// URL of the source: what precedes /api/v1/query, or the endpoint of the Collector
    #[arg(long = "heard-url", id = "url", env = "OTEL_WEBHOOK_HEARD_URL", value_name = "URL", value_parser = url,
        requires = "source")]
    url: Option<Uri>,

    /// Query, in the language of Prometheus. The instances are the labels `instance`, `exported_instance` and `service_instance_id` of its
    /// result
    #[arg(long = "heard-query", env = "OTEL_WEBHOOK_HEARD_QUERY", value_name = "QUERY", default_value = QUERY)]
    query: String,

    /// What the source shows: pods that send nothing of it are not reported as silent [default: metrics for
    /// prometheus, metrics,spans for collector]
    #[arg(
        long = "heard-signals",
        env = "OTEL_WEBHOOK_HEARD_SIGNALS",
        value_enum,
        value_name = "LIST",
        value_delimiter = ','
    )]
    signals: Vec<Signal>,

    /// Time between two requests
    #[arg(long = "heard-interval", env = "OTEL_WEBHOOK_HEARD_INTERVAL", value_name = "DURATION", default_value = "30s",
        value_parser = duration)]
    interval: std::time::Duration,

    /// How long a pod that is Ready may send nothing before it is reported as silent; longer than the agents' interval
    /// of export, 1 minute by default
    #[arg(long = "heard-patience", env = "OTEL_WEBHOOK_HEARD_PATIENCE", value_name = "DURATION", default_value = "5m",
        value_parser = signed)]
    patience: SignedDuration,

    /// File with the CA bundle that verifies the source; by default that of the system, which the image does not have
    #[arg(long = "heard-ca-file", env = "OTEL_WEBHOOK_HEARD_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// File with a bearer token for the source
    #[arg(long = "heard-token-file", env = "OTEL_WEBHOOK_HEARD_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl HeardFlags {
    /// Returns what the flags say; `None` without a source.
    pub fn settings(&self, lease: &ObjectName) -> Option<HeardSettings> {
        let (source, url) = self.source.zip(self.url.clone())?;
        let (asked, signals) = match source {
            Source::Prometheus => (Asked::Prometheus(self.query.clone()), vec![Signal::Metrics]),
            Source::Collector => (Asked::Collector, vec![Signal::Metrics, Signal::Spans]),
        };
        let signals = if self.signals.is_empty() { &signals } else { &self.signals };
        Some(HeardSettings {
            asked,
            url,
            interval: self.interval,
            patience: self.patience,
            signals: Signals {
                metrics: signals.contains(&Signal::Metrics),
                spans: signals.contains(&Signal::Spans),
            },
            ca: self.ca_file.clone(),
            token: self.token_file.clone(),
            lease: lease.clone(),
        })
    }
}

/// User and password would be in the arguments of a pod, which many may read.
fn url(text: &str) -> Result<Uri, String> {
    let parsed = text.parse::<Uri>().ok();
    let is_valid = |url: &Uri| {
        let scheme = url.scheme_str().is_some_and(|scheme| ["http", "https"].contains(&scheme));
        scheme
            && url.authority().is_some_and(|authority| !authority.as_str().contains('@'))
            && url.query().is_none()
    };
    parsed.filter(is_valid).ok_or_else(|| {
        "expected a URL such as http://prometheus.monitoring:9090, without user, password and query"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        flags: HeardFlags,
    }

    fn settings(arguments: &[&str]) -> Result<Option<HeardSettings>, String> {
        let flags =
            Flags::try_parse_from([&["heard"], arguments].concat()).map_err(|error| error.to_string())?;
        Ok(flags.flags.settings(&ObjectName { namespace: "otel".into(), name: "lease".into() }))
    }

    #[test]
    fn a_source_needs_a_url_and_says_what_it_shows() {
        assert!(settings(&[]).expect("valid").is_none());
        let prometheus = ["--heard-source=prometheus", "--heard-url=https://metrics/mimir"];
        let found = settings(&prometheus).expect("valid").expect("a source");
        assert_eq!(found.asked, Asked::Prometheus(QUERY.to_owned()));
        assert_eq!(found.signals, Signals { metrics: true, spans: false });
        let spans = settings(&[&prometheus[..], &["--heard-signals=spans"]].concat()).expect("valid");
        assert_eq!(spans.expect("a source").signals, Signals { metrics: false, spans: true });
        let found = settings(&["--heard-source=collector", "--heard-url=http://c:8889/metrics"]);
        assert_eq!(found.expect("valid").expect("a source").signals, Signals { metrics: true, spans: true });
        for (arguments, expected) in [
            (&["--heard-source=prometheus"][..], "--heard-url"),
            (&["--heard-url=http://a"], "--heard-source"),
            (&["--heard-source=prometheus", "--heard-url=ftp://a"], "expected a URL such as"),
            (&["--heard-source=prometheus", "--heard-url=http://user:password@a"], "expected a URL such as"),
        ] {
            let problem = settings(arguments).expect_err("invalid");
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
