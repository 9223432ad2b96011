//! Agents that an Instrumentation describes itself, and pods that opt in to them.

use serde_json::{Value, json};

use super::choices::Choices;
use crate::objects::items;

const NAMES: [&str; 2] = ["php", "ruby"];

/// Variables of agents: their own, and some that languages and all targets get as well.
const VARIABLES: [&str; 8] = [
    "RUBYOPT",
    "PHP_INI_SCAN_DIR",
    "LD_PRELOAD",
    "A",
    "JAVA_TOOL_OPTIONS",
    "PYTHONPATH",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_SAMPLER",
];

/// The fields of an agent that can be wrong, each with values that no pod can have.
const MISTAKES: [(&str, &[&str]); 6] = [
    ("name", &["PHP", "a b", "java", ""]),
    ("image", &[" ", ""]),
    ("directory", &["agent", "/a:b", "/../etc"]),
    ("mountPath", &["agent", "/a:b", "/"]),
    ("volumeLimitSize", &["much", "-1Gi"]),
    ("env", &["A=B"]),
];

/// Lets some of the pods opt in to agents that their Instrumentation has, or lacks.
pub(super) fn add(choices: &mut Choices, pod: &mut Value, instrumentation: &mut Value) {
    if !choices.chance(25) {
        return;
    }
    let agents: Vec<_> = choices.some(&NAMES, 80).into_iter().map(|name| agent(choices, name)).collect();
    if !agents.is_empty() {
        instrumentation["spec"]["agents"] = json!(agents);
    }
    let asked = choices.one(&["php", "ruby", "php,ruby", "ruby, php, other"]);
    let all: Vec<String> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| items(&pod["spec"][list]))
        .filter_map(|container| container["name"].as_str().map(str::to_owned))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let targets = choices.some(&all, 60).join(",");
    let annotations = &mut pod["metadata"]["annotations"];
    annotations["instrumentation.opentelemetry.io/inject-agent"] = json!(asked);
    if !targets.is_empty() {
        annotations["instrumentation.opentelemetry.io/agent-container-names"] = json!(targets);
    }
}

fn agent(choices: &mut Choices, name: &str) -> Value {
    let mut agent = json!({"name": name, "image": format!("example.com/{name}:1"), "directory": "/agent", "env": env(choices)});
    if choices.chance(30) {
        agent["mountPath"] = json!(format!("/agents/{name}"));
    }
    if choices.chance(30) {
        agent["volumeLimitSize"] = json!("50Mi");
    }
    if choices.chance(30) {
        agent["resourceRequirements"] = json!({"limits": {"cpu": "1", "memory": "128Mi"}});
    }
    agent
}

fn env(choices: &mut Choices) -> Vec<Value> {
    choices
        .some(&VARIABLES, 30)
        .into_iter()
        .map(|name| {
            let value = choices.one(&["$(mountPath)/own", "$$(mountPath)", "$(A)", "own", ""]);
            // Options of Java are told apart by spaces alone.
            let separator = if name == "JAVA_TOOL_OPTIONS" { " " } else { choices.one(&[":", " ", ""]) };
            match choices.one(&["set", "append", "prepend"]) {
                "set" => json!({"name": name, "value": value}),
                mode => json!({"name": name, "value": value, "mode": mode, "separator": separator}),
            }
        })
        .collect()
}

/// Makes a mistake in an agent; returns where, with the value.
pub(super) fn break_one(choices: &mut Choices, spec: &mut Value) -> String {
    if !spec["agents"].is_array() {
        spec["agents"] = json!([agent(choices, "php")]);
    }
    let (field, values) = MISTAKES[choices.below(MISTAKES.len())];
    let value = choices.one(values);
    let value = if field == "env" { json!([{"name": value, "value": "x"}]) } else { json!(value) };
    let shown = format!("agents[0].{field}: {value}");
    spec["agents"][0][field] = value;
    shown
}
