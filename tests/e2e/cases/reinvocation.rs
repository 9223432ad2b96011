//! Another webhook changes the pod after ours, so that ours is called again.

use std::collections::BTreeSet;

use crate::cluster::{Cluster, asking};
use crate::created::{AGENT, Created, VARIABLES, items, name};
use crate::sidecar::{SidecarWebhook, has_sidecar};

pub fn java(cluster: &Cluster) {
    let pod = created_twice(cluster, "sidecar-java", "java", "AlreadyInjected");
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

/// Nothing marks a pod that was given variables alone.
pub fn sdk(cluster: &Cluster) {
    let pod = created_twice(cluster, "sidecar-sdk", "sdk", "NothingToAdd");
    assert!(pod.init_containers().is_empty(), "{}", pod.pod);
    assert_eq!(pod.variable("app", "OTEL_SERVICE_NAME"), "app");
    let attributes = pod.variable("app", "OTEL_RESOURCE_ATTRIBUTES");
    assert_eq!(attributes.matches("k8s.pod.name=").count(), 1, "{attributes}");
}

/// A pod with the sidecar, for which our webhook was called twice: the second
/// time with this outcome.
fn created_twice(cluster: &Cluster, namespace: &str, language: &str, outcome: &str) -> Created {
    cluster.instrumented_namespace(namespace);
    let _sidecars = SidecarWebhook::start(cluster, namespace);
    let counted = |outcome| cluster.webhook.decisions(language, outcome);
    let before = (counted("Injected"), counted(outcome));
    let pod = asking("app", &[(&format!("inject-{language}"), "true")]);

    let pod = cluster.create(namespace, &pod);

    assert_eq!((counted("Injected"), counted(outcome)), (before.0 + 1, before.1 + 1));
    assert!(has_sidecar(&pod.pod), "{}", pod.pod);
    assert!(pod.variables("sidecar").is_empty(), "{}", pod.pod);
    let variables = pod.variables("app");
    let once: BTreeSet<_> = variables.iter().collect();
    assert_eq!(once.len(), variables.len(), "a variable stands twice: {variables:?}");
    assert_eq!(pod.warnings, "");
    assert!(pod.status().contains("Injected"), "{}", pod.status());
    pod
}
