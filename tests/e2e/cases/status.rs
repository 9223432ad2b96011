//! `otel-webhook status`: missed and stale pods, with the commands that restart them. The cases of the controller have
//! pods in each state, which it counts alike.

use std::{collections::BTreeMap, fs};

use jiff::Timestamp;
use otel_webhook_testkit::{
    cluster::{
        created::Created,
        manifests::{bound_to_default, deployment_of, template_asking},
        ports::free_ports,
    },
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, asking};
use crate::program::{Checked, check, run, run_as};

const NAMESPACE: &str = "day-two";

/// The registration of the cluster's own webhook. Other cases have some next to it.
const FLAGS: [&str; 3] = ["--own-flags", "--webhook-configuration", "otel-webhook"];

pub fn missed_and_stale(cluster: &Cluster) {
    cluster.instrumented_namespace(NAMESPACE);
    after_the_second_of_the_instrumentation(cluster, NAMESPACE);
    cluster.missed(NAMESPACE, "missed", 2);

    cluster.apply(&deployment_of(NAMESPACE, 2, &two_languages("order")));
    assert!(cluster.pods_of(NAMESPACE, "app=order", 2).iter().all(Created::is_injected));

    let expected = [
        ("missed java", "missed", "WebhookNotReached"),
        ("order java", "injected", ""),
        ("order nodejs", "injected", ""),
    ];
    assert_eq!(states(&status(cluster, &[]).found[0]), all(&expected));
    agrees_with_check(cluster);

    let endpoint = json!({"exporter": {"endpoint": "http://elsewhere:4317"}});
    cluster.instrumentation(NAMESPACE, "default", &endpoint);
    let mut stale = expected;
    stale[1] = ("order java", "stale", "ConfigurationChanged");
    stale[2] = ("order nodejs", "stale", "ConfigurationChanged");
    let changed = status(cluster, &["--strict"]);
    assert_eq!((states(&changed.found[0]), changed.code), (all(&stale), Some(1)), "{changed:?}");
    let [instrumentation] = &changed.found[0]["instrumentations"].as_array().expect("a list")[..] else {
        panic!("{changed:?}")
    };
    let counts = json!({"matched": 4, "injected": 0, "stale": 2, "missed": 2, "skipped": 0, "foreign": 0,
        "unconfirmed": 0, "failing": 0});
    assert_eq!(instrumentation["pods"], counts, "{instrumentation}");
    assert_eq!(changed.found[0]["incomplete"], json!([]));
    agrees_with_check(cluster);

    commands_work(cluster, &changed);
    not_selected(cluster);
    contexts(cluster);
    tenant(cluster);
    deleted(cluster);
}

/// Times of creation are whole seconds: within one their order is not known.
pub fn after_the_second_of_the_instrumentation(cluster: &Cluster, namespace: &str) {
    let stored = cluster.get(namespace, &["instrumentations.opentelemetry.io", "default"]);
    let created = stored["metadata"]["creationTimestamp"].as_str().expect("a time");
    let created: Timestamp = created.parse().expect("a time");
    until("the second of the Instrumentation is over", || {
        (Timestamp::now().as_second() > created.as_second()).then_some(())
    });
}

/// A template with two containers, one for each language.
fn two_languages(name: &str) -> Value {
    let lists = [("java-container-names", "app"), ("nodejs-container-names", "web")];
    let asks = [("inject-java", "true"), ("inject-nodejs", "true")];
    let mut template = template_asking(name, &[lists, asks].concat());
    let web = json!({"name": "web", "image": "registry.example.com/web:1.0"});
    template["spec"]["containers"].as_array_mut().expect("containers").push(web);
    template
}

fn status(cluster: &Cluster, more: &[&str]) -> Checked {
    of_namespace(cluster, NAMESPACE, more)
}

/// What the command says of a namespace.
pub fn of_namespace(cluster: &Cluster, namespace: &str, more: &[&str]) -> Checked {
    run(&cluster.plane, "status", &[&["-n", namespace], &FLAGS[..], more].concat())
}

