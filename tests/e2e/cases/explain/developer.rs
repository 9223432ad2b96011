//! A developer with the role `view` in one namespace: what is said is true, or said to be unknown.

use otel_webhook_testkit::{
    cluster::manifests::{bound_to_default, deployment_of, template_asking},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::{Checked, run, run_as};

const AGGREGATED: &str = include_str!("../../../../manifests/rbac/aggregated.yaml");

/// A namespace with its own Instrumentations, and one without.
const NAMESPACES: [&str; 2] = ["developer-own", "developer-none"];

/// The namespace of others.
const OTHERS: &str = "developer-others";

/// The flags of the webhook, which the developer does not see, and no defaults.
const FLAGS: [&str; 4] = ["--languages", "java,go", "--default-instrumentation", "developer-others/default"];

/// Codes that say what is not known.
const UNKNOWN: [&str; 3] = ["NotAllowed", "NotReadable", "SettingsAssumed"];

/// What the pods of each workload opt in to.
const WORKLOADS: [(&str, &[(&str, &str)]); 7] = [
    ("any", &[("inject-java", "true")]),
    ("other", &[("inject-java", "developer-others/default")]),
    ("other-missing", &[("inject-java", "developer-others/ghost")]),
    ("own-missing", &[("inject-java", "ghost")]),
    ("enabled-unseen", &[("inject-go", "true"), ("otel-go-auto-target-exe", "/app")]),
    ("out", &[("inject-java", "false")]),
    ("several", &[("inject-java", "developer-others/ghost"), ("inject-nodejs", "true")]),
];

pub fn developer(cluster: &Cluster) {
    cluster.plane.apply_server_side(AGGREGATED);
    cluster.namespace(OTHERS, &[]);
    cluster.instrumentation(OTHERS, "default", &json!({}));
    for namespace in NAMESPACES {
        cluster.namespace(namespace, &[]);
        cluster.apply(&bound_to_default(namespace, "view"));
        for (name, annotations) in WORKLOADS {
            cluster.apply(&deployment_of(namespace, 1, &template_asking(name, annotations)));
        }
    }
    cluster.instrumentation(NAMESPACES[0], "default", &json!({}));
    for namespace in NAMESPACES {
        one_namespace(cluster, namespace);
    }
    commands(cluster);
}

/// Each statement of the developer's report is one of the administrator's, who has the webhook's flags.
fn one_namespace(cluster: &Cluster, namespace: &str) {
    for (_, label) in WORKLOADS.map(|(name, _)| (name, format!("app={name}"))) {
        cluster.pods_of(namespace, &label, 1);
    }
    let kubeconfig = cluster.plane.kubeconfig_of(namespace, "default");
    let developer = kubeconfig.to_str().expect("UTF-8");
    until("the role is in effect", || {
        let run = run_as("explain", developer, &["deployments", "-n", namespace]);
        (run.code == Some(0)).then_some(())
    });
    let admin = |subcommand: &str, flags: &[&str]| run(&cluster.plane, subcommand, flags);
    let own = [&["-n", namespace, "--own-flags"][..], &FLAGS].concat();
    let account = ["--service-account", "otel-webhook/otel-webhook"];

    let truth = admin("check", &[&own[..], &account].concat());
    let said = run_as("check", developer, &["-n", namespace]);
    assert!(said.codes().contains(&"SettingsAssumed") && said.codes().contains(&"NotReadable"), "{said:?}");
    assert!(said.says("SettingsAssumed").contains("not readable by you (list mutatingwebhook"), "{said:?}");
    for statement in said.found.iter().filter(|one| !UNKNOWN.contains(&one["code"].as_str().expect("a code")))
    {
        assert!(truth.found.contains(statement), "wrong: {statement}\nthe truth is {truth:?}");
    }

    let truth = admin("check", &[&own[..], &["--preview"]].concat());
    let said = run_as("check", developer, &["-n", namespace, "--preview"]);
    each_is_true(&said, &truth, "languages", "next");

    let truth = admin("explain", &[&["deployments"], &own[..]].concat());
    let said = run_as("explain", developer, &["deployments", "-n", namespace]);
    each_is_true(&said, &truth, "findings", "outcome");
    for object in &said.found {
        assert_eq!(object["reviewed"], json!(null), "{object}");
        let caveats = object["caveats"].to_string();
        assert!(caveats.contains("not readable by you (list mutatingwebhookconfigurations)"), "{caveats}");
    }
    let unread = format!("{said:?}");
    assert!(unread.contains("(list instrumentations in developer-others)"), "{unread}");
}

/// What is known of each language of each workload is what the administrator knows.
fn each_is_true(said: &Checked, truth: &Checked, list: &str, outcome: &str) {
    assert_eq!((said.code, said.found.len()), (Some(0), WORKLOADS.len()), "{said:?}");
    let mut known = 0;
    for object in &said.found {
        let real = truth.found.iter().find(|real| real["name"] == object["name"]).expect("the workload");
        for one in object[list].as_array().expect("a list").iter().filter(|one| one[outcome] != "NotReadable")
        {
            let is_it = |real: &&Value| real["language"] == one["language"] && real[outcome] == one[outcome];
            let real = real[list].as_array().into_iter().flatten().find(is_it);
            assert!(real.is_some(), "wrong: {one} of {}\nthe truth is {truth:?}", object["name"]);
            known += 1;
        }
    }
    assert!(known > 0, "something is known: {said:?}");
}

/// What the developer may not read at all.
fn commands(cluster: &Cluster) {
    let kubeconfig = cluster.plane.kubeconfig_of(NAMESPACES[0], "default");
    let developer = kubeconfig.to_str().expect("UTF-8");
    let elsewhere = run_as("explain", developer, &["deployment/any", "-n", NAMESPACES[1]]);
    let said = "not readable by you (get deployments any in developer-none): ";
    assert!(elsewhere.code == Some(2) && elsewhere.err.contains(said), "{elsewhere:?}");
    let all = run_as("check", developer, &[]);
    let known: Vec<_> = all.codes().into_iter().filter(|code| !UNKNOWN.contains(code)).collect();
    assert_eq!((known, all.code), (Vec::new(), Some(0)), "{all:?}");
}
