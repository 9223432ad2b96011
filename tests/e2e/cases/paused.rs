//! The annotation `otel-webhook/paused`: new pods start without agents, running ones stay, restarts wait.

use std::time::{Duration, Instant};

use otel_webhook_testkit::{cluster::created::Created, runner::note, until::until};
use serde_json::{Value, json};

use super::{
    restarts::{SHOP, change, create},
    status,
};
use crate::{
    audit,
    cluster::{Cluster, java},
    controller::{self, ACCOUNT, Controller, deployment},
    program::{check, output, program},
    registration::HOME,
};

/// The namespace that is paused, one next to it, and the one of a controller that watches no other.
const PAUSED: &str = "paused-shop";
const OTHER: &str = "paused-other";

/// The Lease of the release.
const LEASE: &str = "otel-webhook-controller";

/// Within this time after the annotation, a new pod starts without an agent.
const BOUND: Duration = Duration::from_secs(1);

/// An object that pauses, as kubectl names it, as it is called, and which pods it is for.
struct Place {
    target: &'static [&'static str],
    name: &'static str,
    /// Whether it is for the pods of all namespaces.
    all: bool,
}

const PLACES: [Place; 4] = [
    Place {
        target: &["instrumentations.opentelemetry.io", "default", "--namespace", PAUSED],
        name: "Instrumentation paused-shop/default",
        all: false,
    },
    Place { target: &["namespace", PAUSED], name: "Namespace paused-shop", all: false },
    Place { target: &["namespace", HOME], name: "Namespace otel-webhook", all: true },
    Place {
        target: &["leases.coordination.k8s.io", LEASE, "--namespace", HOME],
        name: "Lease otel-webhook/otel-webhook-controller",
        all: true,
    },
];

pub fn each_place(_: &Cluster) {
    let cluster = &Cluster::start();
    for namespace in [PAUSED, OTHER] {
        cluster.instrumented_namespace(namespace);
    }
    // The controller makes the Lease.
    let controller = Controller::new(cluster);
    controller.start();
    let running = cluster.create(PAUSED, &java("running"));
    let before = status_of(&running);
    for (number, Place { target, name, all }) in PLACES.iter().enumerate() {
        set(cluster, target, "True");
        let paused = first(cluster, &format!("paused-{number}"), |pod| !pod.is_injected());
        assert!(paused.status().contains("\"outcome\":\"Paused\""), "{}", paused.status());
        let said =
            format!("java: injection is paused by the annotation otel-webhook/paused of {name}; to resume: ");
        assert!(paused.warnings.contains(&said), "{}", paused.warnings);
        let other = cluster.dry_run(OTHER, &java("other"));
        assert_eq!(other.is_injected(), !all, "{name}");
        assert_eq!(cluster.webhook.metric(&metric(*all, target)), 1);
        if !all {
            reported(cluster, name, number + 1);
        }
        set(cluster, target, "yes");
        until("another value pauses nothing", || {
            cluster.dry_run(PAUSED, &java("probe")).is_injected().then_some(())
        });
        if !all {
            by_subcommand(cluster, target);
        }
        set(cluster, target, "true");
        until("it is paused again", || {
            (!cluster.dry_run(PAUSED, &java("probe")).is_injected()).then_some(())
        });
        remove(cluster, target);
        let resumed = first(cluster, &format!("resumed-{number}"), Created::is_injected);
        assert_eq!(status_of(&resumed), before, "the hash is the same");
    }
    assert_eq!(cluster.get(PAUSED, &["pod", "running"])["metadata"]["uid"], running.pod["metadata"]["uid"]);
}

/// The configuration in the stamp.
fn status_of(pod: &Created) -> Value {
    let entries: Value = serde_json::from_str(pod.status()).expect("JSON");
    entries[0]["hash"].clone()
}

fn metric(all: bool, target: &[&str]) -> String {
    let scope = match target[0] {
        _ if all => "all",
        "namespace" => "namespace",
        _ => "instrumentation",
    };
    format!("otel_webhook_paused{{scope=\"{scope}\"}}")
}

/// Creates pods until one is as it should be, and says how long after the change of the annotation that was. Those before
/// it are deleted.
fn first(cluster: &Cluster, name: &str, is_it: impl Fn(&Created) -> bool) -> Created {
    let changed = Instant::now();
    let (found, took) = until(name, || {
        let asked = changed.elapsed();
        let pod = cluster.create(PAUSED, &java(name));
        if is_it(&pod) {
            return Some((pod, asked));
        }
        cluster.run(&["delete", "pod", name, "--namespace", PAUSED, "--now"]);
        None
    });
    note(&format!("{name}: {} ms after the change of the annotation", took.as_millis()));
    assert!(took <= BOUND, "{name}: {took:?}");
    found
}

