//! The configuration file in pods that an API server has stored.

use otel_webhook_testkit::{cluster::manifests::asking, until::until};
use serde_json::json;

use crate::cluster::Cluster;

/// The file is accepted as an annotation and as a volume; an agent that cannot use it, and a pod without room for it, run
/// without injection.
pub fn delivered(cluster: &Cluster) {
    let namespace = "declarative";
    let key = "otel-webhook/declarative-config-java";
    cluster.namespace(namespace, &[]);
    let processors = json!([{"batch": {"exporter": {"otlp_http": {"endpoint": "http://c:4318/v1/traces"}}}}]);
    let file = json!({"file_format": "1.1", "tracer_provider": {"processors": processors}});
    cluster.instrumentation(namespace, "default", &json!({"declarativeConfig": file}));
    let pod = |language: &str| asking("order", &[(&*format!("inject-{language}"), "true")]);
    until("the Instrumentation is known", || {
        cluster.dry_run(namespace, &pod("java")).is_injected().then_some(())
    });

    let mut full = pod("java");
    full["metadata"]["annotations"]["other"] = "a".repeat(256 * 1024 - 200).into();
    let message = cluster.dry_run(namespace, &full);
    assert!(!message.is_injected() && message.pod["metadata"]["annotations"][key].is_null());

    let nodejs = cluster.dry_run(namespace, &pod("nodejs"));
    assert!(!nodejs.is_injected());
    assert!(nodejs.message().contains("it ignores the file without a message"), "{}", nodejs.message());

    let created = cluster.create(namespace, &pod("java"));
    let text = created.pod["metadata"]["annotations"][key].as_str().expect("the file");
    assert!(text.starts_with("\"file_format\": \"1.1\"\n"), "{text}");
    let volumes = created.pod["spec"]["volumes"].as_array().expect("volumes");
    let volume = volumes.iter().find(|volume| volume["name"] == "otel-declarative-config-java");
    let item = &volume.expect("its volume")["downwardAPI"]["items"][0];
    assert_eq!(item["fieldRef"]["fieldPath"], format!("metadata.annotations['{key}']"));
}
