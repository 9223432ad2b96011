//! The panels of the dashboard, with what their queries give.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use super::series::{CONTROLLER, INTERVAL, NAMESPACE, SERVICE, Series};

/// The range of rates: Grafana takes four times the interval between two readings, and at least as much as this.
const RATE_INTERVAL: &str = "16s";

/// A panel.
pub struct Panel {
    pub title: String,
    pub kind: Kind,
    /// The unit of its values, by Grafana's name.
    pub unit: String,
    /// Where it is, in Grafana's 24 columns: x, y, width and height.
    pub place: [u32; 4],
    pub lines: Vec<Line>,
}

/// How a panel shows its lines.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// The headline of those below.
    Row,
    /// The last value.
    Stat,
    /// The last value of each line.
    Table,
    TimeSeries,
}

/// A series of a panel.
pub struct Line {
    pub name: String,
    /// Seconds since the beginning, and values.
    pub points: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Evaluated {
    labels: BTreeMap<String, String>,
    points: Vec<(f64, f64)>,
}

/// All panels, from the top.
pub fn evaluated(series: &Series) -> Vec<Panel> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/otel-webhook/files/dashboard.json");
    let dashboard: Value =
        serde_json::from_str(&fs::read_to_string(path).expect("the dashboard")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries: Vec<_> = panels.iter().flat_map(targets).map(|target| query(target, series)).collect();
    let mut results = ask(series, &queries).into_iter();
    panels.iter().map(|panel| read(panel, &mut results)).collect()
}

fn targets(panel: &Value) -> impl Iterator<Item = &Value> {
    panel["targets"].as_array().into_iter().flatten()
}

/// The query of a target, with Grafana's variables filled in.
fn query(target: &Value, series: &Series) -> String {
    let range = format!("{}s", series.seconds());
    let variables = [
        ("$__rate_interval", RATE_INTERVAL),
        ("$__range", range.as_str()),
        ("$namespace", NAMESPACE),
        ("$service", SERVICE),
        ("$controller", CONTROLLER),
    ];
    let text = target["expr"].as_str().expect("a query").to_owned();
    variables.iter().fold(text, |text, (name, value)| text.replace(name, value))
}

fn read(panel: &Value, results: &mut impl Iterator<Item = Vec<Evaluated>>) -> Panel {
    let kind = match panel["type"].as_str().expect("a type") {
        "row" => Kind::Row,
        "stat" => Kind::Stat,
        "table" => Kind::Table,
        "timeseries" => Kind::TimeSeries,
        other => panic!("panels of the type {other:?} cannot be drawn"),
    };
    let number =
        |field: &str| u32::try_from(panel["gridPos"][field].as_u64().expect("a number")).expect("small");
    let mut lines = Vec::new();
    for target in targets(panel) {
        let legend = target["legendFormat"].as_str().unwrap_or_default();
        let result = results.next().expect("a result for each query");
        lines.extend(
            result.into_iter().map(|one| Line { name: name(legend, &one.labels), points: one.points }),
        );
    }
    Panel {
        title: panel["title"].as_str().expect("a title").to_owned(),
        kind,
        unit: panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or("short").to_owned(),
        place: ["x", "y", "w", "h"].map(number),
        lines,
    }
}

/// The name of a line by a format such as `{{state}} pods`; without one, the values of its labels.
fn name(legend: &str, labels: &BTreeMap<String, String>) -> String {
    if legend.is_empty() {
        return labels.values().cloned().collect::<Vec<_>>().join(", ");
    }
    labels
        .iter()
        .fold(legend.to_owned(), |name, (label, value)| name.replace(&format!("{{{{{label}}}}}"), value))
}

/// Lets Prometheus' engine evaluate queries.
fn ask(series: &Series, queries: &[String]) -> Vec<Vec<Evaluated>> {
    let tools: PathBuf =
        std::env::var_os("OTEL_WEBHOOK_CONTROL_PLANE").expect("`make docs-pictures` sets it").into();
    let mut child = Command::new(tools.join("panels"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let input = json!({
        "series": series.notation(),
        "interval": format!("{}s", INTERVAL.as_secs()),
        "end": series.seconds(),
        "queries": queries,
    });
    child.stdin.take().expect("a pipe").write_all(input.to_string().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an answer");
    assert!(output.status.success(), "the queries are refused");
    serde_json::from_slice(&output.stdout).expect("JSON")
}
