//! What the webhook and the controller have said of themselves, as a Prometheus would keep it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::admin;
use crate::cluster::Cluster;
use crate::controller::Controller;

/// The time between two readings.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// What the names of both Services are in the series, and in the variables of the dashboard.
pub const NAMESPACE: &str = "otel-webhook";
pub const SERVICE: &str = "otel-webhook-metrics";
pub const CONTROLLER: &str = "otel-webhook-controller";

/// Metrics that are points in time. In the series, time begins with the first reading.
const POINTS_IN_TIME: &str = "_timestamp_seconds";

/// Series by their names with labels, each with a value for every reading.
#[derive(Default)]
pub struct Series {
    values: BTreeMap<String, Vec<Option<f64>>>,
    readings: usize,
    began: Option<f64>,
}

impl Series {
    /// Reads the metrics of both programs.
    pub fn scrape(&mut self, cluster: &Cluster, controller: &Controller<'_>) {
        self.began.get_or_insert_with(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64()
        });
        let [_, webhook] = cluster.webhook.addresses();
        for (port, service) in [(webhook.port(), SERVICE), (controller.admin_port(), CONTROLLER)] {
            let (is_good, text) = admin::get(port, "/metrics").expect("it answers");
            assert!(is_good, "{text}");
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                self.add(line, service);
            }
        }
        self.readings += 1;
    }

    /// Adds a line such as `name{label="value"} 1`.
    fn add(&mut self, line: &str, service: &str) {
        let Some((name, value)) = line.rsplit_once(' ') else { return };
        let mut value: f64 = value.parse().expect("a value");
        if name.contains(POINTS_IN_TIME) {
            value -= self.began.unwrap_or_default();
        }
        let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
        let comma = if labels == "}" { "" } else { "," };
        let target = format!("namespace=\"{NAMESPACE}\",service=\"{service}\",pod=\"{service}-0\"");
        let values = self.values.entry(format!("{name}{{{target}{comma}{labels}")).or_default();
        values.resize(self.readings, None);
        values.push(Some(value));
    }

    /// How long it took, in seconds.
    pub fn seconds(&self) -> u64 {
        INTERVAL.as_secs() * self.readings.saturating_sub(1) as u64
    }

    /// The series in the notation of Prometheus' tests.
    pub fn notation(&self) -> BTreeMap<&str, String> {
        let word = |value: &Option<f64>| value.map_or("_".to_owned(), |value| value.to_string());
        let words = |values: &Vec<_>| values.iter().map(word).collect::<Vec<_>>().join(" ");
        self.values.iter().map(|(name, values)| (name.as_str(), words(values))).collect()
    }
}
