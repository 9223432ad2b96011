//! Every metric of the process, and its text for Prometheus.

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::log::Logging;
use super::managed::ManagedMetrics;
use super::process::{DroppedLines, ProcessCollector};

/// Seconds. The core takes tens of microseconds; what is above a millisecond waited for something.
const REVIEW_BUCKETS: [f64; 14] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
];

/// How the answer to a review came out, as the label `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReviewOutcome {
    /// An `AdmissionReview` was answered.
    Answered,
    /// The body could not be read as a review.
    Malformed,
    /// The body was not declared as JSON.
    WrongContentType,
    /// The body was larger than any review.
    TooLarge,
    /// The body did not come, or not in time.
    Incomplete,
    /// Handling the review panicked.
    Panicked,
}

impl ReviewOutcome {
    /// All of them, so that each is shown from the start: a rate needs a zero to begin with.
    pub const ALL: [Self; 6] = [
        Self::Answered,
        Self::Malformed,
        Self::WrongContentType,
        Self::TooLarge,
        Self::Incomplete,
        Self::Panicked,
    ];

    /// The value of the label; part of the program's interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Malformed => "Malformed",
            Self::WrongContentType => "WrongContentType",
            Self::TooLarge => "TooLarge",
            Self::Incomplete => "Incomplete",
            Self::Panicked => "Panicked",
        }
    }
}

impl EncodeLabelValue for ReviewOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    endpoint: &'static str,
    outcome: ReviewOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InjectionLabels {
    language: &'static str,
    outcome: &'static str,
}

