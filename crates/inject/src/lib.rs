//! The core: which agent goes into which container of a pod, and the patch
//! that puts it there.
//!
//! ```text
//! pod + namespace + Instrumentations + settings
//!    └─ decide ──> which Instrumentation for which container, owners to ask for
//!          └─ build (+ owners) ──> patch operations, findings
//! ```
//!
//! Pure and synchronous: no I/O, no clock, no environment, no logging. The
//! webhook, the command line and the tests are doors to this one core.

mod agent;
pub mod annotation;
mod architecture;
mod autoscaler;
pub mod catalogue;
pub mod compiled;
mod container;
mod containers;
mod decide;
mod demand;
mod edit;
pub mod env;
mod exporter;
mod fitting;
pub mod helpers;
mod image;
pub mod job;
pub(crate) mod json;
pub mod language;
pub mod limits;
mod mark;
mod note;
mod other_agent;
mod patch;
mod path;
pub mod pod;
mod pod_security;
pub mod reason;
mod resource;
mod select;
pub mod selector;
mod stamp;
mod storage;
mod target;
pub mod template;
pub mod text;
mod warning;
mod web_server;
pub mod workload;

pub use decide::{Decision, decide};
pub use fitting::InitResources;
pub use job::Finding;
pub use note::Note;
pub use select::{CrossNamespace, rivals, unselected};
pub use stamp::{LABEL, STATUS};
pub use warning::{Warning, told};

use std::cell::OnceCell;

use catalogue::Catalogue;
use edit::PodEdit;
use helpers::Helpers;
use job::Job;
use language::LanguageSet;
use otel_webhook_api::sizes::AgentSizes;
use pod::Pod;
use reason::{ObjectName, Reason};
use resource::PodFacts;
use workload::Owners;

/// What an installation decides for all pods.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Languages that may be injected.
    pub languages: LanguageSet,
    /// Whether injected pods carry a label and an annotation that say so.
    pub stamp: bool,
    /// How the resources of init containers are set.
    pub init_resources: InitResources,
    /// Whether added emptyDir volumes are named to the cluster autoscaler as no reason to keep a node.
    pub safe_to_evict: bool,
    /// The Instrumentation for namespaces that have none. Every namespace may use it.
    pub default_instrumentation: Option<ObjectName>,
    /// Whether other Instrumentations are used from other namespaces than their own.
    pub cross_namespace: CrossNamespace,
    /// Containers that are skipped where none is named.
    pub helpers: Helpers,
    /// How much room agents take in their volumes.
    pub sizes: AgentSizes,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            languages: LanguageSet::default(),
            stamp: true,
            safe_to_evict: true,
            init_resources: InitResources::Neutral,
            default_instrumentation: None,
            cross_namespace: CrossNamespace::Allow,
            helpers: Helpers::default(),
            sizes: AgentSizes::default(),
        }
    }
}

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Input<'p> {
    /// The pod.
    pub pod: &'p Pod<'p>,
    /// Namespace of the request.
    pub namespace: &'p str,
    /// Namespaces and their Instrumentations.
    pub catalogue: &'p Catalogue,
    /// What the installation decides.
    pub settings: &'p Settings,
}

/// What came of a pod.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// RFC 6902 operations as JSON text; none where the pod stays as it is.
    pub patch: Option<String>,
    /// What came of each language that was asked for, by container.
    pub findings: Vec<Finding>,
    /// Whether nothing goes in and the pod carries the stamp that says so: it is reviewed once more.
    pub is_stamped: bool,
}

impl Outcome {
    /// The patch as operations.
    pub fn operations(&self) -> json_patch::Patch {
        let parse = |text: &String| serde_json::from_str(text).expect("the patch is written as operations");
        self.patch.as_ref().map(parse).unwrap_or_default()
    }

    /// Whether anything was asked for, and not only switched off.
    pub fn is_asked(&self) -> bool {
        self.findings.iter().any(|finding| !matches!(finding.reason, Reason::SwitchedOff { .. }))
    }

    /// The findings that count, so that a pod counts once however often the API server sends it.
    ///
    /// A pod that is found injected counts as that alone: what else it asks for was counted by the
    /// review that injected it. One that nothing went into is known by its stamp, which decides nothing else.
    pub fn counted(&self) -> impl Iterator<Item = &Finding> {
        let found = |finding: &Finding| matches!(finding.reason, Reason::AlreadyInjected { .. });
        let is_repeated = self.is_stamped || self.findings.iter().any(found);
        self.findings.iter().filter(move |finding| !is_repeated || found(finding))
    }
}

/// Carries a decision out.
pub fn build(decision: Decision<'_>, owners: &dyn Owners) -> Outcome {
    let Decision { input, annotations, plans, mut findings } = decision;
    if plans.is_empty() && findings.is_empty() {
        return Outcome::default();
    }
    let with_uids = plans.iter().any(|plan| plan.instrumentation.resource.with_uids);
    let facts = PodFacts {
        pod: input.pod,
        namespace: input.namespace,
        workload: workload::chain(input.pod, input.namespace, with_uids, owners),
        init_resources: input.settings.init_resources,
        sizes: &input.settings.sizes,
    };
    let demand = OnceCell::new();
    let mut edit = PodEdit::new(input.pod);
    for plan in &plans {
        let mut job = Job {
            plan,
            annotations: &annotations,
            namespace: input.catalogue.namespace(input.namespace),
            facts: &facts,
            demand: &demand,
            edit: &mut edit,
            findings: &mut findings,
        };
        match fitting::check_secrets(&job) {
            Ok(()) => (plan.language.inject_into)(&mut job),
            Err(reason) => job.report_all(reason),
        }
        job.note_image();
        if let Some(note) = &plan.note {
            job.note(note.clone());
        }
    }
    note_unlearned(&mut findings, &facts.workload);
    storage::warn_of_pod(&mut findings, &edit);
    warning::add(&mut findings, &plans, &edit);
    let mut stamp = if input.settings.stamp { stamp::of(&findings) } else { stamp::Stamp::default() };
    let own = &input.pod.metadata.annotations;
    stamp.1.retain(|one| stamp::has_room(own, &[], one));
    // A stamp may have been copied along with other annotations: what goes in counts.
    let is_injected = findings.iter().any(|finding| finding.reason.is_injected());
    let carries = |(key, value): &(&str, String)| own.get(key) == Some(value.as_str());
    let is_stamped = !is_injected && !stamp.1.is_empty() && stamp.1.iter().all(carries);
    let evict = autoscaler::annotation(&edit).filter(|_| input.settings.safe_to_evict);
    let evict = evict.filter(|one| stamp::has_room(own, &stamp.1, one));
    Outcome { patch: patch::operations(&edit, &stamp, evict), findings, is_stamped }
}

/// Says of whom nobody could tell in time to whom they belong.
fn note_unlearned(findings: &mut [Finding], workload: &workload::Workload) {
    if let Some(finding) = findings.iter_mut().find(|finding| finding.reason.is_injected()) {
        let notes = workload.unlearned.iter().map(|owner| Note::OwnerNotLearned { owner: owner.clone() });
        finding.notes.extend(notes);
    }
}
