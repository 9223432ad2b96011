//! Mistakes.

/// Code, meaning, remedy.
type Row = (&'static str, &'static str, &'static str);

/// Annotations and labels that nothing reads.
pub const MISTAKES: &[Row] = &[
    (
        "unknown-annotation",
        "the annotation begins with `instrumentation.opentelemetry.io/`, but does not exist, such as `inject-jva`",
        "correct its name",
    ),
    (
        "wrong-prefix",
        "the prefix is another one, such as `opentelemetry.com/inject-java`",
        "correct the prefix",
    ),
    (
        "label-instead-of-annotation",
        "it is a label, and not one that [opts in](../opt-in.md#by-labels)",
        "make it an annotation",
    ),
    (
        "annotation-on-workload",
        "the annotation or label is on the workload or the job template, and not in the pod template",
        "move it to the pod template",
    ),
    ("annotation-not-a-string", "the value in the manifest is not quoted", "quote it"),
    ("annotation-for-instrumentations", "only Instrumentations have the annotation", "remove it"),
    ("annotation-for-namespaces", "only namespaces have the annotation", "set it on the namespace"),
    (
        "paused-unclear",
        "the annotation `otel-webhook/paused` of a namespace or an Instrumentation is neither `true` nor `false`, so it \
         pauses nothing",
        "set it to `true`, or remove it",
    ),
    (
        "default-image-invalid",
        "the annotation `otel-webhook/default-image-…` of a namespace names no language, or its value is not an image \
         reference",
        "correct the annotation",
    ),
];
