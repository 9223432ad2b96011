//! What `config` prints, and what it migrates.

use super::{INSTRUMENTATION, pod, succeed};

#[test]
fn a_migrated_instrumentation_makes_a_file_with_the_values_of_the_pod() {
    let sampler = format!("{INSTRUMENTATION}  sampler: {{type: jaeger_remote}}\n");
    let migrated = succeed(&["config", "migrate", "-f", "-"], &sampler);
    assert_eq!(
        migrated.err,
        "Instrumentation inst: spec.sampler: jaeger_remote has no stable counterpart; all traces are sampled\n"
    );
    assert!(!migrated.out.contains("exporter:\n    endpoint"), "{}", migrated.out);
    let valid = succeed(&["validate", "--strict", "-f", "-"], &migrated.out);
    assert!(!valid.out.contains("warning"), "{}", valid.out);
    let stream = format!("{}---\n{}", migrated.out, pod("name: p"));
    let printed = succeed(&["config", "-f", "-"], &stream);
    assert!(printed.out.starts_with("---\n# Pod/p, container "), "{}", printed.out);
    for line in [
        "\"endpoint\": \"http://collector:4318/v1/traces\"\n",
        "\"value\": \"p\"\n",
        "\"composite_list\": \"tracecontext,baggage\"\n",
        "k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)",
    ] {
        assert!(printed.out.contains(line), "{line} is not in {}", printed.out);
    }
    assert_eq!(succeed(&["config", "migrate", "-f", "-"], &migrated.out).out, migrated.out);
}

#[test]
fn an_agent_without_a_file_is_reported_and_other_documents_stay() {
    let other = "kind: ConfigMap   # odd\napiVersion: v1\n";
    assert_eq!(succeed(&["config", "migrate", "-f", "-"], other).out, other);
    let file = "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: {name: inst}\n\
                spec: {declarativeConfig: {file_format: '1.0'}}\n";
    let stream = format!("{file}---\n{}", pod("name: p").replace("java", "nodejs"));
    let printed = succeed(&["config", "-f", "-"], &stream);
    assert_eq!(printed.out, "");
    assert!(printed.err.contains("nodejs: DeclarativeConfigUnsupported: "), "{}", printed.err);
}
