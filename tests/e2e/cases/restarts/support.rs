//! What the cases about restarts do in a cluster.

use otel_webhook_testkit::{objects::items, until::until};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, LIMIT},
    controller::deployment,
};

/// The Instrumentation `SHOP/default` is used by pods of all namespaces.
pub const SHOP: &str = "restart-a";

/// The annotation of consent.
const CONSENT: &str = "otel-webhook/restart";

/// Pods with the variable CRASH never become ready.
pub const CRASH: &str = r#"
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-crash
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  weight: 100000
  selector:
    matchExpressions:
      - {key: '.metadata.deletionTimestamp', operator: DoesNotExist}
      - {key: '.status.phase', operator: In, values: [Pending]}
      - {key: '.spec.containers[].env[]? | select(.name == "CRASH") | .name', operator: Exists}
  next:
    statusTemplate: |
      phase: Running
      conditions:
        - {type: Ready, status: "False", lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
        - name: {{ .name | Quote }}
          image: {{ .image | Quote }}
          ready: false
          restartCount: 5
          state: {waiting: {reason: CrashLoopBackOff}}
      {{ end }}
"#;

/// The namespace of the Instrumentation, and others whose pods use it.
pub fn shop(cluster: &Cluster, others: &[&str]) {
    cluster.instrumented_namespace(SHOP);
    for namespace in others {
        cluster.namespace(namespace, &[]);
    }
}

pub fn prepare_three(cluster: &Cluster) {
    shop(cluster, &[]);
    annotate(cluster, &["namespace", SHOP, "otel-webhook/restart=rollout"]);
    for name in ["one", "two", "three"] {
        create(cluster, &deployment(SHOP, name, 2));
    }
}

/// Creates a workload, and waits until its pods are ready.
pub fn create(cluster: &Cluster, object: &Value) {
    cluster.apply(object);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let name = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
    let namespace = text(&object["metadata"]["namespace"]);
    let replicas = object["spec"]["replicas"].clone();
    until(&format!("{name} is ready"), LIMIT, || {
        (cluster.get(&namespace, &[&name])["status"]["readyReplicas"] == replicas).then_some(())
    });
}

pub fn consenting(mut object: Value, consent: &str) -> Value {
    object["metadata"]["annotations"][CONSENT] = consent.into();
    object
}

pub fn using_shop(mut object: Value) -> Value {
    let annotations = &mut object["spec"]["template"]["metadata"]["annotations"];
    annotations["instrumentation.opentelemetry.io/inject-java"] = format!("{SHOP}/default").into();
    object
}

pub fn annotate(cluster: &Cluster, args: &[&str]) {
    let ran = cluster.plane.kubectl(&[&["annotate", "--overwrite"], args].concat());
    assert!(ran.ok, "{}", ran.stderr);
}

pub fn patch(cluster: &Cluster, name: &str, patch: &str) {
    let ran = cluster.plane.kubectl(&["patch", "deployment", name, "--namespace", SHOP, "--patch", patch]);
    assert!(ran.ok, "{}", ran.stderr);
}

pub fn change(cluster: &Cluster, endpoint: &str) {
    cluster.instrumentation(SHOP, "default", &json!({"exporter": {"endpoint": endpoint}}));
}

pub fn crash(cluster: &Cluster, crashes: bool) {
    let env = if crashes { json!([{"name": "CRASH", "value": "yes"}]) } else { json!([]) };
    cluster.instrumentation(SHOP, "default", &json!({"env": env}));
}

/// Waits until restarts are stopped, and returns the sentence.
pub fn expect_stopped(cluster: &Cluster) -> String {
    until("restarts are stopped", LIMIT, || {
        let found = cluster.get(SHOP, &["otelinst", "default"]);
        let mut conditions = items(&found["status"]["conditions"]);
        let stopped = conditions.find(|one| one["type"] == "RestartStopped" && one["status"] == "True")?;
        Some(stopped["message"].as_str().expect("text").to_owned())
    })
}

pub fn condition<'s>(object: &'s Value, kind: &str) -> Option<(&'s str, &'s str)> {
    let one = items(&object["status"]["conditions"]).find(|condition| condition["type"] == kind)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?))
}

pub fn events(cluster: &Cluster, namespace: &str, name: &str, reason: &str) -> Vec<Value> {
    until(&format!("the Event {reason} on {name}"), LIMIT, || {
        let list = cluster.get(namespace, &["events.events.k8s.io"]);
        let own = items(&list["items"])
            .filter(|event| event["regarding"]["name"] == name && event["reason"] == reason);
        let own: Vec<_> = own.cloned().collect();
        (!own.is_empty()).then_some(own)
    })
}

/// How many templates a Deployment has had.
pub fn revision(cluster: &Cluster, namespace: &str, name: &str) -> String {
    revision_of(&cluster.get(namespace, &["deployment", name])).to_owned()
}

/// As `revision`, of a Deployment that was read.
pub fn revision_of(deployment: &Value) -> &str {
    deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap_or_default()
}
