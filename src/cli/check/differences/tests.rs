//! The differences, against the operator's own results: a case that is marked as
//! different has its number, and one that is not has none.

use std::{collections::HashMap, io::Read, path::Path};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{
    seen::{ATTRIBUTES, items},
    *,
};
use crate::store::Writer;
use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_inject::{
    CrossNamespace, InitResources, Settings,
    language::{LANGUAGES, LanguageSet},
    template::{Around, Workload},
};

fn cases() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance");
    let read = |file: &str| {
        let compressed = std::fs::read(folder.join(file)).expect("the file is in the repository");
        let mut text = String::new();
        GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("a gzip file");
        text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect::<Vec<Value>>()
    };
    [read("injection-systematic.jsonl.gz"), read("injection-random.jsonl.gz")].concat()
}

fn differences(case: &Value) -> Vec<Difference> {
    let objects: Vec<Value> = items(&case["instrumentations"])
        .chain(items(&case["objects"]))
        .chain([&case["namespace"]])
        .cloned()
        .collect();
    let off = |name: &str| case["settings"]["languages"][name] == json!(false);
    let languages = LANGUAGES.into_iter().filter(|row| !off(row.name));
    let none = LanguageSet::parse("").expect("an empty list");
    let settings = Settings {
        languages: languages.fold(none, LanguageSet::with),
        init_resources: InitResources::Exact,
        ..Settings::default()
    };
    of_pod(&case["pod"], case["requestNamespace"].as_str().expect("a namespace"), &objects, &settings)
}

fn of_pod(pod: &Value, namespace: &str, objects: &[Value], settings: &Settings) -> Vec<Difference> {
    let mut writer = Writer::new(DefaultImages::default());
    let mut instrumentations = HashMap::new();
    for object in objects {
        writer.put(object);
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        if object["kind"] == "Instrumentation" {
            instrumentations.insert((text("namespace"), text("name")), object.clone());
        }
    }
    writer.publish();
    let snapshot = writer.store().snapshot();
    let catalogue = &snapshot.catalogue;
    let around = Around { namespace, catalogue, settings, owners: &snapshot.owners };
    let mut pod = pod.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
    let outcome = workload.outcome(&around).expect("readable");
    let exact = Settings { init_resources: InitResources::Exact, ..settings.clone() };
    let exact = workload.outcome(&Around { settings: &exact, ..around }).expect("readable");
    let instrumentations = &instrumentations;
    of(&Case {
        pod: workload.pod,
        outcome: &outcome,
        exact: &exact,
        around: &around,
        owner: None,
        instrumentations,
    })
}

/// Marks of cases whose pod shows no trace of them: the container is skipped either
/// way, several Instrumentations are an error either way, D10 and D11 never show.
fn shows(number: u8, case: &Value) -> bool {
    match number {
        1 => !case.to_string().contains("\"optional\":true"),
        9 => case["expect"]["injected"] == true,
        10 | 11 => false,
        _ => true,
    }
}

/// Cases whose mark is for another reason than the one that is told.
const OTHERWISE: [&str; 20] = [
    "cont-java-own-dup-unknown",
    "cont-go-own-dup-unknown",
    "cont-java-other-language-list-invalid",
    "cont-python-other-language-list-invalid",
    "cont-sdk-other-language-list-invalid",
    "multi-ns-java-missing-pod-nodejs-true",
    "multi-apache-httpd+nginx-same-container",
    "multi-nginx+apache-httpd-common-and-one-own",
    "env-java-own-duplicates",
    "env-nodejs-own-duplicates",
    "env-python-own-duplicates",
    "env-apache-httpd-own-duplicates",
    "env-dotnet-OTEL_RESOURCE_ATTRIBUTES-own-configmap",
    "env-apache-httpd-OTEL_RESOURCE_ATTRIBUTES-own-configmap",
    "env-nginx-LD_LIBRARY_PATH-own-optional-second-fine",
    "env-nginx-OTEL_RESOURCE_ATTRIBUTES-own-configmap",
    "env-sdk-OTEL_RESOURCE_ATTRIBUTES-own-configmap",
    // The platform is unknown, so that the container is skipped before its variable matters.
    "random-0888-java+python",
    // The variable is set, so that the controller's name stands in the module's configuration alone.
    "random-0823-apache-httpd",
    "random-1493-nginx",
];

