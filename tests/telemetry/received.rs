//! Telemetry as a Collector writes it: OTLP as JSON.

use std::collections::{BTreeMap, BTreeSet};

use otel_webhook_testkit::objects::items;
use serde_json::Value;

/// Resource attributes that agents find out by themselves, by the beginning of their names.
const DETECTED: [&str; 6] = ["container.", "host.", "os.", "process.", "telemetry.", "webengine."];

/// What arrived at a Collector.
#[derive(Default)]
pub struct Received {
    /// Spans.
    pub spans: Vec<Item>,
    /// Metrics, once for each export.
    pub metrics: Vec<Item>,
    /// Log records.
    pub logs: Vec<Item>,
}

/// A span, a metric or a log record.
pub struct Item {
    /// How it arrived.
    pub protocol: &'static str,
    /// The attributes of the resource.
    pub resource: BTreeMap<String, String>,
    /// The item itself.
    pub value: Value,
}

impl Received {
    /// Adds what one request brought.
    pub fn add(&mut self, protocol: &'static str, request: &Value) {
        let lists = [
            (&mut self.spans, ["resourceSpans", "scopeSpans", "spans"]),
            (&mut self.metrics, ["resourceMetrics", "scopeMetrics", "metrics"]),
            (&mut self.logs, ["resourceLogs", "scopeLogs", "logRecords"]),
        ];
        for (list, [resources, scopes, values]) in lists {
            for of_resource in items(&request[resources]) {
                let resource = attributes(&of_resource["resource"]);
                let found = items(&of_resource[scopes]).flat_map(|scope| items(&scope[values]));
                list.extend(found.map(|value| Item {
                    protocol,
                    resource: resource.clone(),
                    value: value.clone(),
                }));
            }
        }
    }

    /// The three kinds of telemetry by name.
    pub fn signals(&self) -> [(&'static str, &[Item]); 3] {
        [("spans", &self.spans), ("metrics", &self.metrics), ("logs", &self.logs)]
    }

    /// Whether a span, a metric and a log record of the service arrived.
    pub fn has_all(&self, service: &str) -> bool {
        self.signals().iter().all(|(_, items)| items.iter().any(|item| item.service() == service))
    }

    /// How often a service has sent metrics.
    pub fn exports(&self, service: &str) -> usize {
        let of_service = self.metrics.iter().filter(|metric| metric.service() == service);
        let kinds = ["sum", "gauge", "histogram"];
        let points = of_service
            .flat_map(|metric| kinds.into_iter().flat_map(|kind| items(&metric.value[kind]["dataPoints"])));
        points.filter_map(|point| point["timeUnixNano"].as_str()).collect::<BTreeSet<_>>().len()
    }

    /// Spans of a service that are of the server's side.
    pub fn served(&self, service: &str) -> Vec<&Item> {
        let of_service = self.spans.iter().filter(|span| span.service() == service);
        of_service.filter(|span| span.value["kind"] == 2).collect()
    }
}

impl Item {
    /// The name of the service.
    pub fn service(&self) -> &str {
        self.resource.get("service.name").map_or("", String::as_str)
    }

    /// The attributes of the resource but for those that an agent finds out by itself.
    pub fn configured(&self) -> BTreeMap<&str, &str> {
        let pairs = self.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        pairs.filter(|(key, _)| !DETECTED.iter().any(|start| key.starts_with(start))).collect()
    }

    /// The attributes of the span or log record itself.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        attributes(&self.value)
    }

    /// The path of the request that a span of a server is about.
    pub fn path(&self) -> String {
        let attributes = self.attributes();
        let found = ["url.path", "http.target"].into_iter().find_map(|key| attributes.get(key).cloned());
        found.unwrap_or_default()
    }

    /// A field that is text, such as `traceId`; empty where it is not there.
    pub fn field(&self, name: &str) -> &str {
        self.value[name].as_str().unwrap_or_default()
    }
}

fn attributes(holder: &Value) -> BTreeMap<String, String> {
    let pair = |attribute: &Value| {
        let value = attribute["value"].as_object().and_then(|value| value.values().next().cloned());
        let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        (attribute["key"].as_str().unwrap_or_default().to_owned(), text.unwrap_or_default())
    };
    items(&holder["attributes"]).map(pair).collect()
}
