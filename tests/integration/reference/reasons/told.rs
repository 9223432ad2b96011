//! Warnings, notes and mistakes.

/// Code, meaning, remedy.
type Row = (&'static str, &'static str, &'static str);

/// Those that fail `validate --strict`.
pub const WARNINGS: &[Row] = &[
    (
        "OtherAgent",
        "the container's variables load another agent: `-javaagent`, a known profiler or APM in `JAVA_TOOL_OPTIONS`, \
         `JDK_JAVA_OPTIONS`, `_JAVA_OPTIONS`, `NODE_OPTIONS`, `PYTHONPATH`, or another `CORECLR_PROFILER`",
        "remove the other agent, or opt out",
    ),
    (
        "ImageLacksArm64",
        "the node selector or the required node affinity demands arm64, and the default image has no build for it: \
         .NET before 1.16",
        "use an image with a build for arm64, or opt out",
    ),
    (
        "CopyMayFailAgain",
        "the init container may fail when it runs again, as after a restart of the node: the agent's image is not \
         named as the operator's, such as `autoinstrumentation-nodejs`, so that its `cp` is not given `-f`; or Apache \
         HTTPD's configuration is a mounted ConfigMap, which is made of links",
        "if `cp` of the image knows `-f`, name its repository as the operator does, or use \
         [image volumes](../image-volumes.md); for Apache HTTPD, mount single files by `subPath`",
    ),
    (
        "EndpointWithoutScheme",
        "an OTLP endpoint such as `collector:4317`; agents expect a URL",
        "set a URL, such as `http://collector:4317`",
    ),
    (
        "PortContradictsProtocol",
        "port 4317 with `http/protobuf`, or 4318 with `grpc`. If no protocol is set, the agent's default applies: \
         `http/protobuf` for Java 2, Node.js, Python, .NET and Go, `grpc` for Java 1, Apache HTTPD and nginx",
        "change the port, or set `OTEL_EXPORTER_OTLP_PROTOCOL`",
    ),
    (
        "LittleStorageLeft",
        "the agents leave less than 50Mi of the pod's limit of ephemeral storage",
        "raise the limit; see [sizes of agents](../sizes.md)",
    ),
    ("VolumeLimitTooSmall", "`volumeLimitSize` is smaller than the agent", "raise it"),
    (
        "AttributeSkipped",
        "the key of a resource attribute is empty, or has `,`, `=` or a control character",
        "correct the key",
    ),
    (
        "AttributesDiscarded",
        "Node.js would discard all resource attributes, because one cannot be decoded, has an `=` that is not \
         encoded, or is longer than 255 characters",
        "correct the attribute",
    ),
    (
        "AttributeNotDecoded",
        "the image for .NET is older than 1.14 and does not decode resource attributes, and a value has an escape",
        "use a newer image, or another value",
    ),
    (
        "AttributeSplit",
        "Apache HTTPD and nginx: the value of a resource attribute has a comma",
        "use another value",
    ),
    (
        "OnlyHelpers",
        "no container is named, and the pod has only known proxies and helpers",
        "name the container",
    ),
    (
        "DeliveryUnknown",
        "the annotation `otel-webhook/delivery` of the pod or its namespace is not `initContainer`, `imageVolume` or \
         `auto`; it is ignored",
        "correct the value",
    ),
    (
        "DefaultImageInvalid",
        "the annotation `otel-webhook/default-image-…` of the namespace is not an image reference; it is ignored",
        "correct the value",
    ),
];

/// Those that need no action.
pub const NOTES: &[Row] = &[
    (
        "MayBeSetByEnvFrom",
        "an extended variable may also be set by `envFrom`; the injected value overrides it",
        "set the variable in `env` to keep its value",
    ),
    (
        "CertificateNotChecked",
        "the Secret or ConfigMap of `spec.exporter.tls` is mounted as optional, and was not checked",
        "see that it exists in the namespace of the pod; [check](../runbook.md#exporterfilesmissing) does",
    ),
    (
        "OptedInBySelector",
        "neither pod nor namespace opts in, but the selector of an Instrumentation does",
        "nothing",
    ),
    (
        "OwnerNotLearned",
        "the lookup of an owner timed out after 300 ms; the attributes follow from its name",
        "nothing; if it is frequent, see how the API server responds",
    ),
    (
        "OwnersNotLookedUp",
        "the pod has more than three owners that would have to be looked up; the controller and the first \
         others were, and the attributes of the owners of the rest are missing",
        "nothing",
    ),
    (
        "ResourcesLowered",
        "the init containers have other resources than in the Instrumentation, so that the pod's requests and limits \
         stay the same and its namespace accepts it",
        "nothing; `--init-resources=exact` keeps them",
    ),
    (
        "MemoryTooLittle",
        "the pod's resources leave little memory for its init containers, which may be killed (`OOMKilled`)",
        "raise the memory limit of the container",
    ),
    (
        "ImageReplaced",
        "the Instrumentation's image is a recorded default of an earlier version, and the present default is used",
        "nothing",
    ),
    (
        "ImageKept",
        "the Instrumentation's image is a recorded default, and is used although the present default is another one",
        "set `--default-image` or `--image-registry` to replace it, or remove the image from the Instrumentation",
    ),
    (
        "ImageOfNamespace",
        "the namespace has a default image for the language, which is used instead of the Instrumentation's or the \
         installation's default",
        "nothing; remove the annotation `otel-webhook/default-image-…` of the namespace to end it",
    ),
    (
        "HelpersSkipped",
        "no container is named, and known proxies and helpers before the selected one were skipped",
        "name the container if another one was meant",
    ),
    (
        "UserSet",
        "the pod must not run as root and sets no user, so the init containers have one: that of the target, or the \
         first of the namespace's range on OpenShift, or 65532",
        "nothing",
    ),
    (
        "SidecarFitted",
        "the sidecar has other resources than the Instrumentation says, so that the API server accepts the pod",
        "nothing",
    ),
    (
        "ImageVolume",
        "the image of the agent is mounted, and no init container is added ([image volumes](../image-volumes.md))",
        "nothing",
    ),
    (
        "InitContainerKept",
        "init containers copy the agent although image volumes were chosen, with the reason, such as a node that \
         cannot mount images",
        "nothing, or what the sentence names",
    ),
];

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
        "default-image-invalid",
        "the annotation `otel-webhook/default-image-…` of a namespace names no language, or its value is not an image \
         reference",
        "correct the annotation",
    ),
];
