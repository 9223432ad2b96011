//! What holds for every pod, tried on generated ones.

use std::collections::BTreeMap;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{LABEL, Outcome, STATUS};
use otel_webhook_testkit::{
    generated::{
        choices::{Choices, for_each, how_many},
        mistakes::break_some,
        pods::{self, Generated, generate},
    },
    known::Known,
    models::{
        amounts::{class, effective},
        invariants, sanity, users, validity,
    },
    objects::items,
    surroundings,
};
use serde_json::{Value, json};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 1_000;

fn known_around(generated: &Generated) -> Known {
    Known::of([&generated.instrumentation], &DefaultImages::default())
}

fn review(known: &Known, pod: &Value) -> Outcome {
    surroundings::review(&known.catalogue, &known.owners, pods::NAMESPACE, pod)
}

/// Checks one pod; says with which codes it came out.
fn try_pod(seed: u64) -> Result<Vec<&'static str>, String> {
    let generated = generate(seed);
    let known = known_around(&generated);
    let outcome = review(&known, &generated.pod);
    let mut after = generated.pod.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).map_err(|error| error.to_string())?;
    let faults = [sanity::faults(&generated.pod, &after), users::faults(&generated.pod, &after)].concat();
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    invariants::unrelated(&generated.pod, &after, &generated.instrumentation)?;
    ends(&generated.pod, &after)?;
    let has_sidecar =
        outcome.findings.iter().any(|finding| finding.language == "go" && finding.reason.is_injected());
    // The Go sidecar runs next to the others.
    if !has_sidecar {
        let (old, new) = (&generated.pod, &after);
        if (effective(old), class(old)) != (effective(new), class(new)) {
            return Err(format!("{:?} became {:?}", effective(old), effective(new)));
        }
    }
    let again = review(&known, &after);
    if !again.patch.is_empty() {
        return Err(format!("a second review changes it: {}", again.patch));
    }
    let injected = outcome.findings.iter().any(|finding| finding.reason.is_injected());
    if injected != (after["spec"] != generated.pod["spec"]) {
        return Err(format!("findings and patch disagree: {:?}", outcome.findings));
    }
    let label = &after["metadata"]["labels"][LABEL];
    let lacks = outcome.findings.iter().any(|finding| finding.reason.is_trouble());
    let expected = if lacks { "partial" } else { "true" };
    if injected && label != expected {
        return Err(format!("it was injected, and its label says {label}, not {expected}"));
    }
    if injected {
        comes_back(seed, &after)?;
        operator_knows(&outcome, &after)?;
    }
    let status = after["metadata"]["annotations"][STATUS].as_str().unwrap_or("[]");
    if status.len() > 2048 || serde_json::from_str::<Vec<Value>>(status).is_err() {
        return Err(format!("the stamp is too long or broken: {status}"));
    }
    Ok(outcome.findings.iter().map(|finding| finding.reason.code()).collect())
}

/// Checks that no added container keeps a pod from ending, or takes part in its start (D42).
fn ends(before: &Value, after: &Value) -> Result<(), String> {
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        items(&pod["spec"][list]).map(|one| one["name"].clone()).collect()
    };
    let policy = before["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    let init = names(after, "initContainers");
    let sidecar = init.iter().position(|name| name == SIDECAR);
    if policy == "Always" {
        return if sidecar.is_none() { Ok(()) } else { Err("the sidecar is an init container".to_owned()) };
    }
    if names(before, "containers") != names(after, "containers") {
        return Err("a container was added to a pod that ends".to_owned());
    }
    let Some(sidecar) = sidecar else { return Ok(()) };
    let is_native = after["spec"]["initContainers"][sidecar]["restartPolicy"] == "Always";
    let is_last = sidecar + 1 == init.len();
    if is_native && is_last {
        Ok(())
    } else {
        Err(format!("the sidecar is not the last native one: {init:?}"))
    }
}

