//! What `convert` writes, and v1beta1 in the other subcommands.

use super::{INSTRUMENTATION, inject, pod, run, succeed};

const BETA: &str = "apiVersion: opentelemetry.io/v1beta1
kind: Instrumentation
metadata:
  name: inst
spec:
  envConfig:
    exporter:
      endpoint: http://collector:4318
";

#[test]
fn instrumentations_are_converted_and_other_documents_stay() {
    let others = "# head\nkind: ConfigMap   # odd\napiVersion: v1\n---\n";
    let to = |version: &str, stream: &str| succeed(&["convert", "-f", "-", "--to", version], stream).out;
    let beta = to("v1beta1", &[others, INSTRUMENTATION].concat());
    assert_eq!(beta, [others, BETA].concat());
    assert_eq!(to("v1alpha1", &beta), [others, INSTRUMENTATION].concat());
    assert_eq!(to("v1beta1", &beta), beta);
    let list =
        "apiVersion: opentelemetry.io/v1alpha1\nkind: InstrumentationList\nitems: [{metadata: {name: a}}]\n";
    let beta = to("v1beta1", list);
    assert_eq!(beta.matches("opentelemetry.io/v1beta1").count(), 2, "{beta}");
}

#[test]
fn what_cannot_be_converted_is_an_error() {
    let odd = "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: [x]\n";
    let bad = run(&["convert", "-f", "-", "--to", "v1beta1"], odd);
    assert_eq!((bad.code, &*bad.out), (2, ""));
    assert!(bad.err.contains("metadata has the wrong type; valid: an object"), "{}", bad.err);
    let unknown = run(&["convert", "-f", "-", "--to", "v1"], odd);
    assert!(unknown.err.contains("valid: v1alpha1, v1beta1"), "{}", unknown.err);
}

#[test]
fn v1beta1_is_injected_validated_and_explained() {
    let beta = BETA.replace("http://collector:4318\n", "http://collector:4318\n      protocol: http/json\n");
    let injected = inject(&[], &[&beta, &pod("name: p")]).out;
    assert!(injected.contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{injected}");
    assert_eq!(succeed(&["default", "-f", "-"], &beta).out, beta);
    let explained = succeed(&["explain", "-f", "-"], &[&*beta, "---\n", &pod("name: p")].concat()).out;
    assert!(explained.contains("inst"), "{explained}");
    let bad = run(&["validate", "-f", "-"], &beta.replace("http/json", "tcp"));
    assert_eq!(bad.code, 1, "{}", bad.out);
    assert!(bad.out.contains("error    spec.envConfig.exporter.protocol: \"tcp\" is not"), "{}", bad.out);
    let unknown = run(&["validate", "-f", "-"], &beta.replace("v1beta1", "v1"));
    assert_eq!(unknown.code, 2, "{}", unknown.out);
    assert!(
        unknown.err.contains("known are opentelemetry.io/v1alpha1 and opentelemetry.io/v1beta1"),
        "{}",
        unknown.err
    );
}