/// `status` and `check` begin with what pauses, and the states of running pods stay.
fn reported(cluster: &Cluster, name: &str, without: usize) {
    let report = &status::of_namespace(cluster, PAUSED, &[]).found[0];
    let states = status::states(report);
    assert_eq!(states["running java"], ("injected".to_owned(), String::new()), "{report}");
    let skipped = states.values().filter(|state| **state == ("skipped".to_owned(), "Paused".to_owned()));
    // What was uninjected during an earlier pause is paused now, too.
    assert_eq!(skipped.count(), without, "{report}");
    assert_eq!(report["paused"][0]["by"], name, "{report}");
    let running =
        report["workloads"].as_array().expect("workloads").iter().find(|row| row["name"] == "running");
    assert_eq!(running.expect("the pod")["paused"]["by"], name, "{report}");
    let checked = check(&cluster.plane, &["-n", PAUSED, "--webhook-configuration", "otel-webhook"]);
    let first = &checked.found[0];
    assert_eq!(first["code"], "InjectionPaused", "{checked:?}");
    assert!(checked.found.iter().all(|result| result["reason"] != "Paused"), "it is said once: {checked:?}");
}

fn set(cluster: &Cluster, target: &[&str], value: &str) {
    cluster.annotate(&[target, &[&format!("otel-webhook/paused={value}")]].concat());
}

fn remove(cluster: &Cluster, target: &[&str]) {
    cluster.annotate(&[target, &["otel-webhook/paused-"]].concat());
}

/// Pauses and resumes by the subcommands, which print how kubectl does it.
fn by_subcommand(cluster: &Cluster, target: &[&str]) {
    let args = match target[0] {
        "namespace" => ["--namespace", PAUSED],
        _ => ["--instrumentation", "paused-shop/default"],
    };
    for (subcommand, change) in
        [("pause", "otel-webhook/paused=true --overwrite"), ("resume", "otel-webhook/paused-")]
    {
        let mut command = program();
        let (out, err, code) =
            output(command.arg(subcommand).arg("--kubeconfig").arg(cluster.plane.kubeconfig()).args(args));
        let kubectl = format!(
            "the same by kubectl: kubectl annotate {}",
            target.join(" ").replace("--namespace", "-n")
        );
        assert!(code == Some(0) && out.contains(&kubectl) && out.contains(change), "{out}{err}");
        let is_paused = subcommand == "pause";
        until("the annotation is known", || {
            (cluster.dry_run(PAUSED, &java("probe")).is_injected() != is_paused).then_some(())
        });
    }
}

/// Restarts wait during a pause and go on after it; nothing is deleted.
pub fn restarts(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    cluster.instrumented_namespace(SHOP);
    cluster.annotate(&["namespace", SHOP, "otel-webhook/restart=rollout"]);
    create(cluster, &deployment(SHOP, "order", 2));
    let controller = Controller::with_restarts(cluster);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2}));
    let target = ["namespace", SHOP];
    set(cluster, &target, "true");
    until("the controller knows of the pause", || {
        (controller.metric("otel_webhook_paused{scope=\"namespace\"}") == Some(1)).then_some(())
    });
    change(cluster, "http://second:4317");
    controller.expect(SHOP, "default", &json!({"matched": 2, "stale": 2}));
    let sentence = controller.expect_restart(SHOP, "order", "InjectionPaused");
    assert_eq!(sentence, "waits: injection is paused by Namespace restart-a; a restart would remove agents");
    let page = controller.page();
    assert!(page.contains("Injection is paused") && page.contains("Namespace restart-a"), "{page}");
    assert!(audit::patches(cluster, ACCOUNT, "deployments", SHOP, "order").is_empty());
    remove(cluster, &target);
    controller.expect(SHOP, "default", &json!({"matched": 2, "injected": 2}));
    assert_eq!(audit::patches(cluster, ACCOUNT, "deployments", SHOP, "order").len(), 1);
}

/// A controller that may not read the namespace of the release learns of the pause by the Lease.
pub fn by_the_lease(_: &Cluster) {
    const FLAGS: (&str, &[&str]) = (PAUSED, &["--namespaces", PAUSED]);
    let cluster = &Cluster::start();
    for namespace in [PAUSED, OTHER] {
        cluster.instrumented_namespace(namespace);
    }
    let controller = Controller::of_namespace(cluster, FLAGS);
    controller.start();
    cluster.create(PAUSED, &java("before"));
    let target = ["leases.coordination.k8s.io", LEASE, "--namespace", HOME];
    set(cluster, &target, "true");
    first(cluster, "during", |pod| !pod.is_injected());
    assert!(!cluster.dry_run(OTHER, &java("other")).is_injected(), "all are paused");
    controller.expect(PAUSED, "default", &json!({"matched": 2, "injected": 1, "skipped": 1}));
    let page = controller.page();
    assert!(
        page.contains("Lease otel-webhook/otel-webhook-controller: all pods start without agents"),
        "{page}"
    );
    remove(cluster, &target);
    controller.expect(PAUSED, "default", &json!({"matched": 2, "injected": 1, "missed": 1}));
    controller.stop();
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles_of_namespace(PAUSED));
}