/// Checks that an injected pod stays as it is when it comes back with what the API server gave it,
/// and to another Instrumentation.
fn comes_back(seed: u64, after: &Value) -> Result<(), String> {
    let mut pod = after.clone();
    pod["metadata"]["name"] = json!("generated-7");
    pod["metadata"]["uid"] = json!("0df28fbd-5f5f-11e8-bc74-36e6bb280816");
    pod["metadata"]["labels"]["app.kubernetes.io/version"] = json!("10");
    pod["spec"]["nodeName"] = json!("node-1");
    let mut other = generate(seed + 1);
    other.instrumentation["spec"]["resource"]["resourceAttributes"]["new"] = json!("1");
    let patch = review(&known_around(&other), &pod).patch;
    if patch.is_empty() { Ok(()) } else { Err(format!("it is changed when it comes back: {patch}")) }
}

/// Checks that the operator takes a pod that got variables alone for injected (D29).
fn operator_knows(outcome: &Outcome, after: &Value) -> Result<(), String> {
    let sdk = outcome.findings.iter().filter(|one| one.language == "sdk" && one.reason.is_injected());
    for name in sdk.filter_map(|finding| finding.container.as_deref()) {
        let container = items(&after["spec"]["containers"]).find(|container| container["name"] == name);
        let is_mark = |variable: &Value| variable["name"] == "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";
        if container.is_some_and(|container| !items(&container["env"]).any(is_mark)) {
            return Err(format!("{name} lacks the variable that the operator looks for"));
        }
    }
    Ok(())
}

#[test]
fn they_hold_for_generated_pods() {
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let results = for_each(how_many(PODS), |seed| try_pod(seed).map_err(|problem| (seed, problem)));
    for result in results {
        let found = result.unwrap_or_else(|(seed, problem)| {
            panic!("pod {seed}: {problem}\n{}\n{}", generate(seed).pod, generate(seed).instrumentation)
        });
        for code in found {
            *codes.entry(code).or_default() += 1;
        }
    }
    println!("{codes:#?}");
    // A generator that makes nothing of interest proves nothing.
    let interesting = [
        "Injected",
        "OptionalReference",
        "NameTaken",
        "WindowsPod",
        "ContainerListMissing",
        "AgentNotFound",
        "RootNotAllowed",
    ];
    for code in interesting {
        assert!(
            codes.get(code).is_some_and(|count| *count > 10),
            "too few pods came out as {code}: {codes:?}"
        );
    }
}

/// How many mistakes are tried, unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const MISTAKES: u64 = 10_000;

/// Checks one pod with an Instrumentation that was stored before it was validated.
fn try_mistake(seed: u64) -> Result<Vec<&'static str>, String> {
    let mut generated = generate(seed);
    let mistakes = break_some(&mut Choices::new(!seed), &mut generated.instrumentation);
    let outcome = review(&known_around(&generated), &generated.pod);
    let mut after = generated.pod.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).map_err(|error| error.to_string())?;
    let faults = [sanity::faults(&generated.pod, &after), validity::faults(&generated.pod, &after)].concat();
    let related = invariants::unrelated(&generated.pod, &after, &generated.instrumentation);
    if let Some(problem) = faults.into_iter().next().or(related.err()) {
        return Err(format!("{mistakes:?}: {problem}\n{}", generated.instrumentation));
    }
    Ok(outcome.findings.iter().map(|finding| finding.reason.code()).collect())
}

#[test]
fn no_mistake_reaches_a_pod() {
    let results = for_each(how_many(MISTAKES), |seed| (seed, try_mistake(seed)));
    let found = results
        .into_iter()
        .flat_map(|(seed, result)| result.unwrap_or_else(|problem| panic!("pod {seed} with {problem}")));
    let codes: Vec<_> = found.collect();
    for code in ["Injected", "InstrumentationInvalid"] {
        assert!(
            codes.iter().filter(|found| **found == code).count() > 100,
            "too few pods came out as {code}"
        );
    }
}
