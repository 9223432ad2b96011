//! What an agent adds to the start and the memory of a small service. `make bench-agents` runs it, and prints a table.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use otel_webhook_testkit::files::{path, replace_between};
use otel_webhook_testkit::load::process;
use otel_webhook_testkit::runner::{Case, note};
use serde_json::json;

use crate::cluster::Cluster;
use crate::service::{LANGUAGES, Language};
use crate::stage::{HTTP, Service, Stage, pod};

/// The one case, which is not among those of the suite.
pub const CASES: &[Case<Cluster>] = &[("agents_at_work", agents)];

/// How often each service is started with its agent, and as often without it.
const TURNS: usize = 5;

/// How many requests a service has served when its memory is read.
const REQUESTS: usize = 200;

/// The page that has the table, between two lines.
const PAGE: &str = "docs/operations/sizes.md";
const BEGIN: &str = "<!-- `make bench-agents` writes this table. -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// The medians of some starts of a service.
#[derive(Clone, Copy)]
struct Cost {
    /// From the start of the container until it has answered, in seconds.
    start: f64,
    /// CPU time until then, in seconds.
    cpu: f64,
    /// Resident after the requests, in MB.
    resident: f64,
}

/// Starts each service with and without its agent in turns.
fn agents(cluster: &Cluster) {
    let stage = Stage::new(cluster, "measure");
    stage.usual_instrumentation("default", &json!({"exporter": {"endpoint": HTTP}}));
    let mut table = String::from(
        "| service | first answer after | with the agent | CPU until then | with the agent | resident | with the agent |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for language in LANGUAGES {
        let turns: Vec<_> = (0..TURNS)
            .map(|turn| ["false", "default"].map(|asks| cost(&stage, language, turn, asks)))
            .collect();
        let [without, with] = [0, 1].map(|side| median(turns.iter().map(|turn| turn[side])));
        writeln!(
            table,
            "| {} | {:.2} s | {:.2} s | {:.2} s | {:.2} s | {:.0} MB | {:.0} MB |",
            language.name, without.start, with.start, without.cpu, with.cpu, without.resident, with.resident,
        )
        .expect("text can be appended to");
    }
    note(&format!("medians of {TURNS} starts each; resident after {REQUESTS} requests\n{table}"));
    if std::env::var_os("OTEL_WEBHOOK_KEEP_FIGURES").is_some() {
        replace_between(&path(PAGE), BEGIN, END, &table);
    }
}

/// Starts a service once. `asks` is the value of its annotation.
fn cost(stage: &Stage<'_>, language: Language, turn: usize, asks: &str) -> Cost {
    let mut pod = pod(language, asks, &[]);
    pod["metadata"]["name"] = format!("{}-{turn}-{asks}", language.name).into();
    let service = Service::new(language, stage.create(pod));
    let is_injected = service.running.stored.pod["metadata"]["labels"]["otel-webhook/injected"] == "true";
    assert_eq!(is_injected, asks != "false", "{} asks {asks}", language.name);
    stage.ask(&service, "first");
    let answered = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let played = &service.running.played;
    let number = |field: &str| played.inspect("app", field).parse::<u32>().expect("a number");
    let process = number("{{.State.Pid}}");
    let cpu = process::cpu(process).as_secs_f64();
    let began: f64 = played.inspect("app", "{{.State.StartedAt.UnixMilli}}").parse().expect("milliseconds");
    stage.ask_often(&service, "again", REQUESTS);
    Cost { start: answered - began / 1000.0, cpu, resident: process::memory(process).resident }
}

/// The median of each field.
fn median(costs: impl Iterator<Item = Cost>) -> Cost {
    let costs: Vec<_> = costs.collect();
    let of = |field: fn(&Cost) -> f64| {
        let mut values: Vec<_> = costs.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Cost { start: of(|cost| cost.start), cpu: of(|cost| cost.cpu), resident: of(|cost| cost.resident) }
}
