//! Why no data of a pod arrives: each cause, ranked first.

use otel_webhook_api::otlp::Endpoint;
use otel_webhook_fleet::silent::{
    Backend, Facts, Neighbours, Route, Service, Step, Target, causes, endpoints, target,
};
use otel_webhook_inject::reason::{ObjectName, Silent};
use serde_json::{Value, json};

use crate::support::{Cluster, pod};

const SERVICE: &str = "http://collector.telemetry:4318";

/// An injected pod that is Ready, with these variables in addition.
fn ready(endpoint: &str, variables: &[(&str, &str)]) -> Value {
    let mut whole = pod(&["java"]);
    let env = variables.iter().map(|(name, value)| json!({"name": name, "value": value}));
    whole["spec"]["containers"][0]["env"] = env.collect();
    whole["metadata"]["labels"] = json!({"app": "order"});
    let mut whole = Cluster::new(endpoint).injected(whole);
    whole["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    whole
}

/// What is around a pod: everything as it should be.
struct Around {
    pod: Value,
    ports: Option<Vec<u16>>,
    ready: usize,
    backend: Backend,
    policies: Vec<Value>,
    missing: Vec<String>,
    neighbours: Option<Neighbours>,
}

impl Around {
    fn of(pod: Value) -> Self {
        let labels = json!({"app": "collector"});
        let backend = Backend {
            pod: json!({"metadata": {"namespace": "telemetry", "name": "collector-1", "labels": labels}}),
            port: Some(4318),
            namespace_labels: Some(json!({"kubernetes.io/metadata.name": "telemetry"})),
            ..Backend::default()
        };
        let (ports, policies, missing) = (Some(vec![4317, 4318]), Vec::new(), Vec::new());
        Self { pod, ports, ready: 1, backend, policies, missing, neighbours: None }
    }

    fn causes(&self) -> Vec<(Step, Silent)> {
        let known = endpoints(&self.pod, "java").expect("they are known");
        let service = ObjectName { namespace: "telemetry".into(), name: "collector".into() };
        let route = |(container, endpoint): (String, Endpoint)| {
            let is_service = target(&endpoint, "shop") == Target::ServiceIfNamespace(service.clone());
            let service =
                Service { name: service.clone(), ports: self.ports.clone(), ready: Some(self.ready) };
            let is_there = is_service && self.ports.is_some() && self.ready > 0;
            Route {
                container,
                endpoint,
                service: is_service.then_some(service),
                backend: is_there.then(|| self.backend.clone()),
            }
        };
        let routes: Vec<_> = known.into_iter().map(route).collect();
        let facts = Facts {
            pod: &self.pod,
            language: "java",
            routes: &routes,
            namespace_labels: Some(&json!({"kubernetes.io/metadata.name": "shop"})),
            policies: &self.policies,
            missing: &self.missing,
            neighbours: self.neighbours,
        };
        causes(&facts).into_iter().map(|one| (one.step, one.cause)).collect()
    }
}

fn policy(kind: &str) -> Value {
    json!({"metadata": {"name": "closed"}, "spec": {"podSelector": {}, "policyTypes": [kind]}})
}

/// What is changed so that nothing arrives.
type Change = fn(&mut Around);

/// The code, the endpoint, variables of the container, what is changed, the step at which the data stops, and a part of the
/// sentence.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], Change, Step, &'static str);

const ROWS: [Row; 18] = [
    (
        "AgentFails",
        SERVICE,
        &[],
        |around| {
            let state = json!({"waiting": {"reason": "ImagePullBackOff"}});
            let name = "opentelemetry-auto-instrumentation-java";
            around.pod["status"] = json!({"initContainerStatuses": [{"name": name, "state": state}]});
            around.ports = None;
        },
        Step::AgentFiles,
        "ImagePullBackOff",
    ),
    (
        "AgentFails",
        SERVICE,
        &[],
        |around| {
            let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            around.pod["status"] = json!({"containerStatuses": [{"name": "app-java", "state": state}]});
        },
        Step::Started,
        "container \"app-java\" cannot start or stay (CrashLoopBackOff)",
    ),
    ("PodNotReady", SERVICE, &[], |around| around.pod["status"] = Value::Null, Step::Started, "pod \"p\""),
    (
        "SdkDisabled",
        SERVICE,
        &[("OTEL_SDK_DISABLED", "true")],
        |around| around.ports = None,
        Step::Exported,
        "OTEL_SDK_DISABLED of container \"app-java\"",
    ),
    (
        "NotExported",
        SERVICE,
        &[("OTEL_METRICS_EXPORTER", "none"), ("OTEL_TRACES_EXPORTER", "console")],
        |_| {},
        Step::Exported,
        "because of OTEL_METRICS_EXPORTER, OTEL_TRACES_EXPORTER",
    ),
    (
        "NotExported",
        SERVICE,
        &[("OTEL_METRICS_EXPORTER", "none"), ("OTEL_TRACES_SAMPLER", "always_off")],
        |_| {},
        Step::Exported,
        "because of OTEL_METRICS_EXPORTER, OTEL_TRACES_SAMPLER",
    ),
    ("EndpointWithoutScheme", "collector:4318", &[], |_| {}, Step::Resolved, "is \"collector:4318\""),
    ("EndpointInPod", "", &[], |_| {}, Step::Resolved, "sends to localhost:4318"),
    ("EndpointInPod", "http://127.0.0.1:4317", &[], |_| {}, Step::Resolved, "sends to localhost:4317"),
    (
        "ServiceNotFound",
        SERVICE,
        &[],
        |around| around.ports = None,
        Step::Resolved,
        "OTEL_EXPORTER_OTLP_ENDPOINT has the Service \"telemetry/collector\", which does not exist",
    ),
    (
        "PortNotInService",
        "http://collector.telemetry:4319",
        &[],
        |_| {},
        Step::Resolved,
        "has no port 4319; it has: 4317, 4318",
    ),
    (
        "NoReadyEndpoints",
        SERVICE,
        &[],
        |around| around.ready = 0,
        Step::Resolved,
        "Service \"telemetry/collector\" has no ready endpoints for port 4318",
    ),
    (
        "PortContradictsProtocol",
        SERVICE,
        &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
        |_| {},
        Step::Reachable,
        "has port 4318, but OTEL_EXPORTER_OTLP_PROTOCOL is grpc",
    ),
    (
        "PortContradictsProtocol",
        "http://collector.telemetry",
        &[],
        |around| (around.ports, around.backend.port) = (Some(vec![80]), Some(4317)),
        Step::Reachable,
        "Service \"telemetry/collector\" forwards port 80 to 4317, but the agent sends http/protobuf",
    ),
    (
        "CertificateNotFound",
        SERVICE,
        &[],
        |around| around.missing.push("Secret shop/client".to_owned()),
        Step::Reachable,
        "Secret shop/client of spec.exporter.tls does not exist",
    ),
    (
        "CertificateOfOtherName",
        "https://collector.telemetry:4318",
        &[],
        |around| {
            let secret = ObjectName { namespace: "telemetry".into(), name: "serving".into() };
            around.backend.certificates = vec![(secret, vec!["otlp.example.com".to_owned()], false)];
        },
        Step::Reachable,
        "Secret \"telemetry/serving\" of the backend is not valid for collector.telemetry; it is valid for: otlp.example.com",
    ),
    (
        "EgressDenied",
        SERVICE,
        &[],
        |around| around.policies.push(policy("Egress")),
        Step::Reachable,
        "none allows egress to port 4318 of Service \"telemetry/collector\": closed",
    ),
    (
        "IngressDenied",
        SERVICE,
        &[],
        |around| around.backend.policies.push(policy("Ingress")),
        Step::Reachable,
        "none allows ingress from the pod to port 4318: closed",
    ),
];

#[test]
fn each_cause_is_ranked_first_with_what_shows_it() {
    for (code, endpoint, variables, change, step, evidence) in ROWS {
        let mut around = Around::of(ready(endpoint, variables));
        if endpoint == SERVICE && variables.is_empty() {
            assert_eq!(around.causes(), [], "as it should be");
        }
        // It ranks before what other pods say.
        around.neighbours = Some(Neighbours { heard: 3, silent: 1 });
        change(&mut around);
        let found = around.causes();
        let (at, cause) = found.first().expect("a cause");
        assert_eq!((cause.code(), *at), (code, step), "{code}: {found:?}");
        assert!(cause.to_string().contains(evidence), "{code}: {cause}");
        assert_eq!(found.last().map(|(_, cause)| cause.code()), Some("WorkloadSilent"), "{code}: {found:?}");
    }
}

#[test]
fn other_pods_say_whether_the_cause_is_of_the_workload() {
    let mut around = Around::of(ready(SERVICE, &[]));
    for (heard, silent, expected) in
        [(0, 1, None), (0, 3, Some("NamespaceSilent")), (2, 1, Some("WorkloadSilent"))]
    {
        around.neighbours = Some(Neighbours { heard, silent });
        let found = around.causes();
        assert_eq!(found.first().map(|(_, cause)| cause.code()), expected, "{heard}, {silent}");
    }
}

#[test]
fn what_is_not_known_is_no_cause() {
    let collector = json!({"name": "collector", "image": "otelcol"});
    let mut around = Around::of(ready("", &[]));
    around.pod["spec"]["containers"].as_array_mut().expect("containers").push(collector);
    assert_eq!(around.causes(), [], "a Collector may be in the pod");
    for endpoint in ["http://$(NODE):4318", "https://otlp.example.com", "http://192.0.2.1:4318"] {
        assert_eq!(Around::of(ready(endpoint, &[])).causes(), [], "{endpoint}");
    }
    let mut outside = Around::of(ready("https://otlp.example.com", &[]));
    outside.policies.push(policy("Egress"));
    assert_eq!(outside.causes()[0].1.code(), "EgressDenied", "nothing is allowed, wherever it is");
    let by_file = ready(SERVICE, &[("OTEL_CONFIG_FILE", "/etc/otel.yaml")]);
    assert_eq!(endpoints(&by_file, "java"), None);
}

#[test]
fn hosts_are_those_of_services_as_dns_of_a_cluster_has_them() {
    let service = |namespace: &str| ObjectName { namespace: namespace.into(), name: "collector".into() };
    for (host, expected) in [
        ("collector", Target::Service(service("shop"))),
        ("collector.telemetry", Target::ServiceIfNamespace(service("telemetry"))),
        ("collector.telemetry.svc", Target::Service(service("telemetry"))),
        ("collector.telemetry.svc.cluster.local.", Target::Service(service("telemetry"))),
        ("otlp.example.com", Target::Elsewhere),
        ("192.0.2.1", Target::Elsewhere),
        ("2001:db8::1", Target::Elsewhere),
        ("localhost", Target::OwnPod),
        ("::1", Target::OwnPod),
        ("", Target::Unknown),
    ] {
        let host = host.to_owned();
        let endpoint = Endpoint { variable: None, is_tls: false, host, port: Some(4318), protocol: None };
        assert_eq!(target(&endpoint, "shop"), expected, "{}", endpoint.host);
    }
}