/// The command counts the pods of an Instrumentation as the controller has written it into the object.
pub fn agrees_with_controller(cluster: &Cluster, instrumentation: &Value) {
    let text = |field: &str| instrumentation["metadata"][field].as_str().expect("a name");
    let seen = of_namespace(cluster, text("namespace"), &[]);
    let rows = seen.found[0]["instrumentations"].as_array().expect("Instrumentations");
    let row = rows.iter().find(|row| row["name"] == text("name")).expect("the Instrumentation");
    for (state, count) in row["pods"].as_object().expect("counts") {
        let written = instrumentation["status"]["pods"][state].as_u64();
        assert_eq!(count.as_u64(), Some(written.unwrap_or_default()), "{state}: {row} {instrumentation}");
    }
}

/// The state of each language of each workload, with its reason.
pub fn states(report: &Value) -> BTreeMap<String, (String, String)> {
    let mut states = BTreeMap::new();
    for workload in report["workloads"].as_array().expect("workloads") {
        for row in workload["languages"].as_array().expect("languages") {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{} {}", text(&workload["name"]), text(&row["language"]));
            states.insert(name, (text(&row["state"]), text(&row["reason"])));
        }
    }
    states
}

fn all(expected: &[(&str, &str, &str)]) -> BTreeMap<String, (String, String)> {
    let row = |(name, state, reason): &(&str, &str, &str)| {
        ((*name).to_owned(), ((*state).to_owned(), (*reason).to_owned()))
    };
    expected.iter().map(row).collect()
}

/// A workload has missed pods if and only if `check` finds pods without an agent, and so for stale pods.
fn agrees_with_check(cluster: &Cluster) {
    let status = status(cluster, &[]);
    let checked = check(&cluster.plane, &[&["-n", NAMESPACE], &FLAGS[..]].concat());
    for workload in status.found[0]["workloads"].as_array().expect("workloads") {
        let name = &workload["name"];
        for (state, code) in [("missed", "PodsNotInjected"), ("stale", "PodsOutdated")] {
            let rows = workload["languages"].as_array().expect("languages");
            let is_counted = rows.iter().any(|row| row["pods"][state] != 0);
            let is_found = |one: &Value| one["code"] == code && &one["object"]["name"] == name;
            assert_eq!(
                is_counted,
                checked.found.iter().any(is_found),
                "{name} {state}: {workload} {checked:?}"
            );
        }
    }
}

/// The commands are those of the workloads to restart, and kubectl accepts them.
fn commands_work(cluster: &Cluster, changed: &Checked) {
    let outdated = status(cluster, &["--outdated"]);
    let names = |report: &Value| states(report).into_keys().collect::<Vec<_>>();
    let expected = ["missed java", "order java", "order nodejs"];
    assert_eq!((names(&outdated.found[0]), outdated.code), (expected.map(str::to_owned).to_vec(), Some(0)));
    let workloads = changed.found[0]["workloads"].as_array().expect("workloads");
    let commands: Vec<_> = workloads.iter().filter_map(|row| row["command"].as_str()).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (command, name) in commands.iter().zip(["missed", "order"]) {
        assert!(command.starts_with(&format!("kubectl rollout restart deployment/{name} -n day-two ")));
        let words: Vec<_> = command.split(' ').skip(1).collect();
        cluster.run(&words);
    }
}

/// Without the Instrumentation, a restart would remove agents: nothing advises one, and what would come first is said.
fn deleted(cluster: &Cluster) {
    cluster.run(&["delete", "instrumentations.opentelemetry.io", "default", "-n", NAMESPACE]);
    let found = status(cluster, &[]);
    let workloads = found.found[0]["workloads"].as_array().expect("workloads");
    let order = workloads.iter().find(|row| row["name"] == "order").expect("a workload with agents");
    assert_eq!((&order["state"], &order["command"]), (&json!("stale"), &Value::Null), "{order}");
    assert_eq!(order["notAdvised"]["code"], "WouldRemoveAgent", "{order}");
    let commands = check(&cluster.plane, &[&["-n", NAMESPACE], &FLAGS[..]].concat());
    let commands: Vec<_> = commands.found.iter().map(|result| result["commands"].to_string()).collect();
    assert!(!commands.iter().any(|commands| commands.contains("restart")), "{commands:?}");
    let target = ["deployment/order", "-n", NAMESPACE];
    let explained = run(&cluster.plane, "explain", &[&target, &FLAGS[..]].concat());
    let explained = &explained.found[0];
    assert_eq!(explained["remedy"], Value::Null, "{explained}");
    let why = explained["notAdvised"]["message"].as_str().unwrap_or_default();
    assert!(
        why.starts_with("a restart would remove the agent for java: a new pod would get no agent"),
        "{explained}"
    );
}

