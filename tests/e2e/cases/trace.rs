//! Where the data of a workload stops: `trace` on objects of a real API server, with statuses as a kubelet and the
//! controller write them.

use std::fs;

use base64::{Engine, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{cluster::manifests::object, until::until};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    controller::deployment,
    program::{Checked, output, program, run},
};

/// The namespace of the backend.
const BACKEND: &str = "trace-telemetry";
const ENDPOINT: &str = "http://collector.trace-telemetry:4318";

/// A Collector with a Service, a ready endpoint, and a certificate for other names; and a Service without endpoints.
fn backend(cluster: &Cluster) {
    cluster.namespace(BACKEND, &[]);
    let dir = cluster.plane.dir().join("trace-certificate");
    let folder = dir.to_str().expect("UTF-8");
    let (_, err, code) =
        output(program().args(["certs", "--out", folder, "--service", "other", "--namespace", "elsewhere"]));
    assert_eq!(code, Some(0), "{err}");
    let file = |name: &str| BASE64_STANDARD.encode(fs::read(dir.join(name)).expect("a file"));
    let data = json!({"tls.crt": file("tls.crt"), "tls.key": file("tls.key")});
    let mut secret = object("v1", "Secret", BACKEND, "serving", &json!({}));
    secret.as_object_mut().expect("an object").remove("spec");
    secret["data"] = data;
    cluster.apply(&secret);
    let mut pod = object(
        "v1",
        "Pod",
        BACKEND,
        "collector-1",
        &json!({
            "containers": [{"name": "collector", "image": "otelcol"}],
            "volumes": [{"name": "certificate", "secret": {"secretName": "serving"}}],
        }),
    );
    pod["metadata"]["labels"] = json!({"app": "collector"});
    until("a pod can be created", || {
        cluster.plane.kubectl_in(&["apply", "-f", "-"], &pod.to_string()).ok.then_some(())
    });
    let ports = json!([{"name": "grpc", "port": 4317}, {"name": "http", "port": 4318}]);
    cluster.apply(&object("v1", "Service", BACKEND, "collector", &json!({"ports": ports})));
    cluster.apply(&object("v1", "Service", BACKEND, "idle", &json!({"ports": ports})));
    let target = json!({"kind": "Pod", "name": "collector-1", "namespace": BACKEND});
    let endpoint = json!({"addresses": ["10.1.2.3"], "conditions": {"ready": true}, "targetRef": target});
    cluster.apply(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "collector-1", "namespace": BACKEND, "labels": {"kubernetes.io/service-name": "collector"}},
        "ports": ports, "endpoints": [endpoint],
    }));
}

fn policy(namespace: &str, kind: &str) -> Value {
    object(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        namespace,
        "closed",
        &json!({"podSelector": {}, "policyTypes": [kind]}),
    )
}

