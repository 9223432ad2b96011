//! What is told about running pods: counts for each workload and each Instrumentation, with reasons and remedies.

use std::borrow::Cow;

use jiff::Timestamp;
use otel_webhook_inject::pause::Pause;
use serde::{Serialize, Serializer};

use crate::{
    advice::NotAdvised,
    coverage::CoverageRow,
    heard::{Data, Unknown},
    mistakes::MistakeRow,
    silent::Likely,
    state::State,
    workload::Workload,
};

/// The state of all pods that have an agent or opt in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What pauses injection: what pauses the most first, else by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<PauseRow>,
    /// The Instrumentations that pods use or would use, by namespace and name.
    pub instrumentations: Vec<InstrumentationRow>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<WorkloadRow>,
    /// How many of the running pods have an agent, by namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<CoverageRow>,
    /// Mistakes in workloads, namespaces and pods, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<MistakeRow>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_mistakes: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A report with where and when it was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The cluster, such as the context of the kubeconfig.
    pub cluster: String,
    /// When the pods were read.
    pub taken: Timestamp,
    /// What could not be read, and what else the report does not know, as sentences.
    pub incomplete: Vec<String>,
    /// The pods.
    #[serde(flatten)]
    pub report: Report,
}

/// The pods of an Instrumentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstrumentationRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its pods. One with several languages is counted once, by the worst of their states.
    pub pods: Counts,
    /// The workloads with failing, stale, missed or silent pods, those of its namespace first, and of them those with the most,
    /// ten at most.
    pub workloads: Vec<WorstWorkload>,
    /// How many more there are.
    pub more: usize,
}

/// A workload with failing, stale, missed or silent pods.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorstWorkload {
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// The number of its stale pods.
    pub stale: usize,
    /// The number of its missed pods.
    pub missed: usize,
    /// The number of its pods that fail because of what injection added.
    pub failing: usize,
    /// The number of its pods without data that arrives although it should; `None` where no source says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<usize>,
    /// The code of why they fail; if none does, of the reason for the worst state, or `Silent`.
    pub reason: String,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRow {
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// The number of its pods that have an agent or opt in.
    pub pods: usize,
    /// The number of its pods that have an agent, whether or not it is up to date.
    pub with_agent: usize,
    /// The worst state of its pods.
    pub state: State,
    /// Its languages, in the order of the language table.
    pub languages: Vec<LanguageRow>,
    /// The number of its pods that fail because of what injection added, whatever their state.
    pub failing: usize,
    /// Why pods fail, in the order of the language table; those first that are counted as failing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRow>,
    /// A command that brings it up to date; `None` if nothing has to be done, none is advised, or no command does it.
    pub command: Option<String>,
    /// Why no restart is advised; `None` if one is, or if it is up to date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_advised: Option<NotAdvised>,
    /// What pauses injection into its new pods; `None` if nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedRow>,
    /// What becomes of it by restarts; `None` if it is up to date, or where restarts are not planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartRow>,
}

/// Something that pauses injection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseRow {
    /// The object with the annotation, such as `Namespace shop`.
    pub by: String,
    /// Which pods are paused: `all`, `namespace` or `instrumentation`.
    pub scope: &'static str,
    /// The same for people.
    pub pods: &'static str,
    /// A command that resumes.
    pub command: String,
}

impl From<&Pause> for PauseRow {
    fn from(pause: &Pause) -> Self {
        Self {
            by: pause.to_string(),
            scope: pause.scope(),
            pods: pause.pods(),
            command: pause.resume_command(),
        }
    }
}

/// A workload into the new pods of which injection is paused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PausedRow {
    /// The object with the annotation.
    pub by: String,
    /// A command that removes the agents of its running pods; `None` if they have none, or no command does it.
    pub command: Option<String>,
}

/// Containers of a workload's pods that cannot start or stay, for the same reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureRow {
    /// The language that is in the container, or that it was added for.
    pub language: &'static str,
    /// The container.
    pub container: String,
    /// The kubelet's reason, such as `ImagePullBackOff`, or a code of [`Verdict`](crate::failing::Verdict).
    pub code: &'static str,
    /// Whether the pods count as failing: not those that the application itself ends, or for which that is not known.
    pub is_counted: bool,
    /// What it means, as a sentence, and what speaks for the agent as the cause.
    pub message: String,
    /// What to do, as a sentence.
    pub remedy: String,
    /// What the kubelet says, and how the container has ended.
    pub kubelet: String,
    /// The number of pods.
    pub pods: usize,
    /// The youngest of them.
    pub pod: String,
    /// How often the container of one of them was restarted.
    pub restarts: u64,
}

