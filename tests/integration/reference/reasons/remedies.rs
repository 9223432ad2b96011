//! The cause of each reason, and what to do. The meaning is the doc comment of the reason.

/// Code, cause, remedy.
pub const REMEDIES: &[(&str, &str, &str)] = &[
    ("Injected", "the pod opted in", "nothing"),
    ("NothingToAdd", "the container has all variables already", "nothing; remove a variable to have it set"),
    ("SwitchedOff", "the annotation or label is `\"false\"`", "remove it to opt in"),
    (
        "LanguageDisabled",
        "`--languages` does not list the language",
        "enable it (`injection.languages`), or remove the annotation",
    ),
    (
        "AlreadyInjected",
        "the pod has the containers or variables of an injection, as after a second review or by the operator",
        "nothing; if another injector added them, see [migration](../migration.md)",
    ),
    (
        "NoInstrumentation",
        "the namespace has no Instrumentation, and there is no default",
        "create one, or set `--default-instrumentation`",
    ),
    (
        "NoneSelectsPod",
        "no `spec.selector` of the namespace's Instrumentations matches the pod",
        "change the labels or a selector, or name an Instrumentation in the annotation",
    ),
    (
        "AmbiguousInstrumentation",
        "several Instrumentations match with the same priority",
        "name one in the annotation, or set `spec.selector` or `spec.priority`",
    ),
    (
        "AmbiguousOptIn",
        "several Instrumentations opt the pod in by their selectors, with the same priority",
        "set `spec.selector` or `spec.priority`, or name one in an annotation",
    ),
    (
        "InstrumentationNotFound",
        "the annotation names one that does not exist",
        "correct the name, or create it",
    ),
    (
        "InstrumentationNotGranted",
        "it does not exist, or is not granted to the pod's namespace",
        "ask its owner for `otel-webhook/allowed-namespaces`",
    ),
    (
        "CrossNamespaceDenied",
        "`--cross-namespace=deny`, and the annotation names another namespace",
        "create an Instrumentation in the pod's namespace",
    ),
    (
        "DefaultInstrumentationNotFound",
        "the one of `--default-instrumentation` was deleted or never created",
        "create it, or set another one",
    ),
    (
        "InstrumentationInvalid",
        "it was stored with an error, as before the webhook was installed, or is too large",
        "correct the field that the reason names; see [sizes](../configuration.md#sizes-of-what-is-read)",
    ),
    ("ContainerNotFound", "a list names a container that the pod does not have", "correct the name"),
    ("NoContainerNamed", "a list has no name in it", "name a container, or remove the annotation"),
    (
        "ContainerNamedTwice",
        "one container is named twice for one language; no language is injected",
        "name it once",
    ),
    (
        "ContainerListMissing",
        "several languages, and one has no list of containers",
        "add the annotation that the reason names",
    ),
    (
        "NamespaceLanguageIgnored",
        "pod and namespace opt in to different languages without lists",
        "add lists of containers to use both",
    ),
    (
        "SelectorLanguageIgnored",
        "a selector opts in to one language, pod or namespace to another one, without lists",
        "add lists of containers to use both",
    ),
    (
        "NamespaceSelectorDenied",
        "the Instrumentation is not in the namespace of `--default-instrumentation`",
        "remove the field; see [pods of other namespaces](../opt-in.md#pods-of-other-namespaces)",
    ),
    (
        "AgentNotFound",
        "no Instrumentation that the pod may use has the agent that `inject-agent` names",
        "name one of those that the reason lists, or add it to [spec.agents](../generic-agent.md)",
    ),
    ("TooManyAgents", "`inject-agent` names more than 16 agents", "name fewer"),
    ("InitContainer", "a list names an init container", "name a regular container"),
    (
        "OptionalReference",
        "a variable to extend has an `optional` `valueFrom`",
        "make the reference required, or set a value",
    ),
    ("AutoHomeSet", "the container sets `OTEL_DOTNET_AUTO_HOME` itself", "remove the variable, or opt out"),
    (
        "PlatformUnknown",
        "a wrong value of `otel-python-platform` or `otel-dotnet-auto-runtime`",
        "set one of the values that the reason lists",
    ),
    (
        "NameTaken",
        "the pod has a volume, container, mount or variable of the same name",
        "rename it, or opt out",
    ),
    (
        "WindowsPod",
        "`spec.os`, the node selector or every term of the required node affinity demands Windows",
        "opt out",
    ),
    ("ProcessNamespaceNotShared", "Go, and `shareProcessNamespace: false`", "remove the field"),
    (
        "TargetExecutableMissing",
        "Go, and no `OTEL_GO_AUTO_TARGET_EXE`",
        "set the annotation `instrumentation.opentelemetry.io/otel-go-auto-target-exe`",
    ),
    ("SeveralContainers", "Go, and several containers are named", "name one"),
    (
        "PodSecurity",
        "the pod security level of the namespace does not allow the container that would be added",
        "change the security context of the Instrumentation, or the level",
    ),
    (
        "PrivilegedInitContainer",
        "the Instrumentation gives init containers more privileges, and `--init-containers-privileged=deny`",
        "remove the field from the Instrumentation, or use another one",
    ),
    (
        "RootNotAllowed",
        "the pod must not run as root (`runAsNonRoot: true`), and the user of the added container is 0",
        "set another user in the pod or in `spec.initContainerSecurityContext`; for Go, `runAsNonRoot: false` in \
         `spec.go.securityContext`",
    ),
    (
        "ClaimNotWritable",
        "the pod must not run as root and sets no user and no `fsGroup`, and `volumeClaimTemplate`",
        "set `spec.securityContext.fsGroup` of the pod, or remove the template",
    ),
    (
        "ModuleLacksArm64",
        "the node selector or the required node affinity demands arm64, and the default image of Apache HTTPD and \
         nginx is for x86-64",
        "use an image with a build for arm64, or opt out",
    ),
    (
        "ResourcesRefused",
        "a LimitRange or ResourceQuota of the namespace",
        "lower what the Instrumentation sets, or raise the limit",
    ),
    (
        "ClaimRefused",
        "a LimitRange or ResourceQuota, and `volumeClaimTemplate`",
        "change the template, or raise the limit",
    ),
    (
        "SecretRefused",
        "the ServiceAccount has `kubernetes.io/enforce-mountable-secrets`",
        "use another Instrumentation or ServiceAccount",
    ),
    ("MirrorPod", "a kubelet created it from a file", "add the agent to the static pod's manifest"),
    (
        "ConfigPath",
        "web servers: the path is relative, or the root itself",
        "set an absolute path below the root",
    ),
    (
        "DirectiveInvalid",
        "web servers: the name or the value of a directive has control characters, or more than 8,000 bytes \
         (nginx: 4,000)",
        "correct the field that the reason names",
    ),
    (
        "EphemeralStorage",
        "the agents do not fit into the pod's limit of ephemeral storage",
        "raise the limit; see [sizes of agents](../sizes.md)",
    ),
    (
        "PodTooLarge",
        "the pod would be larger than `--max-pod-size` (1536Ki), or more than 256Ki and four times the pod would be \
         added",
        "name fewer containers, or shorten the variables and resource attributes that are added to each",
    ),
    ("NoContainers", "the pod has an empty list of containers; the API server rejects it", "add a container"),
    (
        "ContainerUnreadable",
        "a part of the container is not as the API server sends it",
        "correct the field that the reason names",
    ),
];
