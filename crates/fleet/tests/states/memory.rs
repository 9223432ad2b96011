//! How much is kept of each pod.

use otel_webhook_fleet::{census::Census, pod::RunningPod, state::State};
use serde_json::{Value, json};

use crate::support::{Cluster, ENDPOINT, pod, report_of};

const PODS: usize = 25_000;

/// More than there is room for.
const DIFFERENT: usize = 8_000;

/// A pod that was created by itself, as an API server has it. No other pod has its name, label, node, arguments or
/// values of variables.
fn bare(number: usize, whole: &Value) -> Value {
    let mut pod = whole.clone();
    let name = format!("import-{number:05}");
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(name);
    metadata["uid"] = json!(format!("00000000-0000-0000-0000-{number:012}"));
    metadata["resourceVersion"] = json!(number.to_string());
    metadata["labels"]["run"] = json!(name);
    metadata["annotations"]["example.com/last-applied"] = json!(format!("{name} ").repeat(200));
    let token = format!("kube-api-access-{number:05}");
    let spec = &mut pod["spec"];
    spec["nodeName"] = json!(format!("node-{number}"));
    spec["volumes"] =
        json!([{"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]);
    let app = &mut spec["containers"][0];
    app["args"] = json!(["--import", name]);
    app["env"] = json!([{"name": "IMPORT", "value": name}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    app["volumeMounts"] =
        json!([{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]);
    app["resources"] =
        json!({"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}});
    pod
}

/// Puts pods into a census. Returns how many bytes all of them need.
fn kept(count: usize, pod: impl Fn(usize) -> Value) -> (Census, usize) {
    let mut census = Census::default();
    let kept = allocation_counter::measure(|| {
        for number in 0..count {
            assert!(census.put(RunningPod::read(&pod(number)).expect("a running pod")));
        }
        census.take_changed();
    });
    (census, usize::try_from(kept.bytes_current).expect("more than before"))
}

#[test]
fn pods_without_a_common_template_need_500_bytes_each_and_have_their_states() {
    let cluster = Cluster::new(ENDPOINT);
    let injected = cluster.injected(pod(&["java"]));
    for (whole, state, count) in
        [(pod(&["java"]), State::Missed, PODS), (injected, State::Injected, PODS / 10)]
    {
        let (mut census, bytes) = kept(count, |number| bare(number, &whole));
        assert!(bytes <= 500 * count, "{} bytes for a pod that is {state:?}", bytes / count);
        let report = report_of(&cluster, &census);
        assert_eq!(report.instrumentations[0].pods.of(state), count);
        assert!((0..count).all(|number| census.forget(&format!("00000000-0000-0000-0000-{number:012}"))));
        assert!(census.is_empty());
    }
}

#[test]
fn pods_that_differ_in_everything_need_500_bytes_each() {
    let cluster = Cluster::new(ENDPOINT);
    let whole = cluster.injected(pod(&["java"]));
    let different = |number: usize| {
        let mut pod = bare(number, &whole);
        let long = format!("{number:05}-").repeat(10);
        (0..10).for_each(|label| pod["metadata"]["labels"][format!("{label}/{long}")] = json!(long));
        pod["metadata"]["annotations"]["resource.opentelemetry.io/own"] = json!(long.repeat(10));
        let env = json!({"name": long});
        pod["spec"]["containers"][0]["env"] = vec![env; 10].into();
        pod
    };
    // What there is room for in any cluster is shared by all.
    let (census, bytes) = kept(DIFFERENT, different);
    assert!(bytes <= (4 << 20) + 500 * DIFFERENT, "{bytes} bytes");
    let pods = report_of(&cluster, &census).instrumentations[0].pods;
    assert_eq!((pods.matched, pods.injected + pods.unconfirmed), (DIFFERENT, DIFFERENT), "{pods:?}");
    assert!(pods.injected > 0 && pods.unconfirmed > 0, "{pods:?}");
}