/// Whether a workload is restarted, and why not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartRow {
    /// A code, such as `Restarting`, `WaitsForCanary` or `NoConsent`.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// A language of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LanguageRow {
    /// The language.
    pub language: &'static str,
    /// The number of pods by state.
    pub pods: Counts,
    /// The worst state.
    pub state: State,
    /// The code of the reason for the worst state; `None` if the agent is there and up to date.
    pub reason: Option<&'static str>,
    /// The reason as a sentence.
    pub message: Option<Cow<'static, str>>,
    /// `namespace/name` of the Instrumentation that a new pod would get; else of that of the running pods.
    pub instrumentation: Option<String>,
    /// The images of the agents in their order, with the number of pods.
    #[serde(serialize_with = "by_image")]
    pub images: Vec<(String, usize)>,
    /// When the oldest pod with the worst state was created.
    pub since: Option<Timestamp>,
    /// Whether data arrives; `None` where no source says so, or no pod has an agent of this webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataRow>,
}

/// Whether data of the pods of a workload arrives.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataRow {
    /// The number of pods with data that arrives.
    pub heard: usize,
    /// The number of pods without data although it should arrive.
    pub silent: usize,
    /// The number of pods of which it is not known.
    pub unknown: usize,
    /// Since when one pod is silent; if none is, since when one is heard.
    pub since: Option<Timestamp>,
    /// Why it is not known of one pod; `None` if it is known of all.
    pub why: Option<Unknown>,
    /// The likely cause, if pods are silent and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Likely>,
}

impl DataRow {
    /// Counts a pod.
    pub(crate) fn add(row: &mut Option<Self>, data: Data) -> &mut Self {
        let row =
            row.get_or_insert(Self { heard: 0, silent: 0, unknown: 0, since: None, why: None, cause: None });
        match data {
            Data::Heard(since) => {
                if row.silent == 0 {
                    row.since = row.since.into_iter().chain([since]).min();
                }
                row.heard += 1;
            }
            Data::Silent(since) => {
                let first = row.since.filter(|_| row.silent > 0);
                row.since = first.into_iter().chain([since]).min();
                row.silent += 1;
            }
            Data::Unknown(why) => {
                row.why = row.why.into_iter().chain([why]).max();
                row.unknown += 1;
            }
        }
        row
    }
}

/// The number of pods by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All.
    pub matched: usize,
    /// With the agent as a new pod would get it.
    pub injected: usize,
    /// With another agent than a new pod would get.
    pub stale: usize,
    /// Without the agent that a new pod would get.
    pub missed: usize,
    /// Without an agent, as a new pod.
    pub skipped: usize,
    /// Injected by another injector.
    pub foreign: usize,
    /// Not looked at yet, with a hash of another version, or dependent on what is not readable.
    pub unconfirmed: usize,
    /// Those of them, in whatever state, that fail because of what injection added.
    pub failing: usize,
    /// Those with data that arrives; `None` where no source says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<usize>,
    /// Those without data that arrives although it should; `None` where no source says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<usize>,
}

impl Counts {
    /// Counts a pod.
    pub fn add(&mut self, state: State) {
        self.matched += 1;
        *self.field(state) += 1;
    }

    /// Adds the counts of other pods.
    pub(crate) fn add_all(&mut self, other: Self) {
        self.matched += other.matched;
        self.failing += other.failing;
        let sum = |own: Option<usize>, other: Option<usize>| {
            own.into_iter().chain(other).reduce(|own, other| own + other)
        };
        self.heard = sum(self.heard, other.heard);
        self.silent = sum(self.silent, other.silent);
        for state in State::ALL {
            *self.field(state) += other.of(state);
        }
    }

    /// Counts whether data of a pod arrives.
    pub(crate) fn hear(&mut self, data: Option<Data>) {
        let Some(data) = data else { return };
        *self.heard.get_or_insert_default() += usize::from(matches!(data, Data::Heard(_)));
        *self.silent.get_or_insert_default() += usize::from(matches!(data, Data::Silent(_)));
    }

    fn field(&mut self, state: State) -> &mut usize {
        match state {
            State::Injected => &mut self.injected,
            State::Stale => &mut self.stale,
            State::Missed => &mut self.missed,
            State::Skipped => &mut self.skipped,
            State::Foreign => &mut self.foreign,
            State::Unconfirmed => &mut self.unconfirmed,
        }
    }

    /// Returns the number of pods with a state.
    pub fn of(mut self, state: State) -> usize {
        *self.field(state)
    }
}

fn by_image<S: Serializer>(images: &[(String, usize)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(images.iter().map(|(image, count)| (image, count)))
}
