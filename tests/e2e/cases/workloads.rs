//! Workloads that are applied with a mistake: taken, with a warning for whoever applies them.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, LIMIT, template};
use crate::registration;

const PREFIX: &str = "instrumentation.opentelemetry.io/";

pub fn warned_of(cluster: &Cluster) {
    let namespace = "mistaken-workloads";
    cluster.instrumented_namespace(namespace);
    let _registered = registration::register_workloads(&cluster.plane, &cluster.webhook, namespace);

    let misspelt = deployment(namespace);
    let sentence = "Warning: otel-webhook: Deployment mistaken: \
        unknown annotation instrumentation.opentelemetry.io/inject-jva (did you mean \"inject-java\"?)";
    let dry_run = ["apply", "--dry-run=server", "--filename", "-"];
    until("the registration is in effect", LIMIT, || {
        let ran = cluster.plane.kubectl_in(&dry_run, &misspelt.to_string());
        ran.stderr.contains(sentence).then_some(())
    });
    let ran = cluster.plane.kubectl_in(&["apply", "--filename", "-"], &misspelt.to_string());
    assert!(ran.ok && ran.stderr.contains(sentence), "{}", ran.stderr);

    let ran = cluster.plane.kubectl_in(&["apply", "--filename", "-"], &cron_job(namespace).to_string());
    let sentence = "Warning: otel-webhook: CronJob mistaken: \
        the annotation instrumentation.opentelemetry.io/inject-java has no effect on the job template itself; \
        move it to spec.jobTemplate.spec.template.metadata.annotations";
    assert!(ran.ok && ran.stderr.contains(sentence), "{}", ran.stderr);
    for kind in ["deployment/mistaken", "cronjob/mistaken"] {
        let stored = cluster.get(namespace, &[kind]);
        assert_eq!(stored["metadata"]["name"], "mistaken", "{stored}");
    }
}

/// No pods: the mistake is the workload's.
fn deployment(namespace: &str) -> Value {
    let mut template = template("mistaken");
    template["metadata"]["annotations"] = json!({format!("{PREFIX}inject-jva"): "true"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "mistaken", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "mistaken"}}, "template": template},
    })
}

fn cron_job(namespace: &str) -> Value {
    let mut template = template("mistaken");
    template["metadata"]["annotations"].take();
    template["spec"]["restartPolicy"] = "Never".into();
    let annotations = json!({format!("{PREFIX}inject-java"): "true"});
    let jobs = json!({"metadata": {"annotations": annotations}, "spec": {"template": template}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "mistaken", "namespace": namespace},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": jobs},
    })
}