/// A namespace that the registration excludes.
fn not_selected(cluster: &Cluster) {
    let name = "day-two-excluded";
    cluster.create("kube-system", &asking(name, &[("inject-java", "day-two/default")]));
    let found = of_namespace(cluster, "kube-system", &[]);
    let expected = ("missed".to_owned(), "NotSelected".to_owned());
    assert_eq!(states(&found.found[0])["day-two-excluded java"], expected, "{found:?}");
    cluster.run(&["delete", "pod", name, "-n", "kube-system", "--grace-period=0", "--force"]);
}

/// A report for each context. One that cannot be reached does not hide the others.
fn contexts(cluster: &Cluster) {
    let mut config: Value =
        serde_json::from_str(&fs::read_to_string(cluster.plane.kubeconfig()).expect("a kubeconfig"))
            .expect("JSON");
    let context = config["contexts"][0]["context"].clone();
    let [port] = free_ports();
    let away = json!({"name": "away", "cluster": {"server": format!("https://127.0.0.1:{port}")}});
    config["clusters"].as_array_mut().expect("clusters").push(away);
    let user = context["user"].clone();
    config["contexts"] = json!([{"name": "one", "context": context}, {"name": "two", "context": context},
        {"name": "gone", "context": {"cluster": "away", "user": user}}]);
    let path = cluster.plane.dir().join("contexts.kubeconfig");
    fs::write(&path, config.to_string()).expect("the scratch folder is writable");
    let of = |contexts: &str| {
        let flags = ["-n", NAMESPACE, "--context", contexts];
        run_as("status", path.to_str().expect("UTF-8"), &[&flags[..], &FLAGS[..]].concat())
    };
    let both = of("one,two");
    let names: Vec<_> = both.found.iter().filter_map(|report| report["cluster"].as_str()).collect();
    assert_eq!((names, both.code), (vec!["one", "two"], Some(0)), "{both:?}");
    assert_eq!(states(&both.found[0]), states(&both.found[1]));
    let command = both.found[1]["workloads"].to_string();
    assert!(command.contains(" -n day-two --kubeconfig ") && command.contains(" --context two"), "{command}");

    let partly = of("one,gone");
    assert_eq!(partly.code, Some(2), "{partly:?}");
    let [one, gone] = &partly.found[..] else { panic!("{partly:?}") };
    assert_eq!(one["incomplete"], json!([]));
    let why = gone["incomplete"][0].as_str().expect("a sentence");
    assert!(why.starts_with("cannot connect to a cluster: "), "{why}");
    let gone = of("gone");
    assert!(gone.code == Some(2) && gone.found.is_empty(), "{gone:?}");
    assert!(gone.err.contains("cannot connect to a cluster"), "{gone:?}");
}

/// A user who may read the pods of the namespace and little else is told what is not known, and nothing wrong.
fn tenant(cluster: &Cluster) {
    cluster.apply(&bound_to_default(NAMESPACE, "view"));
    let kubeconfig = cluster.plane.kubeconfig_of(NAMESPACE, "default");
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let seen = until("the role is in effect", || {
        let seen = run_as("status", kubeconfig, &["-n", NAMESPACE]);
        (seen.code == Some(0)).then_some(seen)
    });
    let incomplete = seen.found[0]["incomplete"].to_string();
    assert!(incomplete.contains("the webhook's flags are not readable by you"), "{incomplete}");
    let states = states(&seen.found[0]);
    let unconfirmed = ("unconfirmed".to_owned(), "NotReadable".to_owned());
    assert_eq!(states["order java"], unconfirmed, "{states:?}");
    assert!(states.values().all(|(state, _)| state != "stale"), "{states:?}");

    let everywhere = run_as("status", kubeconfig, &[]);
    assert_eq!(everywhere.code, Some(2), "{everywhere:?}");
    let advice = "; --namespace reads those of one namespace";
    assert!(everywhere.err.contains("(list pods)") && everywhere.err.contains(advice), "{everywhere:?}");
}
