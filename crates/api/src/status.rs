//! The status of an Instrumentation: what running pods have of it, told by the controller.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use crate::crd::rules;
use serde::{Deserialize, Serialize};

/// What running pods have of the Instrumentation, and what the OpenTelemetry Operator sets.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct InstrumentationStatus {
    /// Versions that the operator does not upgrade to. Otel-webhook never changes it.
    pub upgrade_blocked_versions: Option<BTreeMap<String, String>>,
    /// When something below changed.
    pub last_updated: Option<String>,
    /// The running pods that use the Instrumentation, or would use it.
    pub pods: Option<PodCounts>,
    /// The workloads of the namespace with failing, stale, missed or silent pods, at most ten.
    pub workloads: Option<Vec<WorstWorkload>>,
    /// How many more such workloads there are, those of other namespaces among them.
    pub more: Option<u32>,
    /// Mistakes in workloads and pods of the namespace, and in the selectors of the Instrumentation, at most five.
    pub mistakes: Option<Vec<MistakeStatus>>,
    /// How many more such mistakes there are.
    pub more_mistakes: Option<u32>,
    /// Restarts of workloads that consent.
    pub restart: Option<RestartStatus>,
    /// `Ready` (the specification can be used), `UpToDate`, `DataArrives`, `RestartInProgress`, `RestartStopped`.
    // Clients that apply a condition of another type keep ours, and the controller theirs.
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-type" = "map")))]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-map-keys" = ["type"])))]
    pub conditions: Option<Vec<Condition>>,
}

/// The number of pods by their state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodCounts {
    /// All of them.
    pub matched: Option<u32>,
    /// With the agent as a new pod would get it.
    pub injected: Option<u32>,
    /// With another agent than a new pod would get.
    pub stale: Option<u32>,
    /// Without the agent that a new pod would get.
    pub missed: Option<u32>,
    /// Without an agent, as a new pod.
    pub skipped: Option<u32>,
    /// Injected by another injector.
    pub foreign: Option<u32>,
    /// Not looked at yet, or with a stamp of another version.
    pub unconfirmed: Option<u32>,
    /// Those of any state that fail because of what injection added.
    pub failing: Option<u32>,
    /// With data that arrives; only where the controller has a source that says so.
    pub heard: Option<u32>,
    /// Without data that arrives although it should; only where the controller has a source that says so.
    pub silent: Option<u32>,
}

/// A workload with failing, stale, missed or silent pods.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WorstWorkload {
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The number of its stale pods.
    pub stale: Option<u32>,
    /// The number of its missed pods.
    pub missed: Option<u32>,
    /// The number of its pods that fail because of what injection added.
    pub failing: Option<u32>,
    /// The number of its pods without data that arrives although it should; only where the controller has a source that
    /// says so.
    pub silent: Option<u32>,
    /// The code of the reason.
    pub reason: Option<String>,
}

/// An annotation or a label that nothing reads, or something that pods were injected with in spite of a warning.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MistakeStatus {
    /// The kind of the object.
    pub kind: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The code of the mistake.
    pub code: Option<String>,
    /// What is wrong, and what to do.
    pub message: Option<String>,
}

/// Restarts that bring workloads up to date.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RestartStatus {
    /// The configuration that they bring.
    pub hash: Option<String>,
    /// How many workloads have it.
    pub done: Option<u32>,
    /// How many there are.
    pub total: Option<u32>,
    /// The workload that stopped them, and why.
    pub stopped_by: Option<String>,
}

/// A condition of the standard shape.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = rules::required(&["type"])))]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Its type.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub r#type: Option<String>,
    /// True, False or Unknown.
    pub status: Option<String>,
    /// A code.
    pub reason: Option<String>,
    /// A sentence.
    pub message: Option<String>,
    /// The generation of the Instrumentation that it is about.
    pub observed_generation: Option<i64>,
    /// When its status changed.
    pub last_transition_time: Option<String>,
}
