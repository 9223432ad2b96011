//! The Instrumentation resource, except for its languages.
//!
//! Every field is optional: a resource that was stored without defaults, or by
//! another version, can be read as well.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use super::status::InstrumentationStatus;
#[cfg(feature = "schema")]
use crate::{
    Delivery,
    crd::{
        SAMPLERS,
        patterns::{MOST_VARIABLES, OBJECT_NAME},
        pod::{ContainerSecurity, LONGEST_NAME, Selector},
        rules,
    },
};
use serde::{Deserialize, Serialize};

use super::{
    agent::GenericAgent,
    language::{Agent, ApacheHttpd, Go, Java, Nginx},
    read::OnlyBeta,
    values::{EnvVar, LabelSelector, Raw},
};

/// Configures the injection into the pods of a namespace.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(kube::CustomResource, schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    kube(
        group = "opentelemetry.io",
        version = "v1alpha1",
        kind = "Instrumentation",
        plural = "instrumentations",
        singular = "instrumentation",
        namespaced,
        shortname = "otelinst",
        shortname = "otelinsts",
        status = "InstrumentationStatus",
        doc = "Configures the injection of OpenTelemetry auto-instrumentation into the pods of a namespace.",
        printcolumn = r#"{"name":"Matched","type":"integer","jsonPath":".status.pods.matched"}"#,
        printcolumn = r#"{"name":"Injected","type":"integer","jsonPath":".status.pods.injected"}"#,
        printcolumn = r#"{"name":"Stale","type":"integer","jsonPath":".status.pods.stale"}"#,
        printcolumn = r#"{"name":"Missed","type":"integer","jsonPath":".status.pods.missed"}"#,
        printcolumn = r#"{"name":"Failing","type":"integer","jsonPath":".status.pods.failing"}"#,
        printcolumn = r#"{"name":"Silent","type":"integer","jsonPath":".status.pods.silent"}"#,
        printcolumn = r#"{"name":"Skipped","type":"integer","priority":1,"jsonPath":".status.pods.skipped"}"#,
        printcolumn = r#"{"name":"Heard","type":"integer","priority":1,"jsonPath":".status.pods.heard"}"#,
        printcolumn = r#"{"name":"Ready","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
        printcolumn = r#"{"name":"Restart","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"RestartInProgress\")].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
        printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".spec.exporter.endpoint"}"#,
        printcolumn = r#"{"name":"Sampler","type":"string","jsonPath":".spec.sampler.type"}"#,
        printcolumn = r#"{"name":"Sampler Arg","type":"string","jsonPath":".spec.sampler.argument"}"#
    )
)]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = rules::opt_in())))]
#[serde(rename_all = "camelCase", default)]
pub struct InstrumentationSpec {
    /// Selects pods among those that opt in with "true", and those that `inject` opts in. By default it applies to
    /// all of the namespace.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Selector>"))]
    pub selector: Option<LabelSelector>,
    /// Languages that the selected pods are injected with although neither they nor their namespace opt in.
    /// Requires a selector; `{}` selects all pods.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::names::languages"))]
    pub inject: Option<Vec<String>>,
    /// Selects the namespaces of the pods that `inject` opts in, instead of this resource's own. Has an effect in
    /// the namespace of the default Instrumentation only.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Selector>"))]
    pub namespace_selector: Option<LabelSelector>,
    /// Among several resources that match a pod, the one with the highest priority is used.
    pub priority: Option<i32>,
    /// Environment variables of every target.
    #[cfg_attr(feature = "schema", schemars(length(max = MOST_VARIABLES)))]
    pub env: Option<Vec<EnvVar>>,
    /// The collector that telemetry is sent to.
    pub exporter: Option<Exporter>,
    /// Resource attributes of every target.
    pub resource: Option<ResourceAttributes>,
    /// Context propagators, in order (`OTEL_PROPAGATORS`).
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::names::propagators"))]
    pub propagators: Option<Vec<String>>,
    /// The sampler, which decides which traces are recorded.
    pub sampler: Option<Sampler>,
    /// The file by which agents configure their SDK, instead of `exporter`, `propagators` and `sampler`: a document of the
    /// OpenTelemetry configuration schema. Its members `onUnsupported` and `assumeSupported` are not part of the file.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::crd::names::declarative"))]
    pub declarative_config: Option<Raw>,
    /// Whether spans of the kubelet's HTTP probes are kept (`keep`, the default) or, as far as the agent can, dropped
    /// (`drop`).
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["keep", "drop"])))]
    pub probes: Option<String>,
    /// Further sources of resource attributes.
    pub defaults: Option<Defaults>,
    /// How agents get into pods, unless a language or an annotation says otherwise: `initContainer` (an init container
    /// copies the agent), `imageVolume` (the image is mounted) or `auto` (mounted where all nodes of the pod can).
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Delivery::NAMES)))]
    pub delivery: Option<String>,
    /// Pull policy of the injected images.
    // Typed clients write a policy that is not set as "".
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["Always", "IfNotPresent", "Never", ""])))]
    pub image_pull_policy: Option<String>,
    /// Security context of the init containers; by default the one of the first target.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ContainerSecurity>"))]
    pub init_container_security_context: Option<Raw>,
    /// Java.
    pub java: Option<Java>,
    /// Node.js.
    pub nodejs: Option<Agent>,
    /// Python.
    pub python: Option<Agent>,
    /// .NET.
    pub dotnet: Option<Agent>,
    /// Go.
    pub go: Option<Go>,
    /// Apache HTTPD.
    pub apache_httpd: Option<ApacheHttpd>,
    /// Nginx.
    pub nginx: Option<Nginx>,
    /// Agents for other languages. Pods opt in to them by `inject-agent: NAME`.
    #[cfg_attr(feature = "schema", schemars(length(max = 16), extend("x-kubernetes-list-type" = "map")))]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-map-keys" = ["name"])))]
    pub agents: Option<Vec<GenericAgent>>,
    /// What v1alpha1 has no field for.
    #[serde(skip)]
    pub only_beta: OnlyBeta,
}

