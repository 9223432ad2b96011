//! Annotations and labels, read and written.

use std::collections::BTreeSet;

use otel_webhook_api::{
    ANNOTATION_PREFIX, RESOURCE_PREFIX,
    annotations::{OWN_KEYS, OWN_PREFIX},
    defaults::NAMESPACE_IMAGE_PREFIX,
};
use otel_webhook_inject::{
    declarative::ANNOTATION,
    language::{CONTAINERS, LANGUAGES},
};

use super::{beginning, code, table};

/// Name, on which objects, meaning.
type Row = (&'static str, &'static str, &'static str);

/// Values of the annotations of single languages.
const OF_LANGUAGES: &[Row] = &[
    ("otel-python-platform", "pods, namespaces", "`glibc` (default) or `musl`"),
    ("otel-dotnet-auto-runtime", "pods, namespaces", "`linux-x64` (default) or `linux-musl-x64`"),
    ("otel-go-auto-target-exe", "pods, namespaces", "path of the Go program"),
];

/// Annotations and labels of the webhook itself.
const OWN: &[Row] = &[
    (
        "otel-webhook/injected",
        "label, written to pods that opted in",
        "`true`, `partial` or `false`: whether all languages were injected, some, or none",
    ),
    (
        "otel-webhook/status",
        "written to pods that opted in",
        "what was injected and skipped, as JSON: [stamp](stamp.md)",
    ),
    (
        "otel-webhook/message",
        "written to pods that lack something or have a warning",
        "the sentences, for `kubectl describe`; at most 2,048 bytes",
    ),
    (
        "otel-webhook/delivery",
        "read from pods and namespaces",
        "`initContainer`, `imageVolume` or `auto`: [image volumes](../guides/image-volumes.md)",
    ),
    (
        "otel-webhook/paused",
        "read from Instrumentations, namespaces and the Lease of the release",
        "`true` pauses injection: [pause injection](../operations/pause.md)",
    ),
    (
        "otel-webhook/allowed-namespaces",
        "read from Instrumentations",
        "namespaces whose pods may use it with `--cross-namespace=granted`: comma-separated, or `*`",
    ),
    (
        "otel-webhook/restart",
        "read from workloads, namespaces and Instrumentations",
        "`rollout`, `evict` or `never`: [consent to restarts](../operations/restarts.md#consent)",
    ),
    (
        "otel-webhook/resume-restart",
        "read from Instrumentations",
        "another value than before resumes restarts, and begins another attempt",
    ),
    (
        "otel-webhook/conversion",
        "read from and written to Instrumentations",
        "what the version has no field for, by [conversion](../guides/v1beta1.md)",
    ),
    (
        "otel-webhook/config",
        "written to pod templates",
        "for what the workload was restarted: configuration, generation and attempt, such as `java=v1:0123abcd/7-1`",
    ),
    (
        "otel-webhook/restarted",
        "written to workloads",
        "the last change that the workload has received, as JSON",
    ),
    (
        "otel-webhook/replaced-certificates-valid-until",
        "written to the Secret of the managed certificate",
        "until when certificates of the CAs before may be in use",
    ),
];

/// Annotations and labels of Kubernetes and others that are read or written.
const OTHERS: &[Row] = &[
    (
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
        "written to injected pods",
        "the added volumes, so that they do not block scale-down",
    ),
    (
        "kubectl.kubernetes.io/default-container",
        "read from pods",
        "the container to inject if no list names one",
    ),
    (
        "kubernetes.io/enforce-mountable-secrets",
        "read from ServiceAccounts",
        "whether pods may mount only the listed Secrets",
    ),
    (
        "pod-security.kubernetes.io/enforce",
        "label, read from namespaces",
        "the pod security level that added containers have to meet",
    ),
    (
        "app.kubernetes.io/instance",
        "label, read from pods",
        "the service's name, with `spec.defaults.useLabelsForResourceAttributes`",
    ),
    (
        "app.kubernetes.io/name",
        "label, read from pods",
        "the service's name, if the label `app.kubernetes.io/instance` is missing",
    ),
    (
        "app.kubernetes.io/version",
        "label, read from pods",
        "the service's version, with `spec.defaults.useLabelsForResourceAttributes`",
    ),
    ("kubernetes.io/os", "node selector of pods", "`windows`: the pod is not injected"),
    (
        "kubernetes.io/arch",
        "node selector and affinity of pods",
        "`arm64`: a warning if the image has no build for it",
    ),
];

pub fn page() -> String {
    let purpose = "Every annotation and label that is read or written. [Opt pods in](../guides/opt-in.md) explains how \
                   they work together.";
    let mut text = beginning("Annotations and labels", purpose);
    text += &format!(
        "\n## Opt in\n\nAnnotations of pods (in the pod template) and of namespaces, with the prefix \
         `{ANNOTATION_PREFIX}`. Values of `inject-…`: `\"true\"`, the name of an Instrumentation, \
         `namespace/name`, or `\"false\"`. They [work as labels](../guides/opt-in.md#by-labels), too.\n\n"
    );
    let languages = LANGUAGES.iter().map(|row| {
        let containers = code(format!("{ANNOTATION_PREFIX}{}", row.containers));
        let default = if row.enabled_by_default { "yes" } else { "no" };
        [
            row.name.to_owned(),
            code(format!("{ANNOTATION_PREFIX}{}", row.inject)),
            containers,
            default.to_owned(),
        ]
    });
    text += &table(["language", "opts in", "containers of the language", "enabled by default"], languages);
    text += "\n## Details\n\n";
    let all = [[
        code(format!("{ANNOTATION_PREFIX}{CONTAINERS}")),
        "pods, namespaces".to_owned(),
        "comma-separated containers, for every language".to_owned(),
    ]];
    let single = OF_LANGUAGES
        .iter()
        .map(|row| [code(format!("{ANNOTATION_PREFIX}{}", row.0)), row.1.to_owned(), row.2.to_owned()]);
    let prefixed = [
        [
            code(format!("{RESOURCE_PREFIX}<attribute>")),
            "pods".to_owned(),
            "the value of a [resource attribute](injection.md#resource-attributes)".to_owned(),
        ],
        [
            code(format!("{ANNOTATION_PREFIX}default-auto-instrumentation-<language>-image")),
            "written to and read from Instrumentations".to_owned(),
            "the default image with which it was stored; a newer default replaces that one".to_owned(),
        ],
        [
            code(format!("{NAMESPACE_IMAGE_PREFIX}<language>")),
            "namespaces".to_owned(),
            "the default image of the language in their pods: [one namespace \
             first](../guides/agent-upgrades.md#3-one-namespace-first)"
                .to_owned(),
        ],
        [
            code(format!("{ANNOTATION}<language>")),
            "written to injected pods".to_owned(),
            "the file of [`spec.declarativeConfig`](../guides/declarative-config.md), which the agent reads at its start"
                .to_owned(),
        ],
    ];
    text += &table(["annotation", "on", "value"], all.into_iter().chain(single).chain(prefixed));
    for (heading, list) in [("Of the webhook", OWN), ("Of others", OTHERS)] {
        text += &format!("\n## {heading}\n\n");
        let rows = list.iter().map(|row| [code(row.0), row.1.to_owned(), row.2.to_owned()]);
        text += &table(["annotation or label", "where", "meaning"], rows);
    }
    text
}

#[test]
fn every_annotation_of_a_language_is_in_the_reference() {
    let of_languages: BTreeSet<_> =
        LANGUAGES.iter().flat_map(|row| row.annotations.iter().copied()).collect();
    assert_eq!(OF_LANGUAGES.iter().map(|row| row.0).collect::<BTreeSet<_>>(), of_languages);
}

/// One that is missing in the list would be reported as a mistake.
#[test]
fn every_annotation_of_the_webhook_is_known() {
    let names: BTreeSet<_> = OWN.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let known: BTreeSet<_> = OWN_KEYS.iter().map(|key| format!("{OWN_PREFIX}{key}")).collect();
    assert_eq!(names, known);
}