#[test]
fn the_operators_own_results_have_their_numbers() {
    let (mut told, mut missed, mut invented) = (0, Vec::new(), Vec::new());
    for case in cases() {
        let id = case["id"].as_str().expect("an id");
        let found = differences(&case);
        let marks = items(&case["diverges"]).filter_map(|mark| mark.as_str()?.strip_prefix('D'));
        let marks: Vec<u8> = marks.map(|number| number.parse().expect("a number")).collect();
        let wanted = marks.iter().filter(|number| shows(**number, &case));
        for number in wanted {
            let is_told = found.contains(&Difference(*number));
            told += usize::from(is_told);
            if !is_told && !OTHERWISE.contains(&id) {
                missed.push(format!("D{number} of {id}"));
            }
        }
        // An unknown name is said, whatever the operator makes of the rest of the list. The cases were
        // recorded before D29, before Go's sidecar kept what the application has itself (D12), and
        // before a language's addresses stood at the head (D13).
        let keeps = items(&case["diverges"]).any(|mark| mark == "O15");
        let resources = case["instrumentations"].to_string();
        let addresses = ["OTEL_NODE_IP", "OTEL_POD_IP"].iter().any(|name| resources.contains(name));
        let is_known = |number: u8| match number {
            5 | 29 => true,
            12 => keeps,
            13 => addresses,
            _ => false,
        };
        let extra = found.iter().filter(|one| marks.is_empty() && !is_known(one.0));
        invented.extend(extra.map(|one| format!("{one} of {id}")));
    }
    assert!(missed.is_empty(), "not told: {missed:?}");
    assert!(invented.len() <= MOST_INVENTED, "told without a mark: {invented:?}");
    assert!(told >= FEWEST_TOLD, "only {told} are told");
}

/// Numbers that are told where the operator's result is the same after all.
const MOST_INVENTED: usize = 5;

/// How many marks are told; cases that are not read any more are noticed.
const FEWEST_TOLD: usize = 400;

/// A pod of two containers with these annotations, under the prefix where they have none.
fn pod(annotations: &[(&str, &str)]) -> Value {
    let key =
        |key: &str| if key.contains('/') { key.to_owned() } else { format!("{ANNOTATION_PREFIX}{key}") };
    let entries = annotations.iter().map(|(name, value)| (key(name), json!(value)));
    let containers = json!([{"name": "proxy", "image": "p:1"}, {"name": "app", "image": "a:1"}]);
    json!({"metadata": {"name": "p", "annotations": Value::Object(entries.collect())},
        "spec": {"containers": containers}})
}

fn instrumentation(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
}

