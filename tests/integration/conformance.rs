//! The operator's own results, case by case (`tests/data/conformance`).

use std::{collections::BTreeMap, io::Read, path::Path};

use flate2::read::GzDecoder;
use otel_webhook::{
    api::defaults::DefaultImages,
    inject::{self, Input, Settings, language::LanguageSet, pod::Pod},
    store::Writer,
};
use serde_json::{Value, json};

/// The cases of a file, one JSON object a line.
pub fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance").join(file);
    let compressed = std::fs::read(&path).expect("the file is in the repository");
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("a gzip file");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

/// Every injection case.
pub fn injection_cases() -> Vec<Value> {
    [cases("injection-systematic.jsonl.gz"), cases("injection-random.jsonl.gz")].concat()
}

/// The languages that a case has on.
pub fn languages(case: &Value) -> LanguageSet {
    let off = |name: &str| case["settings"]["languages"][name] == json!(false);
    let rows = inject::language::LANGUAGES.into_iter().filter(|row| !off(row.name));
    let none = LanguageSet::parse("").expect("an empty list");
    rows.fold(none, LanguageSet::with)
}

/// The pod of a case as the core leaves it.
fn injected(case: &Value) -> Value {
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&case["namespace"]);
    for object in
        ["instrumentations", "objects"].iter().flat_map(|list| case[*list].as_array().into_iter().flatten())
    {
        writer.put(object);
    }
    writer.publish();
    let snapshot = writer.store().snapshot();
    let settings =
        Settings { languages: languages(case), stamp: false, safe_to_evict: false, ..Settings::default() };
    let text = case["pod"].to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input {
        pod: &pod,
        namespace: case["requestNamespace"].as_str().expect("a namespace"),
        catalogue: &snapshot.catalogue,
        settings: &settings,
    };
    let outcome = inject::build(inject::decide(input), &snapshot.owners);
    let mut after = case["pod"].clone();
    json_patch::patch(&mut after, &outcome.operations()).expect("the patch applies");
    after
}

/// What the README of the cases says to leave out of the comparison.
pub fn comparable(pod: &Value) -> Value {
    let mut pod = pod.clone();
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            for variable in container["env"].as_array_mut().into_iter().flatten() {
                normalize_variable(variable);
            }
        }
    }
    for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
            drop_empty(claim);
        }
    }
    pod
}

fn normalize_variable(variable: &mut Value) {
    let Some(members) = variable.as_object_mut() else { return };
    if !members.contains_key("value") && !members.contains_key("valueFrom") {
        members.insert("value".into(), json!(""));
    }
    if members.get("name") == Some(&json!("OTEL_APACHE_AGENT_CONF")) {
        let text = members["value"].as_str().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let kept: String = lines.flat_map(|line| [line, "\n"]).collect();
        members.insert("value".into(), json!(kept));
    }
}

fn drop_empty(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(drop_empty);
        members.retain(|_, member| member.as_object().is_none_or(|object| !object.is_empty()));
    }
}

/// The languages that a case's annotations ask for, on the pod or on the namespace.
pub fn asked(case: &Value) -> Vec<String> {
    let mut asked: Vec<String> = ["pod", "namespace"]
        .iter()
        .flat_map(|object| case[*object]["metadata"]["annotations"].as_object().into_iter().flatten())
        .filter_map(|(key, value)| {
            let language = key.strip_prefix("instrumentation.opentelemetry.io/inject-")?;
            let is_container_list = language.ends_with("container-names");
            let wanted = !value.as_str()?.eq_ignore_ascii_case("false");
            (!is_container_list && wanted).then(|| language.to_owned())
        })
        .collect();
    asked.sort();
    asked.dedup();
    asked
}

#[test]
fn every_expectation_is_met() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in injection_cases() {
        if case["expect"].is_null()
            || case["pod"].to_string().contains("otel-agent-attach")
            || !asked(&case).iter().all(|language| {
                ["java", "nodejs", "python", "dotnet", "go", "sdk"].contains(&language.as_str())
            })
        {
            continue;
        }
        let after = comparable(&injected(&case));
        let expected = comparable(&case["expect"]["pod"]);
        *counts.entry(asked(&case).join("+")).or_default() += 1;
        if after != expected {
            failures.push(format!(
                "{} {}\n  got      {after}\n  expected {expected}",
                case["id"], case["diverges"]
            ));
        }
    }
    println!("{counts:#?}");
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}
