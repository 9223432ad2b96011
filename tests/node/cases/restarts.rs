//! Restarts by consent, of pods that run.

use otel_webhook_testkit::until::until;
use serde_json::{Value, json};

use crate::cluster::{Cluster, HOME};
use crate::service::JAVA;
use crate::workload::{APP, DELIVERY, Running, asking, deployment, service};

const NAMESPACE: &str = "wave";
const NAMES: [&str; 3] = ["one", "two", "three"];

/// An image whose `javaagent.jar` is empty.
const BROKEN: &str = "localhost/otel-webhook-node/broken-java:1";

/// Lets the controller restart workloads, at a quick pace.
fn allow(cluster: &Cluster) {
    let pace = ["settle=1s", "observe=5s", "progress=60s", "perMinute=60"]
        .map(|value| format!("--set controller.restarts.{value}"));
    cluster.shell(&format!(
        "helm upgrade otel-webhook charts/otel-webhook --namespace {HOME} --reuse-values --set controller.restarts.enabled=true {}",
        pace.join(" ")
    ));
    cluster.rolled_out(HOME, "otel-webhook-controller");
}

/// A JVM that dies of its new agent stops the restarts: the pods that ran keep running, and the other workloads are
/// left alone.
pub fn stopped_by_a_jvm_that_dies(cluster: &Cluster) {
    allow(cluster);
    cluster.namespace(NAMESPACE, &json!({}));
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    cluster.shell(&format!("kubectl annotate namespace {NAMESPACE} otel-webhook/restart=rollout"));
    for name in NAMES {
        cluster.apply(&deployment(NAMESPACE, name, 1, service(name, JAVA, "initContainer")));
    }
    let before = NAMES.map(|name| Running::of_deployment(cluster, NAMESPACE, name).remove(0));
    let counted = |wanted: &Value| {
        until(&format!("the controller counts {wanted}"), || {
            let found = cluster.get(NAMESPACE, &["otelinst", "default"]);
            let wanted = wanted.as_object()?;
            wanted.iter().all(|(state, count)| found["status"]["pods"][state] == *count).then_some(())
        });
    };
    counted(&json!({"matched": 3, "injected": 3}));

    let broken = json!({"java": {"image": BROKEN}});
    cluster.instrumentation(NAMESPACE, "default", &broken);
    until("restarts are stopped", || {
        let found = cluster.get(NAMESPACE, &["otelinst", "default"]);
        let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "RestartStopped" && one["status"] == "True").then_some(())
    });
    for pod in &before {
        pod.until_ready();
    }
    let restarted = NAMES.map(|name| {
        let found = cluster.get(NAMESPACE, &["deployment", name]);
        !found["spec"]["template"]["metadata"]["annotations"]["otel-webhook/config"].is_null()
    });
    assert_eq!(restarted.iter().filter(|restarted| **restarted).count(), 1, "{restarted:?}");

    // Corrected: what was restarted gets an agent that works.
    cluster.instrumentation(NAMESPACE, "default", &json!({}));
    counted(&json!({"matched": 3, "injected": 3}));
    for name in NAMES {
        cluster.rolled_out(NAMESPACE, name);
    }
}

/// The same as a later version than the recorded default: an earlier one would not replace that.
const LATER: &str = "localhost/otel-webhook-node/broken-java:99.0.0";

/// The Instrumentation is in the first of these namespaces.
const UPGRADED: [&str; 3] = ["upgrade-a", "upgrade-b", "upgrade-c"];

/// In each namespace, and restarted in this order. In the second one, the first crashes with the new image.
const SERVICES: [&str; 4] = ["cart", "order", "price", "stock"];

/// A service that needs no JVM; one that `reads` its agent ends at once where that is empty.
fn stand_in(name: &str, reads: bool) -> Value {
    let check = "for jar in /otel-auto-instrumentation-java*/javaagent.jar; do test -s $jar || exit 1; done";
    let script = format!("{}; trap exit TERM; while :; do sleep 1; done", if reads { check } else { ":" });
    let probe =
        json!({"exec": {"command": ["busybox", "true"]}, "periodSeconds": 1, "initialDelaySeconds": 1});
    let container =
        json!({"image": APP, "command": ["busybox", "sh", "-c", script], "readinessProbe": probe});
    let mut pod = asking(name, &[("inject-java", &format!("{}/default", UPGRADED[0]))], container);
    pod["metadata"]["annotations"][DELIVERY] = "initContainer".into();
    pod
}