/// Writes a status as it would be.
fn status(cluster: &Cluster, namespace: &str, kind: &str, name: &str, status: &Value) {
    let patch = json!({"status": status}).to_string();
    let args =
        ["patch", kind, name, "--namespace", namespace, "--subresource=status", "--type=merge", "--patch"];
    cluster.run(&[&args[..], &[&patch]].concat());
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

/// The status of an Instrumentation with a silent pod of `order`.
fn silent(namespace: &str) -> Value {
    let row = json!({"kind": "Deployment", "namespace": namespace, "name": "order", "silent": 1, "reason": "Silent"});
    json!({"pods": {"injected": 2, "heard": 1, "silent": 1}, "workloads": [row]})
}

fn trace(cluster: &Cluster, namespace: &str) -> Checked {
    run(&cluster.plane, "trace", &["deployment/order", "-n", namespace])
}

/// The step that failed: its name and the code; and whether all before it have passed.
fn failed(found: &Value) -> Option<(String, String)> {
    let last = found["steps"].as_array().expect("steps").last().expect("a step").clone();
    let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
    (last["result"] == "failed").then(|| (text("step"), text("code")))
}

/// A namespace with a Deployment of one pod, which is injected and Ready; and that pod.
fn shop(cluster: &Cluster, namespace: &str, spec: &Value) -> String {
    cluster.namespace(namespace, &[]);
    cluster.instrumentation(namespace, "default", spec);
    let probe = crate::cluster::java("probe");
    until("the Instrumentation is known", || cluster.dry_run(namespace, &probe).is_injected().then_some(()));
    cluster.apply(&deployment(namespace, "order", 1));
    let pod = cluster.pods_of(namespace, "app=order", 1)[0].name().to_owned();
    status(cluster, namespace, "pod", &pod, &ready());
    pod
}

/// What is changed in a namespace so that nothing arrives; the last argument is the pod.
type Change = fn(&Cluster, &str, &str);

/// Each cause of missing data is ranked first, at its step; and a workload of which data arrives passes all.
pub fn each_cause(cluster: &Cluster) {
    backend(cluster);
    let to = |endpoint: &str| json!({"exporter": {"endpoint": endpoint}});
    let off = json!([{"name": "OTEL_METRICS_EXPORTER", "value": "none"}, {"name": "OTEL_TRACES_EXPORTER", "value": "none"}]);
    let none: Change = |_, _, _| {};
    let rows: [(&str, Value, Change, &str); 10] = [
        ("ServiceNotFound", to("http://colector.trace-telemetry:4318"), none, "resolved"),
        ("PortNotInService", to("http://collector.trace-telemetry:4319"), none, "resolved"),
        ("NoReadyEndpoints", to("http://idle.trace-telemetry:4318"), none, "resolved"),
        ("EndpointInPod", json!({}), none, "resolved"),
        ("PortContradictsProtocol", to("http://collector.trace-telemetry:4317"), none, "reachable"),
        ("CertificateOfOtherName", to("https://collector.trace-telemetry:4318"), none, "reachable"),
        ("NotExported", json!({"exporter": {"endpoint": ENDPOINT}, "env": off}), none, "exported"),
        (
            "AgentFails",
            to(ENDPOINT),
            |cluster, namespace, pod| {
                let state =
                    json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}});
                let name = "opentelemetry-auto-instrumentation-java";
                let one = json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
                let failing = json!({"phase": "Pending", "conditions": null, "initContainerStatuses": [one]});
                status(cluster, namespace, "pod", pod, &failing);
            },
            "agentFiles",
        ),
        (
            "EgressDenied",
            to(ENDPOINT),
            |cluster, namespace, _| cluster.apply(&policy(namespace, "Egress")),
            "reachable",
        ),
        (
            "WorkloadSilent",
            to(ENDPOINT),
            |cluster, namespace, _| status(cluster, namespace, "otelinst", "default", &silent(namespace)),
            "heard",
        ),
    ];
    for (number, (code, spec, change, step)) in rows.into_iter().enumerate() {
        let namespace = format!("trace-{number}");
        let pod = shop(cluster, &namespace, &spec);
        change(cluster, &namespace, &pod);
        let run = trace(cluster, &namespace);
        let found = &run.found[0];
        assert_eq!(found["causes"][0]["code"], code, "{run:?}");
        assert_eq!(failed(found), Some((step.to_owned(), code.to_owned())), "{run:?}");
        assert_eq!((run.code, &found["pod"]), (Some(1), &json!(pod)), "{run:?}");
    }
    let namespace = "trace-9";
    let explained = run(&cluster.plane, "explain", &["deployment/order", "-n", namespace]);
    assert_eq!(explained.found[0]["silent"][0]["causes"][0]["code"], "WorkloadSilent", "{explained:?}");

    // Now nothing is wrong any more, and the controller says so.
    let pods = json!({"injected": 2, "heard": 2, "silent": 0});
    status(cluster, namespace, "otelinst", "default", &json!({"pods": pods, "workloads": []}));
    let run = trace(cluster, namespace);
    let results = run.found[0]["steps"].as_array().expect("steps").iter().map(|step| step["result"].clone());
    assert!(results.eq(std::iter::repeat_n(json!("passed"), 10)), "{run:?}");
    assert_eq!(run.code, Some(0), "{run:?}");

    cluster.apply(&policy(BACKEND, "Ingress"));
    status(cluster, namespace, "otelinst", "default", &silent(namespace));
    let run = trace(cluster, namespace);
    assert_eq!(failed(&run.found[0]), Some(("reachable".to_owned(), "IngressDenied".to_owned())), "{run:?}");
}

/// What comes before the pod: opt-in, Instrumentation, and running pods.
pub fn before_the_pod(cluster: &Cluster) {
    let namespace = "trace-before";
    cluster.namespace(namespace, &[]);
    let mut plain = deployment(namespace, "order", 1);
    plain["spec"]["template"]["metadata"]["annotations"] = json!({});
    cluster.apply(&plain);
    let step = || failed(&trace(cluster, namespace).found[0]).expect("it fails");
    assert_eq!(step(), ("optedIn".to_owned(), "NotOptedIn".to_owned()));
    let _stopped = cluster.webhook.stop();
    let asking = deployment(namespace, "order", 1);
    cluster.apply(&asking);
    assert_eq!(step(), ("selected".to_owned(), "NoInstrumentation".to_owned()));
    cluster.instrumentation(namespace, "default", &json!({}));
    until("its new pod is not injected", || {
        (step() == ("injected".to_owned(), "NotInjected".to_owned())).then_some(())
    });
}