/// The collector that telemetry is sent to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exporter {
    /// The collector's URL (`OTEL_EXPORTER_OTLP_ENDPOINT`).
    pub endpoint: Option<String>,
    /// TLS settings of the connection.
    pub tls: Option<Tls>,
}

/// TLS settings of the connection to the collector.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(non_snake_case, reason = "the names of the resource mix camel case and underscores")]
pub struct Tls {
    /// Secret in the pod's namespace, mounted into every target.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = OBJECT_NAME), length(max = LONGEST_NAME)))]
    pub secretName: Option<String>,
    /// ConfigMap in the pod's namespace with the CA, mounted into every target.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = OBJECT_NAME), length(max = LONGEST_NAME)))]
    pub configMapName: Option<String>,
    /// Key in the ConfigMap, else in the Secret, or an absolute path, of the CA certificate.
    pub ca_file: Option<String>,
    /// Key in the Secret, or an absolute path, of the client certificate.
    pub cert_file: Option<String>,
    /// Key in the Secret, or an absolute path, of the client's private key.
    pub key_file: Option<String>,
}

/// Resource attributes of every target.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceAttributes {
    /// Attributes by name; those that the pod sets itself override them.
    pub resource_attributes: Option<BTreeMap<String, String>>,
    /// Whether to add the UIDs of the pod and its owners as attributes.
    #[serde(rename = "addK8sUIDAttributes")]
    pub add_k8s_uid_attributes: Option<bool>,
}

/// The sampler, which decides which traces are recorded.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = rules::sampler())))]
#[serde(default)]
pub struct Sampler {
    /// Name of the sampler (`OTEL_TRACES_SAMPLER`).
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = SAMPLERS)))]
    pub kind: Option<String>,
    /// Argument of the sampler (`OTEL_TRACES_SAMPLER_ARG`).
    #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
    pub argument: Option<String>,
}

/// Further sources of resource attributes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Defaults {
    /// Whether labels such as `app.kubernetes.io/name` set the service's name and version.
    pub use_labels_for_resource_attributes: Option<bool>,
}
