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
use tracing_appender::non_blocking::ErrorCounter;

use super::connections::ConnectionMetrics;
use super::fleet::FleetMetrics;
use super::managed::ManagedMetrics;
use super::process::{DroppedLines, ProcessCollector};
use super::restarts::RestartMetrics;
use otel_webhook_inject::pause::Pause;

/// Seconds. A decision takes tens of microseconds; reviews above a millisecond waited for a lookup.
const REVIEW_BUCKETS: [f64; 14] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
];

/// The outcome of a request, as the label `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReviewOutcome {
    /// The response was an `AdmissionReview`.
    Answered,
    /// The body could not be read as a review.
    Malformed,
    /// The content type was not JSON.
    WrongContentType,
    /// The body was larger than the limit.
    TooLarge,
    /// The body was incomplete, or did not arrive in time.
    Incomplete,
    /// There was no memory for the body in time.
    MemoryLimit,
    /// The review was not decided in time. Pods and workloads are allowed, Instrumentations are not stored.
    DeadlineExceeded,
    /// The processing of the review panicked.
    Panicked,
}

impl ReviewOutcome {
    /// All outcomes. Each is exposed from the start, since a rate needs an initial zero.
    pub const ALL: [Self; 8] = [
        Self::Answered,
        Self::Malformed,
        Self::WrongContentType,
        Self::TooLarge,
        Self::Incomplete,
        Self::MemoryLimit,
        Self::DeadlineExceeded,
        Self::Panicked,
    ];

