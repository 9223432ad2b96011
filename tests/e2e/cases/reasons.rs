//! Pods that opt in and are not injected: created as they are, with the reason in each place where users look.

use crate::audit;
use crate::cluster::{Cluster, asking};

/// What is asked for, the sentence that comes back, and its code in the audit log.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

const ROWS: [Row; 2] = [
    (
        "misspelt",
        &[("inject-java", "defualt")],
        "Instrumentation \"not-helped/defualt\" not found; its namespace has: default",
        "java=InstrumentationNotFound",
    ),
    (
        "without-lists",
        &[("inject-java", "true"), ("inject-sdk", "true")],
        "the pod opts in to several languages (java, sdk)",
        "ContainerListMissing",
    ),
];

pub fn not_helped(cluster: &Cluster) {
    let namespace = "not-helped";
    cluster.instrumented_namespace(namespace);
    for (name, annotations, sentence, code) in ROWS {
        let pod = cluster.create(namespace, &asking(name, annotations));
        assert!(pod.is_untouched(), "{name}: {}", pod.pod);
        assert!(pod.warnings.contains(sentence), "{name}: {}", pod.warnings);
        described(cluster, namespace, name, sentence);
        let decision = audit::decision(cluster, namespace, name);
        assert!(decision.contains(code), "{name}: {decision}");
    }
}

/// `kubectl describe pod` shows the sentence, whole.
fn described(cluster: &Cluster, namespace: &str, name: &str, sentence: &str) {
    let ran = cluster.plane.kubectl(&["describe", "pod", name, "--namespace", namespace]);
    let words: Vec<_> = ran.stdout.split_whitespace().collect();
    let is_shown = words.join(" ").contains(sentence);
    let of_message = ran.stdout.split_once("otel-webhook/message:");
    let of_message = of_message.and_then(|(_, rest)| rest.split_once("otel-webhook/status:"));
    let (message, _) = of_message.unwrap_or_else(|| panic!("{name}: {}", ran.stdout));
    assert!(is_shown && !message.contains("..."), "{name}: {}", ran.stdout);
}