fn told(pod: &Value, objects: &[Value], init_resources: InitResources) -> String {
    let settings = Settings { init_resources, ..Settings::default() };
    let found = of_pod(pod, "shop", objects, &settings);
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_choice_among_several_and_by_selector_is_told() {
    let ask = pod(&[("inject-java", "true"), ("container-names", "app")]);
    let exact = |objects: &[Value]| told(&ask, objects, InitResources::Exact);
    let (plain, first) = (instrumentation("a", &json!({})), instrumentation("b", &json!({"priority": 1})));
    assert_eq!(exact(std::slice::from_ref(&plain)), "");
    assert_eq!(exact(&[plain, first]), "D9");
    let other = json!({"selector": {"matchLabels": {"app": "other"}}});
    assert_eq!(exact(&[instrumentation("a", &other)]), "D9", "the operator would take it");
}

#[test]
fn what_no_recorded_case_has_is_told_as_well() {
    let plain = [instrumentation("a", &json!({}))];
    let listed = pod(&[("inject-java", "true"), ("container-names", "app")]);
    assert_eq!(told(&listed, &plain, InitResources::Neutral), "D23");
    let main = ("kubectl.kubernetes.io/default-container", "app");
    assert_eq!(told(&pod(&[("inject-java", "true"), main]), &plain, InitResources::Exact), "D24");
    let mut meshed = pod(&[("inject-java", "true")]);
    meshed["spec"]["containers"][0]["name"] = json!("istio-proxy");
    assert_eq!(told(&meshed, &plain, InitResources::Exact), "D30");
    let mut windows = listed.clone();
    windows["spec"]["os"] = json!({"name": "windows"});
    assert_eq!(told(&windows, &plain, InitResources::Exact), "D25");
    let stored = |image: &str, recorded: &str| {
        let mut stored = instrumentation("a", &json!({"java": {"image": image}}));
        let note = otel_webhook_api::defaults::image_annotation("java");
        stored["metadata"]["annotations"] = json!({note: recorded});
        told(&listed, &[stored], InitResources::Exact)
    };
    let old = otel_webhook_api::defaults::JAVA.image.replace("2.30.0", "2.29.0");
    assert_eq!(stored(&old, &old), "D28");
    assert_eq!(stored(&old, ""), "", "it is pinned");
    assert_eq!(stored("java:old", "java:old"), "", "it is a mirror's, and kept");
}

#[test]
fn what_the_cases_were_recorded_too_early_for_is_told() {
    let plain = [instrumentation("a", &json!({}))];
    let with_own = |mut pod: Value, value: &str| {
        pod["spec"]["containers"][1]["env"] = json!([{"name": ATTRIBUTES, "value": value}]);
        told(&pod, &plain, InitResources::Exact)
    };
    let sdk = pod(&[("inject-sdk", "true"), ("container-names", "app")]);
    assert_eq!(with_own(sdk.clone(), "k8s.node.name=n"), "D12 D29");
    assert_eq!(with_own(sdk, "team=a"), "");
    let go = pod(&[("inject-go", "true"), ("container-names", "app"), ("otel-go-auto-target-exe", "/a")]);
    let settings = Settings {
        languages: LanguageSet::all(),
        init_resources: InitResources::Exact,
        ..Settings::default()
    };
    for (own, expected) in [("k8s.container.name=c", vec![Difference(12)]), ("team=a", vec![])] {
        let mut go = go.clone();
        go["spec"]["containers"][1]["env"] = json!([{"name": ATTRIBUTES, "value": own}]);
        assert_eq!(of_pod(&go, "shop", &plain, &settings), expected, "{own}");
    }
}

#[test]
fn what_another_namespace_does_not_grant_is_an_error_of_the_operator_only_where_it_does_not_exist() {
    let ask = pod(&[("inject-java", "a"), ("inject-python", "infra/b"), ("container-names", "app")]);
    let own = instrumentation("a", &json!({}));
    let mut other = instrumentation("b", &json!({}));
    other["metadata"]["namespace"] = json!("infra");
    for cross_namespace in [CrossNamespace::Allow, CrossNamespace::Granted, CrossNamespace::Deny] {
        let settings =
            Settings { init_resources: InitResources::Exact, cross_namespace, ..Settings::default() };
        let is_told = |objects: &[Value]| of_pod(&ask, "shop", objects, &settings).contains(&Difference(21));
        assert!(is_told(std::slice::from_ref(&own)), "{cross_namespace:?}");
        assert!(!is_told(&[own.clone(), other.clone()]), "{cross_namespace:?}");
    }
}

#[test]
fn who_asks_for_nothing_has_no_differences() {
    let mut silent = pod(&[]);
    silent["spec"]["os"] = json!({"name": "windows"});
    assert_eq!(told(&silent, &[], InitResources::Neutral), "");
}