    /// Returns the value of the label; part of the program's interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Malformed => "Malformed",
            Self::WrongContentType => "WrongContentType",
            Self::TooLarge => "TooLarge",
            Self::Incomplete => "Incomplete",
            Self::MemoryLimit => "MemoryLimit",
            Self::DeadlineExceeded => "DeadlineExceeded",
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
struct PausedLabels {
    scope: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InjectionLabels {
    language: &'static str,
    outcome: &'static str,
}

/// The metrics of the process, shared by `Arc`. Every method is cheap enough for the request path.
///
/// Labels are `&'static str` or closed sets: no text of a client becomes a label, so the number of series is bounded.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reviews: Family<ReviewLabels, Counter>,
    injections: Family<InjectionLabels, Counter>,
    review_duration: Histogram,
    instrumentations: Gauge<i64, AtomicI64>,
    namespaces: Gauge<i64, AtomicI64>,
    too_large: Gauge<i64, AtomicI64>,
    paused: Family<PausedLabels, Gauge<i64, AtomicI64>>,
    last_event: Gauge<i64, AtomicI64>,
    certificate_expiry: Gauge<i64, AtomicI64>,
    certificate_reload_failures: Counter,
    tls_handshake_failures: Counter,
    /// Metrics of connections.
    pub connections: ConnectionMetrics,
    /// Metrics of managed certificates.
    pub managed: ManagedMetrics,
    /// Metrics of the controller.
    pub fleet: FleetMetrics,
    /// Restarts of workloads.
    pub restarts: RestartMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The content type of [`Metrics::encode`].
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Returns all metrics at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            reviews: Family::default(),
            injections: Family::default(),
            review_duration: Histogram::new(REVIEW_BUCKETS),
            instrumentations: Gauge::default(),
            namespaces: Gauge::default(),
            too_large: Gauge::default(),
            paused: Family::default(),
            last_event: Gauge::default(),
            certificate_expiry: Gauge::default(),
            certificate_reload_failures: Counter::default(),
            tls_handshake_failures: Counter::default(),
            connections: ConnectionMetrics::default(),
            managed: ManagedMetrics::default(),
            fleet: FleetMetrics::default(),
            restarts: RestartMetrics::default(),
        };
        metrics.register_reviews();
        metrics.register_state();
        metrics.connections.register(&mut metrics.registry);
        metrics.managed.register(&mut metrics.registry);
        metrics.fleet.register(&mut metrics.registry);
        metrics.restarts.register(&mut metrics.registry);
        metrics.register_process();
        metrics
    }

    fn register_reviews(&mut self) {
        self.registry.register(
            "otel_webhook_reviews",
            "Requests to the webhook by endpoint and outcome",
            self.reviews.clone(),
        );
        self.registry.register(
            "otel_webhook_injections",
            "Decisions by language and reason code; a pod that is reviewed again is counted as AlreadyInjected only",
            self.injections.clone(),
        );
        self.registry.register(
            "otel_webhook_review_duration_seconds",
            "Time from the headers of a request to the response, including the arrival of the body",
            self.review_duration.clone(),
        );
    }

    fn register_state(&mut self) {
        self.registry.register(
            "otel_webhook_instrumentations",
            "Instrumentations in the cache",
            self.instrumentations.clone(),
        );
        self.registry.register("otel_webhook_namespaces", "Namespaces in the cache", self.namespaces.clone());
        self.registry.register(
            "otel_webhook_instrumentations_too_large",
            "Instrumentations that are not used because of --max-instrumentation-size or --max-instrumentations-total",
            self.too_large.clone(),
        );
        self.registry.register(
            "otel_webhook_paused",
            "Objects that pause injection by the annotation otel-webhook/paused, by scope: all, namespace or instrumentation",
            self.paused.clone(),
        );
        self.registry.register(
            "otel_webhook_last_event_timestamp_seconds",
            "Unix time of the last event from the source",
            self.last_event.clone(),
        );
        self.registry.register(
            "otel_webhook_certificate_expiry_timestamp_seconds",
            "Unix time at which the serving certificate expires",
            self.certificate_expiry.clone(),
        );
        self.registry.register(
            "otel_webhook_certificate_reload_failures",
            "Failed reloads of the certificate files",
            self.certificate_reload_failures.clone(),
        );
        self.registry.register(
            "otel_webhook_tls_handshake_failures",
            "Connections that failed before the TLS handshake was completed",
            self.tls_handshake_failures.clone(),
        );
    }

    fn register_process(&mut self) {
        self.registry.register(
            "otel_webhook_build",
            "Version of the running program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        self.registry.register_collector(Box::new(ProcessCollector));
    }

    /// Adds the number of log lines that were dropped.
    #[must_use]
    pub fn with_log(mut self, dropped: ErrorCounter) -> Self {
        self.registry.register_collector(Box::new(DroppedLines(dropped)));
        self
    }

    /// Exposes all outcomes of `endpoint` as zero, before the first request.
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

    /// Sets the number of Instrumentations and namespaces, and the time of the last event.
    pub fn set_store(&self, instrumentations: usize, namespaces: usize) {
        let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.instrumentations.set(count(instrumentations));
        self.namespaces.set(count(namespaces));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_event.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }

    /// Sets the number of Instrumentations that are not used because of their size.
    pub fn set_too_large(&self, instrumentations: usize) {
        self.too_large.set(i64::try_from(instrumentations).unwrap_or(i64::MAX));
    }

    /// Sets what pauses injection.
    pub fn set_paused(&self, paused: &[Pause]) {
        for scope in Pause::SCOPES {
            let count = paused.iter().filter(|pause| pause.scope() == scope).count();
            self.paused.get_or_create(&PausedLabels { scope }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Sets the Unix time at which the serving certificate expires.
    pub fn set_certificate_expiry(&self, seconds: i64) {
        self.certificate_expiry.set(seconds);
    }

    /// Counts one failed reload of the certificate files.
    pub fn count_certificate_reload_failure(&self) {
        self.certificate_reload_failures.inc();
    }

    /// Counts one TLS handshake that failed or took too long.
    pub fn count_tls_handshake_failure(&self) {
        self.tls_handshake_failures.inc();
    }

    /// Returns all metrics as text of the type [`Metrics::CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail; if an encoder does, the scrape must not panic.
        if let Err(error) = text::encode(&mut text, &self.registry) {
            tracing::error!(%error, "cannot encode the metrics");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_exposed_under_its_name() {
        let metrics = Metrics::new();
        metrics.count_review("/mutate-v1-pod", ReviewOutcome::Answered, Duration::from_micros(40));
        metrics.count_injection("java", "NoInstrumentation");
        metrics.set_store(3, 2);
        metrics.set_too_large(1);
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
            "otel_webhook_instrumentations_too_large 1",
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
    fn outcomes_are_exposed_before_the_first_request() {
        let metrics = Metrics::new();
        metrics.expect_reviews("/mutate-v1-pod");
        let text = metrics.encode();
        for outcome in ReviewOutcome::ALL {
            assert!(text.contains(&format!("outcome=\"{}\"}} 0\n", outcome.as_str())), "{text}");
        }
    }
}
