//! What `explain` says of workloads in a cluster: the same as what comes of their pods.

mod developer;
mod generated;

use std::{env, path::Path, process::Command};

use otel_webhook_testkit::{
    cluster::manifests::{deployment, object, template, workload},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, java};
use crate::program::{Checked, output, program, run};

pub use developer::developer;
pub use generated::generated;

const ROLLOUTS: &str = include_str!("../../data/rollouts-crd.yaml");

/// Runs `explain` as the administrator.
fn explain(cluster: &Cluster, arguments: &[&str]) -> Checked {
    run(&cluster.plane, "explain", arguments)
}

/// The one object that `explain` prints.
fn explained(cluster: &Cluster, namespace: &str, target: &str) -> Value {
    let run = explain(cluster, &[target, "-n", namespace]);
    assert_eq!((run.code, run.found.len()), (Some(0), 1), "{target}: {run:?}");
    run.found[0].clone()
}

/// Every kind of workload, by long and short names, and what its pods have.
pub fn kinds(cluster: &Cluster) {
    let namespace = "explained-kinds";
    cluster.instrumented_namespace(namespace);
    cluster.apply(&serde_saphyr::from_str(ROLLOUTS).expect("YAML"));
    let object = |version: &str, kind: &str, name: &str, spec: Value| {
        let mut object = object(version, kind, namespace, name, &spec);
        object["metadata"]["labels"] = json!({"part": "kinds"});
        object
    };
    let of = |name: &str| workload(1, &template(name));
    let mut daemon_set = of("node");
    daemon_set.as_object_mut().expect("an object").remove("replicas");
    let mut job = template("once");
    job["spec"]["restartPolicy"] = "Never".into();
    let nightly = json!({"schedule": "0 0 1 1 *", "suspend": true,
        "jobTemplate": {"spec": {"template": job.clone()}}});
    for object in [
        object("apps/v1", "Deployment", "web", of("web")),
        object("apps/v1", "StatefulSet", "db", of("db")),
        object("apps/v1", "DaemonSet", "node", daemon_set),
        object("apps/v1", "ReplicaSet", "alone", of("alone")),
        object("batch/v1", "Job", "once", json!({"template": job})),
        object("batch/v1", "CronJob", "nightly", nightly),
    ] {
        cluster.apply(&object);
    }
    until("the kind Rollout is served", || {
        let rollout = object("argoproj.io/v1alpha1", "Rollout", "canary", of("canary"));
        cluster.plane.kubectl_in(&["apply", "--filename", "-"], &rollout.to_string()).ok.then_some(())
    });
    cluster.create(namespace, &java("bare"));
    let pod = cluster.pods_of(namespace, "app=web", 1).remove(0);
    cluster.pods_of(namespace, "app=db", 1);
    for (target, kind, name) in [
        ("deploy/web", "Deployment", "web"),
        (&format!("pod/{}", pod.name()), "Deployment", "web"),
        ("sts/db", "StatefulSet", "db"),
        ("ds/node", "DaemonSet", "node"),
        ("replicaset.apps/alone", "ReplicaSet", "alone"),
        ("job/once", "Job", "once"),
        ("cj/nightly", "CronJob", "nightly"),
        ("rollout/canary", "Rollout", "canary"),
    ] {
        let explained = explained(cluster, namespace, target);
        assert_eq!((&explained["kind"], &explained["name"]), (&json!(kind), &json!(name)), "{target}");
        let java = &explained["findings"][0];
        assert_eq!(
            (&java["outcome"], &explained["reviewed"]),
            (&json!("Injected"), &json!(true)),
            "{target}"
        );
    }
    let bare = explained(cluster, namespace, "po/bare");
    assert_eq!(bare["findings"][0]["outcome"], "AlreadyInjected", "{bare}");
    assert_eq!(bare["pods"][0]["name"], "bare");
    let names = |run: &Checked| {
        let of = |object: &Value| format!("{}/{}", object["kind"], object["name"]).replace('"', "");
        run.found.iter().map(of).collect::<Vec<_>>()
    };
    let all = explain(cluster, &["-l", "part=kinds", "-n", namespace]);
    let expected = [
        "Deployment/web",
        "StatefulSet/db",
        "DaemonSet/node",
        "CronJob/nightly",
        "Rollout/canary",
        "ReplicaSet/alone",
        "Job/once",
    ];
    assert_eq!((names(&all), all.code), (expected.map(str::to_owned).to_vec(), Some(0)), "{all:?}");
    let mut elsewhere = deployment("explained-more", "elsewhere", 1);
    elsewhere["metadata"]["labels"] = json!({"part": "kinds"});
    cluster.namespace("explained-more", &[]);
    cluster.apply(&elsewhere);
    let everywhere = explain(cluster, &["-l", "part=kinds", "-A"]);
    let more = [names(&all), vec!["Deployment/elsewhere".to_owned()]].concat();
    assert_eq!((names(&everywhere), everywhere.code), (more, Some(0)), "{everywhere:?}");
    let deployments = explain(cluster, &["deployments", "-l", "part=kinds", "--all-namespaces"]);
    assert_eq!(names(&deployments), ["Deployment/web", "Deployment/elsewhere"]);
    running(cluster, namespace);
    missing(cluster, namespace);
    nearly(cluster);
    completed(cluster, namespace);
}

