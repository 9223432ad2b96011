//! Metrics of connections.

use std::fmt;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Why the server closed a connection, as the label `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Closed {
    /// It was idle, and the limit was reached.
    Idle,
    /// It was new, the limit was reached, and all others had requests.
    Rejected,
    /// It sent no request in time.
    NoRequest,
    /// Its request took too long, mostly because the response was not read.
    Unread,
}

impl Closed {
    const ALL: [Self; 4] = [Self::Idle, Self::Rejected, Self::NoRequest, Self::Unread];
}

impl EncodeLabelValue for Closed {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        let value = match self {
            Self::Idle => "Idle",
            Self::Rejected => "Rejected",
            Self::NoRequest => "NoRequest",
            Self::Unread => "Unread",
        };
        value.encode(encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PortLabels {
    port: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClosedLabels {
    port: &'static str,
    reason: Closed,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    open: Family<PortLabels, Gauge<i64, AtomicI64>>,
    closed: Family<ClosedLabels, Counter>,
}

impl ConnectionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("otel_webhook_connections", "Open connections by port", self.open.clone());
        registry.register(
            "otel_webhook_connections_closed",
            "Connections that the server closed because of a limit, by port and reason",
            self.closed.clone(),
        );
    }

    /// Exposes the metrics of a port as zero, before its first connection.
    pub fn expect(&self, port: &'static str) {
        self.set_open(port, 0);
        for reason in Closed::ALL {
            drop(self.closed.get_or_create(&ClosedLabels { port, reason }));
        }
    }

    /// Sets the number of open connections of a port.
    pub fn set_open(&self, port: &'static str, count: usize) {
        self.open.get_or_create(&PortLabels { port }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts one connection that was closed.
    pub fn count_closed(&self, port: &'static str, reason: Closed) {
        self.closed.get_or_create(&ClosedLabels { port, reason }).inc();
    }
}
