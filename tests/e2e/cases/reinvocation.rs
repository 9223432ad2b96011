//! Another webhook changes the pod after ours, so that ours is called again.

use std::collections::BTreeSet;

use crate::cluster::{Cluster, asking};
use crate::sidecar::{SidecarWebhook, has_sidecar};
use otel_webhook_testkit::{
    cluster::created::{AGENT, Created, VARIABLES, name},
    objects::items,
};

pub fn java(cluster: &Cluster) {
    let pod = created_twice(cluster, "sidecar-java", "java");
    assert!(pod.is_injected(), "{}", pod.pod);
    assert_eq!(pod.init_containers(), [AGENT]);
    let mounts: Vec<_> = items(&pod.container("app")["volumeMounts"]).map(name).collect();
    assert_eq!(mounts.iter().filter(|mount| **mount == AGENT).count(), 1, "{mounts:?}");
    for variable in VARIABLES {
        assert!(pod.variables("app").contains(&variable), "{variable} is missing");
    }
    let agents = pod.variable("app", "JAVA_TOOL_OPTIONS").matches("-javaagent:").count();
    assert_eq!(agents, 1, "{}", pod.variable("app", "JAVA_TOOL_OPTIONS"));
}

/// The variables mark a pod that was given nothing else.
pub fn sdk(cluster: &Cluster) {
    let pod = created_twice(cluster, "sidecar-sdk", "sdk");
    assert!(pod.init_containers().is_empty(), "{}", pod.pod);
    assert_eq!(pod.variable("app", "OTEL_SERVICE_NAME"), "app");
    let attributes = pod.variable("app", "OTEL_RESOURCE_ATTRIBUTES");
    assert_eq!(attributes.matches("k8s.pod.name=").count(), 1, "{attributes}");
}

/// What a pod asks for in vain counts once, beside an injection and without one.
pub fn in_vain(cluster: &Cluster) {
    let namespace = "sidecar-in-vain";
    cluster.instrumented_namespace(namespace);
    let _sidecars = SidecarWebhook::start(cluster, namespace);
    let codes = [
        ("java", "Injected"),
        ("java", "AlreadyInjected"),
        ("java", "InstrumentationNotFound"),
        ("go", "LanguageDisabled"),
    ];
    let counted = || codes.map(|(language, outcome)| cluster.webhook.decisions(language, outcome));
    for (name, annotations, label, expected) in [
        ("partly", [("inject-java", "true"), ("inject-go", "true")], "partial", [1, 1, 0, 1]),
        ("vain", [("inject-java", "missing"), ("inject-go", "true")], "false", [0, 0, 1, 1]),
    ] {
        let before = counted();
        let reviews = cluster.webhook.pod_reviews();

        let pod = cluster.create(namespace, &asking(name, &annotations));

        assert!(has_sidecar(&pod.pod), "{}", pod.pod);
        assert_eq!(pod.pod["metadata"]["labels"]["otel-webhook/injected"], label, "{name}");
        assert_eq!(cluster.webhook.pod_reviews(), reviews + 2, "{name} was reviewed twice");
        let after = counted();
        let added: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        assert_eq!(added, expected, "{name}: {codes:?}");
    }
}

/// A pod with the sidecar, for which our webhook was called twice, and the second time found it injected.
fn created_twice(cluster: &Cluster, namespace: &str, language: &str) -> Created {
    cluster.instrumented_namespace(namespace);
    let _sidecars = SidecarWebhook::start(cluster, namespace);
    let counted = |outcome| cluster.webhook.decisions(language, outcome);
    let before = (counted("Injected"), counted("AlreadyInjected"));
    let pod = asking("app", &[(&format!("inject-{language}"), "true")]);

    let pod = cluster.create(namespace, &pod);

    assert_eq!((counted("Injected"), counted("AlreadyInjected")), (before.0 + 1, before.1 + 1));
    assert!(has_sidecar(&pod.pod), "{}", pod.pod);
    assert!(pod.variables("sidecar").is_empty(), "{}", pod.pod);
    let variables = pod.variables("app");
    let once: BTreeSet<_> = variables.iter().collect();
    assert_eq!(once.len(), variables.len(), "a variable stands twice: {variables:?}");
    assert_eq!(pod.warnings, "");
    assert!(pod.status().contains("Injected"), "{}", pod.status());
    pod
}