/// The metrics of the process. Shared by `Arc`; every method is cheap enough for the request path.
///
/// Labels are `&'static str` or closed sets on purpose: nothing that a client sends can become a
/// label, so the number of series is bounded.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<ReviewLabels, Counter>,
    injections: Family<InjectionLabels, Counter>,
    review_duration: Histogram,
    instrumentations: Gauge<i64, AtomicI64>,
    namespaces: Gauge<i64, AtomicI64>,
    last_event: Gauge<i64, AtomicI64>,
    certificate_expiry: Gauge<i64, AtomicI64>,
    certificate_reload_failures: Counter,
    tls_handshake_failures: Counter,
    /// Of certificates that look after themselves.
    pub managed: ManagedMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The content type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All metrics at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            reviews: Family::default(),
            injections: Family::default(),
            review_duration: Histogram::new(REVIEW_BUCKETS),
            instrumentations: Gauge::default(),
            namespaces: Gauge::default(),
            last_event: Gauge::default(),
            certificate_expiry: Gauge::default(),
            certificate_reload_failures: Counter::default(),
            tls_handshake_failures: Counter::default(),
            managed: ManagedMetrics::default(),
        };
        metrics.register_reviews();
        metrics.register_state();
        metrics.managed.register(&mut metrics.registry);
        metrics.register_process();
        metrics
    }

    fn register_reviews(&mut self) {
        self.registry.register(
            "otel_webhook_reviews",
            "Requests to the webhook by endpoint and by how the answer came out",
            self.reviews.clone(),
        );
        self.registry.register(
            "otel_webhook_injections",
            "Decisions by language and by the code of their reason; a pod that is reviewed again counts as AlreadyInjected alone",
            self.injections.clone(),
        );
        self.registry.register(
            "otel_webhook_review_duration_seconds",
            "Time from the head of a request to the answer, the arrival of its body included",
            self.review_duration.clone(),
        );
    }

    fn register_state(&mut self) {
        self.registry.register(
            "otel_webhook_instrumentations",
            "Instrumentations that are known",
            self.instrumentations.clone(),
        );
        self.registry.register(
            "otel_webhook_namespaces",
            "Namespaces that are known",
            self.namespaces.clone(),
        );
        self.registry.register(
            "otel_webhook_last_event_timestamp_seconds",
            "When the source last told anything, in seconds since 1970; its age is time() less this",
            self.last_event.clone(),
        );
        self.registry.register(
            "otel_webhook_certificate_expiry_timestamp_seconds",
            "When the serving certificate expires, in seconds since 1970",
            self.certificate_expiry.clone(),
        );
        self.registry.register(
            "otel_webhook_certificate_reload_failures",
            "Times that the certificate files were looked at and could not be used",
            self.certificate_reload_failures.clone(),
        );
        self.registry.register(
            "otel_webhook_tls_handshake_failures",
            "Connections that ended before their TLS handshake was done",
            self.tls_handshake_failures.clone(),
        );
    }

    fn register_process(&mut self) {
        self.registry.register(
            "otel_webhook_build",
            "The program that runs",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        self.registry.register_collector(Box::new(ProcessCollector));
    }

    /// The same with the lines that the log dropped.
    #[must_use]
    pub fn with_log(mut self, logging: &Logging) -> Self {
        self.registry.register_collector(Box::new(DroppedLines(logging.dropped.clone())));
        self
    }

    /// Shows all outcomes of `endpoint` as zero, before the first request to it.
    pub fn expect_reviews(&self, endpoint: &'static str) {
        for outcome in ReviewOutcome::ALL {
            drop(self.reviews.get_or_create(&ReviewLabels { endpoint, outcome }));
        }
    }

    /// Counts one request to `endpoint` (its path), which took `duration`.
    pub fn count_review(&self, endpoint: &'static str, outcome: ReviewOutcome, duration: Duration) {
        self.reviews.get_or_create(&ReviewLabels { endpoint, outcome }).inc();
        self.review_duration.observe(duration.as_secs_f64());
    }

    /// Counts one decision for `language`; `outcome` is the stable code of its reason.
    pub fn count_injection(&self, language: &'static str, outcome: &'static str) {
        self.injections.get_or_create(&InjectionLabels { language, outcome }).inc();
    }

    /// Sets how many Instrumentations and namespaces are known, as of now.
    pub fn set_store(&self, instrumentations: usize, namespaces: usize) {
        let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.instrumentations.set(count(instrumentations));
        self.namespaces.set(count(namespaces));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_event.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }

    /// Sets when the serving certificate expires, in seconds since 1970.
    pub fn set_certificate_expiry(&self, seconds: i64) {
        self.certificate_expiry.set(seconds);
    }

    /// Counts one look at certificate files that could not be used.
    pub fn count_certificate_reload_failure(&self) {
        self.certificate_reload_failures.inc();
    }

    /// Counts one TLS handshake that failed or took too long.
    pub fn count_tls_handshake_failure(&self) {
        self.tls_handshake_failures.inc();
    }

    /// All metrics as text for a scrape, of the type [`Metrics::CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, and a scrape is no reason to panic should an encoder.
        if let Err(error) = text::encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics cannot be encoded");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_text_under_its_name() {
        let metrics = Metrics::new();
        metrics.count_review("/mutate-v1-pod", ReviewOutcome::Answered, Duration::from_micros(40));
        metrics.count_injection("java", "NoInstrumentation");
        metrics.set_store(3, 2);
        metrics.set_certificate_expiry(4_102_444_800);
        metrics.count_certificate_reload_failure();
        metrics.count_tls_handshake_failure();

        let text = metrics.encode();

        for line in [
            "otel_webhook_reviews_total{endpoint=\"/mutate-v1-pod\",outcome=\"Answered\"} 1",
            "otel_webhook_injections_total{language=\"java\",outcome=\"NoInstrumentation\"} 1",
            "otel_webhook_review_duration_seconds_bucket{le=\"0.000025\"} 0",
            "otel_webhook_review_duration_seconds_bucket{le=\"0.00005\"} 1",
            "otel_webhook_instrumentations 3",
            "otel_webhook_namespaces 2",
            "otel_webhook_certificate_expiry_timestamp_seconds 4102444800",
            "otel_webhook_certificate_reload_failures_total 1",
            "otel_webhook_tls_handshake_failures_total 1",
            concat!("otel_webhook_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn outcomes_are_shown_before_the_first_request() {
        let metrics = Metrics::new();
        metrics.expect_reviews("/mutate-v1-pod");
        let text = metrics.encode();
        for outcome in ReviewOutcome::ALL {
            assert!(text.contains(&format!("outcome=\"{}\"}} 0\n", outcome.as_str())), "{text}");
        }
    }
}