/// What a selector demands of a workload in addition to what it has is said to those who ask for that workload.
fn nearly(cluster: &Cluster) {
    let namespace = "explained-nearly";
    cluster.namespace(namespace, &[]);
    let selector = json!({"matchLabels": {"team": "sales", "runtime": "jvm"}});
    cluster.instrumentation(namespace, "jvm", &json!({"inject": ["java"], "selector": selector}));
    let mut order = deployment(namespace, "order", 0);
    let metadata = &mut order["spec"]["template"]["metadata"];
    metadata["annotations"] = json!({});
    metadata["labels"]["team"] = "sales".into();
    cluster.apply(&order);
    let explained = explained(cluster, namespace, "deploy/order");
    let expected = "the selector of Instrumentation \"explained-nearly/jvm\" requires the label runtime, which the pods do not have";
    assert_eq!(explained["mistakes"][0]["message"], expected, "{explained}");
    assert_eq!(explained["mistakes"][0]["remedy"], "set runtime: \"jvm\" in spec.template.metadata.labels");
    let checked = run(&cluster.plane, "check", &["-n", namespace, "--own-flags"]);
    assert!(!checked.codes().contains(&"AnnotationIgnored"), "it may be meant so: {checked:?}");
}

/// A shell completes names from the cluster.
fn completed(cluster: &Cluster, namespace: &str) {
    let by_bash = |words: &[&str]| {
        let script = r#"source <(otel-webhook completions bash)
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clap_complete_otel_webhook "$1" "${!#}"
            printf '%s\n' "${COMPREPLY[@]}""#;
        let program = program();
        let folder = Path::new(program.get_program()).parent().expect("a folder").display();
        let path = format!("{folder}:{}", env::var("PATH").expect("a path"));
        let mut bash = Command::new("bash");
        bash.args(["-c", script, "bash", "otel-webhook"]).args(words).env("PATH", path);
        let (out, err, code) = output(bash.env("KUBECONFIG", cluster.plane.kubeconfig()));
        assert_eq!((code, &*err), (Some(0), ""), "{words:?}");
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(by_bash(&["expl"]), ["explain"]);
    assert_eq!(by_bash(&["explain", "-n", "explained-ki"]), [namespace]);
    assert_eq!(by_bash(&["explain", "st"]), ["statefulset/"]);
    assert_eq!(by_bash(&["explain", "-n", namespace, "deployment/w"]), ["deployment/web"]);
    assert_eq!(by_bash(&["trace", "--namespace", namespace, "sts/"]), ["sts/db"]);
    let kubeconfig = cluster.plane.kubeconfig().display().to_string();
    let elsewhere = by_bash(&["trace", "--kubeconfig", &kubeconfig, "-n", "explained-more", "deployment/"]);
    assert_eq!(elsewhere, ["deployment/elsewhere"]);
}

/// Pods that have an earlier configuration, and pods that have nothing.
fn running(cluster: &Cluster, namespace: &str) {
    let agent = |explained: &Value| explained["pods"][0]["injected"][0].clone();
    // The webhook of these tests runs outside of the cluster, so that its flags are those of the command.
    let web = explained(cluster, namespace, "deploy/web");
    let expected = json!({"language": "java", "by": "otel-webhook", "image": web["added"][0]["image"],
        "instrumentation": format!("{namespace}/default"), "configuration": "current"});
    assert_eq!((agent(&web), &web["remedy"]), (expected, &json!(null)), "{web}");
    cluster.instrumentation(namespace, "default", &json!({"propagators": ["b3"]}));
    let web = explained(cluster, namespace, "deploy/web");
    let restart = format!("kubectl rollout restart deployment/web -n {namespace}");
    assert_eq!(
        (&agent(&web)["configuration"], &web["remedy"]),
        (&json!("earlier"), &json!(restart)),
        "{web}"
    );
}

/// What does not exist is said, with status 2.
fn missing(cluster: &Cluster, namespace: &str) {
    for (arguments, problem) in [
        (&["deploy/ghost", "-n", namespace][..], "Deployment \"ghost\" not found in namespace"),
        (&["deploy/web", "-n", "ghost"], "namespace \"ghost\" not found"),
        (&["-l", "part=ghost", "-n", namespace], "no workloads found in namespace"),
        (&["-l", "part=ghost", "-A"], "no workloads found in any namespace"),
        (&["deploy/web", "-l", "part=kinds", "-n", namespace], "--selector selects workloads"),
        (&["deploy/web", "-A"], "--all-namespaces explains workloads by type or label selector, not by name"),
    ] {
        let run = explain(cluster, arguments);
        assert!(run.code == Some(2) && run.err.contains(problem), "{run:?}");
    }
}