/// The default image changes by `helm upgrade`, and one of twelve services crashes with it: the first restart is in the
/// namespace of the Instrumentation, the namespace of the one that crashes is left alone after it, and the others follow.
pub fn default_image(cluster: &Cluster) {
    allow(cluster);
    let tagged = cluster.node().ctr(&["images", "tag", BROKEN, LATER]);
    assert!(tagged.ok, "{}", tagged.stderr);
    for namespace in UPGRADED {
        cluster.namespace(namespace, &json!({}));
        cluster.shell(&format!("kubectl annotate namespace {namespace} otel-webhook/restart=rollout"));
    }
    cluster.instrumentation(UPGRADED[0], "default", &json!({}));
    let all = || UPGRADED.into_iter().flat_map(|namespace| SERVICES.map(|name| (namespace, name)));
    let crashes = |service: &(&str, &str)| *service == (UPGRADED[1], SERVICES[0]);
    for (namespace, name) in all() {
        let pod = stand_in(name, crashes(&(namespace, name)));
        cluster.apply(&deployment(namespace, name, 1, pod));
    }
    let before: Vec<_> = all()
        .map(|(namespace, name)| Running::of_deployment(cluster, namespace, name).remove(0).name)
        .collect();
    let images = || {
        let of = |(namespace, name): (&str, &str)| {
            let list = cluster.get(namespace, &["pods", "--selector", &format!("app={name}")]);
            let pods = list["items"].as_array().into_iter().flatten();
            let pods = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
            let image = |pod: &Value| pod["spec"]["initContainers"][0]["image"].as_str().map(str::to_owned);
            pods.filter_map(image).collect::<Vec<_>>()
        };
        all().map(of).collect::<Vec<_>>()
    };
    let working = images()[0][0].clone();
    let upgrade = |image: &str| {
        let args = format!("--namespace {HOME} --reuse-values --set injection.images.java={image}");
        cluster.shell(&format!("helm upgrade otel-webhook charts/otel-webhook {args}"));
    };

    upgrade(LATER);
    let is_done = |service: &(&str, &str), images: &[String]| match service {
        service if crashes(service) => images.iter().any(|image| image == LATER),
        (namespace, _) if *namespace == UPGRADED[1] => true,
        _ => images.len() == 1 && images[0] == LATER,
    };
    until("eight services have the new image, and one fails with it", || {
        all().zip(images()).all(|(service, images)| is_done(&service, &images)).then_some(())
    });
    // When the ReplicaSets of restarts were created.
    let times = UPGRADED.map(|namespace| {
        let found = cluster.get(namespace, &["replicasets"]);
        let sets = found["items"].as_array().into_iter().flatten();
        let restarts = sets.filter(|set| {
            set["spec"]["template"]["metadata"]["annotations"]["otel-webhook/config"].is_string()
        });
        let time = |set: &Value| set["metadata"]["creationTimestamp"].as_str().expect("a time").to_owned();
        restarts.map(time).collect::<Vec<_>>()
    });
    assert_eq!(times.each_ref().map(Vec::len), [4, 1, 4], "{times:?}");
    let canary = times[0].iter().min().expect("four times");
    let later = times.iter().flatten().filter(|time| *time > canary).count();
    assert_eq!(later, 8, "one is restarted before all others: {times:?}");
    for ((namespace, name), pod) in all().zip(&before).filter(|((namespace, _), _)| *namespace == UPGRADED[1])
    {
        // Also that of the one that crashes: its rollout waits for a pod that is ready.
        let pods = Running::labelled(cluster, namespace, &format!("app={name}"));
        let pod = pods.iter().find(|found| found.name == *pod).expect("what ran keeps running");
        pod.until_ready();
    }

    // Back to the image that works: everything has it again.
    upgrade(&working);
    until("every service has the image of before", || {
        images().iter().all(|images| images.len() == 1 && images[0] != LATER).then_some(())
    });
    for (namespace, name) in all() {
        cluster.rolled_out(namespace, name);
    }
}
