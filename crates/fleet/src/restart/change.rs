//! Consent to restarts, how fast they are, what one changes, and what is asked of the API server.

use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::workload::Workload;
use otel_webhook_api::annotations::CONSENTS;

/// The annotations of restarts.
pub mod annotations {
    /// On a workload, a namespace or an Instrumentation: `rollout`, `evict` or `never`.
    pub use otel_webhook_api::annotations::RESTART_ANNOTATION as RESTART;
    /// On an Instrumentation: another value than before resumes a stopped restart.
    pub use otel_webhook_api::annotations::RESUME_ANNOTATION as RESUME;
    /// On a pod template: for what it was restarted; see [`Change::value`](super::Change::value).
    pub const CONFIG: &str = "otel-webhook/config";
    /// On a workload: the last change that it has received, as JSON.
    pub const RECORD: &str = "otel-webhook/restarted";
}

/// How a workload may be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    /// Not at all.
    Never,
    /// By an annotation in its pod template.
    Rollout,
    /// By evicting pod after pod.
    Evict,
}

/// A value of the annotation that is none of the three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidConsent(pub String);

impl fmt::Display for InvalidConsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value) = self;
        let [first, second, third] = CONSENTS;
        let valid = format!("{first}, {second} or {third}");
        write!(f, "annotation {}: {value:?} is not valid; use {valid}", annotations::RESTART)
    }
}

impl Consent {
    /// Returns the consent for a workload: that of its own annotation, else that of its namespace, else that of the
    /// Instrumentation. An Instrumentation consents only for its own namespace: pass `None` for another one's.
    ///
    /// # Errors
    /// If the annotation that applies is not valid; nothing is restarted then.
    pub fn of(
        workload: Option<&str>,
        namespace: Option<&str>,
        instrumentation: Option<&str>,
    ) -> Result<Self, InvalidConsent> {
        let Some(value) = workload.or(namespace).or(instrumentation) else { return Ok(Self::Never) };
        let consents = CONSENTS.into_iter().zip([Self::Rollout, Self::Evict, Self::Never]);
        let consent = { consents }.find(|(known, _)| *known == value).map(|(_, consent)| consent);
        consent.ok_or_else(|| InvalidConsent(value.chars().take(40).collect()))
    }
}

/// A change that a restart brings to a workload. The same one is never brought to it twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// UID of the Instrumentation.
    pub instrumentation: String,
    /// Its generation: to go back to an earlier configuration is a new change.
    pub generation: i64,
    /// The configuration that new pods get: languages with their hashes.
    pub config: String,
    /// Which attempt it is, from 1 on. Earlier versions made only one, and did not record it.
    #[serde(default = "first")]
    pub attempt: u8,
}

fn first() -> u8 {
    1
}

impl Change {
    /// Returns the value in the pod template, such as `java=v1:0123abcd/7-1`: configuration, generation and attempt.
    /// It differs from the value of every other restart, so that the template changes and pods are replaced.
    pub fn value(&self) -> String {
        format!("{}/{}-{}", self.config, self.generation, self.attempt)
    }

    /// Reads the record of a workload. One that cannot be read is none.
    pub fn read(annotation: &str) -> Option<Self> {
        serde_json::from_str(annotation).ok()
    }

    /// Writes the record.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("strings and a number are JSON")
    }
}

/// How fast workloads are restarted. Each is a flag of the controller.
#[derive(Clone, Debug)]
pub struct Pace {
    /// How long an Instrumentation has to be unchanged.
    pub settle: SignedDuration,
    /// How long a restarted workload is observed after it became healthy; the canary delays the others so long.
    pub observe: SignedDuration,
    /// How long a restart may make no progress, in addition to `minReadySeconds`.
    pub progress: SignedDuration,
    /// How many workloads are restarted at the same time.
    pub at_once: usize,
    /// How many of one namespace are restarted at the same time.
    pub per_namespace: usize,
    /// How many restarts and evictions begin in a minute.
    pub per_minute: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            settle: SignedDuration::from_secs(60),
            observe: SignedDuration::from_mins(2),
            progress: SignedDuration::from_mins(10),
            at_once: 3,
            per_namespace: 1,
            per_minute: 10,
        }
    }
}

/// The least number of available pods at which one is evicted.
pub const LEAST_AVAILABLE: usize = 2;

/// One request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a change into the template and the record of a workload, in one patch.
    Rollout {
        /// The workload.
        workload: Workload,
        /// The change.
        change: Change,
    },
    /// Evict a pod.
    Evict {
        /// The workload of the pod.
        workload: Workload,
        /// The name of the pod.
        pod: String,
        /// Its UID, as a precondition.
        uid: String,
    },
}
