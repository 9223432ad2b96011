//! Reads every workload of a cluster once: what is injected into its pods, and into new ones.
//!
//! ```text
//! namespaces, Instrumentations ─> store ─┐
//! pods ─> counts by workload             ├─ decisions ─> findings
//! Deployments, … in pages ───────────────┘
//! ```
//! Each object is processed with its page and then dropped, so that only one row per workload is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::cluster::{
    facts::Facts,
    fleet,
    known::{COLLECTOR, Flags, Known},
    object::{Referenced, labels, own_languages, referenced, text, typed},
    owners::{self, Listed, Owned, Owners},
    reader::{Asked, ClusterReader, FailedRequest, Part},
};
use otel_webhook_fleet::{
    advice::{NotAdvised, Outside},
    census::Census,
    injected::{self, Agent, By},
    pod::RunningPod,
    report::FailureRow,
    workload,
};
use otel_webhook_inject::{
    Finding,
    catalogue::Stored,
    language::{ImageVolume, LANGUAGES},
    mistakes::{self, Fault, Mistake},
    nearly::Near,
    note::Note,
    pause::Pause,
    template::Workload,
    workload::OwnerKind,
};
use otel_webhook_server::{registration::Labels, subject::Subject};
use otel_webhook_store::{
    reduced::rollouts,
    unread::{Unread, Unsure},
};

/// Reads all namespaces, or one.
pub async fn take(cluster: &ClusterReader, scope: Option<&str>, facts: &Facts, flags: Flags<'_>) -> Survey {
    let mut known = Known::list(cluster, scope, flags).await;
    let mut survey = once(cluster, scope, facts, &mut known).await;
    // Workloads may name Instrumentations of namespaces that were not listed yet.
    let named = survey.workloads.iter().flat_map(|one| &one.unsure).filter_map(Unsure::instrumentations_of);
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    if !named.is_empty() && known.learn(cluster, named).await {
        survey = once(cluster, scope, facts, &mut known).await;
    }
    survey.failed.splice(0..0, known.failed);
    survey.paused = known.snapshot.catalogue.pauses();
    survey.namespaces = known.namespaces;
    survey.collectors = known.collectors;
    survey.unread = known.unread;
    survey
}

async fn once(cluster: &ClusterReader, scope: Option<&str>, facts: &Facts, known: &mut Known) -> Survey {
    let mut survey = Survey::default();
    note(&mut survey, known, scope);
    survey.mistakes.clone_from(&known.mistakes);
    let mut surveyor = Surveyor {
        cluster,
        scope,
        outside: fleet::outside(facts, known),
        known,
        owners: Owners::default(),
        others: Others::default(),
        tally: HashMap::new(),
        census: Census::default(),
        are_pods_told: true,
        survey,
    };
    surveyor.list_pods().await;
    surveyor.list_workloads().await;
    let mut survey = surveyor.survey;
    let order = |one: &Surveyed| {
        let Subject { kind, namespace, name } = one.subject.clone();
        (namespace, kind, name)
    };
    survey.workloads.sort_by_cached_key(order);
    survey
}

struct Surveyor<'c> {
    cluster: &'c ClusterReader,
    scope: Option<&'c str>,
    /// What keeps restarts from being advised.
    outside: Outside,
    known: &'c mut Known,
    owners: Owners,
    others: Others,
    tally: HashMap<Subject, Pods>,
    census: Census,
    are_pods_told: bool,
    survey: Survey,
}

impl Surveyor<'_> {
    /// Counts the pods of each workload. Pods without a known controller are workloads themselves.
    async fn list_pods(&mut self) {
        let before = self.survey.failed.len();
        for (kind, resource) in [
            (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            (OwnerKind::Job, ApiResource::erase::<Job>(&())),
        ] {
            let owners = &mut self.owners;
            let take = |object: Value| owners.put(kind, &object);
            let told = self.cluster.each(&resource, self.scope, Part::Metadata, take).await;
            self.note(told);
        }
        let (cluster, scope) = (self.cluster, self.scope);
        let take = |pod: Value| self.see_pod(pod);
        let told = cluster.each(&ApiResource::erase::<Pod>(&()), scope, Part::Whole, take).await;
        self.note(told);
        self.are_pods_told = self.survey.failed.len() == before;
    }

    fn see_pod(&mut self, pod: Value) {
        let Some(mut running) = RunningPod::read(&pod) else { return };
        let pod = typed(pod, "v1", "Pod");
        let Owned { subject, listed } = self.owners.of(&pod);
        // By the owner references that were read, not by names.
        running.workload = counted(&subject);
        let is_injected = running.agents.iter().flatten().next().is_some();
        let is_first = !self.tally.contains_key(&subject);
        self.tally.entry(subject.clone()).or_default().add(&running);
        self.census.put(running);
        match listed {
            Listed::Always => {}
            Listed::Never => self.survey.workloads.extend(at(self.known, pod, subject)),
            Listed::ByOwner(api_version, kind) => {
                self.others.kinds.insert((api_version, kind));
                if is_first {
                    self.others.keep(self.known, pod, subject, is_injected);
                }
            }
        }
    }

    /// Reads all workloads with pod templates.
    async fn list_workloads(&mut self) {
        for resource in [
            ApiResource::erase::<Deployment>(&()),
            ApiResource::erase::<StatefulSet>(&()),
            ApiResource::erase::<DaemonSet>(&()),
            ApiResource::erase::<CronJob>(&()),
        ] {
            let (cluster, scope) = (self.cluster, self.scope);
            let take = |object: Value| self.see(typed(object, &resource.api_version, &resource.kind));
            let told = cluster.each(&resource, scope, Part::Whole, take).await;
            self.note(told);
        }
        self.list_others().await;
        // ReplicaSets and Jobs with pods but without a controller: few, so each is read on its own.
        let mut left: Vec<Subject> = self.tally.keys().cloned().collect();
        left.retain(|subject| ["ReplicaSet", "Job"].contains(&&*subject.kind));
        for subject in left {
            let (kind, resource) = match &*subject.kind {
                "Job" => (OwnerKind::Job, ApiResource::erase::<Job>(&())),
                _ => (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
            };
            match self.cluster.get_value(&resource, Some(&subject.namespace), &subject.name).await {
                Ok(Some(object)) => {
                    self.known.book.put(kind, &object);
                    self.see(typed(object, &resource.api_version, &resource.kind));
                }
                Ok(None) => {}
                Err(failed) => self.note(Err(failed)),
            }
        }
        let mut report = fleet::count(&self.census, self.known, None).0.report;
        report.withhold(&self.outside);
        let rows = report.workloads.into_iter();
        let mut rows: HashMap<_, _> =
            rows.map(|row| (row.workload, (row.failures, row.not_advised))).collect();
        for surveyed in &mut self.survey.workloads {
            (surveyed.failures, surveyed.not_advised) =
                rows.remove(&counted(&surveyed.subject)).unwrap_or_default();
            surveyed.pods = self.tally.remove(&surveyed.subject).unwrap_or_default();
            surveyed.pods.is_unknown = !self.are_pods_told;
            let by_namespace = self.known.collectors.contains(&surveyed.subject.namespace);
            surveyed.collector = surveyed.collector.or(Some(by_namespace));
        }
    }

    /// Lists workloads of the kinds that other controllers bring. Where a kind cannot be listed, the ReplicaSet or a
    /// pod shows the template; that is no error.
    async fn list_others(&mut self) {
        let mut kinds = std::mem::take(&mut self.others.kinds);
        kinds.insert((rollouts().api_version, rollouts().kind));
        let mut resources: Vec<ApiResource> = Vec::new();
        for (api_version, kind) in kinds {
            let found = self.cluster.resource(&api_version, &kind).await;
            let is_new = |found: &ApiResource| {
                resources.iter().all(|known| (&known.group, &known.kind) != (&found.group, &found.kind))
            };
            resources.extend(found.filter(is_new));
        }
        for resource in resources {
            let (cluster, scope) = (self.cluster, self.scope);
            let take = |object: Value| self.see(typed(object, &resource.api_version, &resource.kind));
            // Pods of those that cannot be listed have their stand-ins.
            let _ = cluster.each(&resource, scope, Part::Whole, take).await;
        }
        for subject in self.survey.workloads.iter().map(|one| &one.subject) {
            self.others.forget(subject);
        }
        for (subject, stand_in) in self.others.take() {
            let surveyed = match stand_in {
                StandIn::Pod(surveyed) => Some(*surveyed),
                StandIn::ReplicaSet(name) => self.template_of(subject, &name).await,
            };
            self.survey.workloads.extend(surveyed);
        }
    }

    /// Returns the row of a workload by the template of one of its ReplicaSets.
    async fn template_of(&mut self, subject: Subject, replica_set: &str) -> Option<Surveyed> {
        let kind = ApiResource::erase::<ReplicaSet>(&());
        match self.cluster.get_value(&kind, Some(&subject.namespace), replica_set).await {
            Ok(object) => {
                let object = object?;
                self.known.book.put(OwnerKind::ReplicaSet, &object);
                let mut surveyed = at(self.known, typed(object, &kind.api_version, &kind.kind), subject)?;
                surveyed.mistakes.retain(|mistake| mistake.fault != Fault::OnWorkload);
                Some(surveyed)
            }
            Err(failed) => {
                self.note(Err(failed));
                None
            }
        }
    }

    fn see(&mut self, object: Value) {
        let text = |field: &str| text(&object["metadata"][field]);
        let kind = object["kind"].as_str().unwrap_or_default();
        let subject = Subject::new(kind, &text("namespace"), &text("name"));
        if fleet::forbids(&object) {
            self.outside.never.insert(counted(&subject));
        }
        self.survey.workloads.extend(at(self.known, object, subject));
    }

    fn note(&mut self, told: Asked<()>) {
        self.survey.failed.extend(told.err());
    }
}

/// Returns the workload under which its pods are counted.
fn counted(subject: &Subject) -> workload::Workload {
    workload::Workload::new(&subject.kind, &subject.namespace, &subject.name)
}

/// Records the languages that namespaces opt in to, and unusable Instrumentations.
fn note(survey: &mut Survey, known: &Known, scope: Option<&str>) {
    let mut namespaces: Vec<_> = known.snapshot.catalogue.namespaces.iter().collect();
    namespaces.retain(|(name, _)| scope.is_none_or(|scope| scope == &***name));
    namespaces.sort_by_key(|(name, _)| *name);
    for (name, namespace) in namespaces {
        let findings = at_namespace(known, name);
        if !findings.is_empty() {
            survey.asking.push((name.to_string(), findings));
        }
        for stored in &namespace.instrumentations {
            if let Stored::Invalid { name, problem, .. } = stored {
                let subject = Subject::new("Instrumentation", &name.namespace, &name.name);
                let advice = if **problem == *known.settings.size_limits.exceeded() {
                    format!(
                        "remove or shorten some; the largest of the namespace: {}",
                        known.largest(&name.namespace)
                    )
                } else {
                    "fix it; otel-webhook validate lists all errors".to_owned()
                };
                survey.unusable.push(Unusable { subject, problem: problem.to_string(), advice });
            }
        }
    }
}

/// The result of a survey.
#[derive(Debug, Default)]
pub struct Survey {
    /// What pauses injection.
    pub paused: Vec<Pause>,
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, Labels>,
    /// The findings for namespaces that opt in.
    pub asking: Vec<(String, Vec<Finding>)>,
    /// Annotations and labels of namespaces that have no effect.
    pub mistakes: Vec<(Subject, Mistake)>,
    /// Instrumentations that cannot be used.
    pub unusable: Vec<Unusable>,
    /// Namespaces that opt in to the operator's collector sidecar.
    pub collectors: BTreeSet<String>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<Surveyed>,
    /// What the user may not read, of what the results depend on.
    pub unread: Unread,
    /// Whether the user may not read the webhook configurations.
    pub is_registration_unread: bool,
    /// The requests that failed.
    pub failed: Vec<FailedRequest>,
}

/// An Instrumentation that cannot be used.
#[derive(Debug)]
pub struct Unusable {
    /// The Instrumentation.
    pub subject: Subject,
    /// Why.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

/// One workload.
#[derive(Debug)]
pub struct Surveyed {
    /// The workload.
    pub subject: Subject,
    /// Labels of its pods.
    pub labels: Labels,
    /// The languages that its template opts in to, regardless of the namespace.
    pub own: Vec<&'static str>,
    /// Whether it opts in to the operator's collector sidecar; none if the namespace decides.
    pub collector: Option<bool>,
    /// The result for a new pod.
    pub next: Next,
    /// The languages with an unknown result, since the user may not read what it depends on.
    pub unsure: Vec<Unsure>,
    /// The agents of a new pod.
    pub agents: Vec<Agent>,
    /// The Secrets and `ConfigMap`s that injection makes a new pod refer to.
    pub referenced: Vec<Referenced>,
    /// How its pods are replaced.
    pub replaced: Replaced,
    /// Its pods.
    pub pods: Pods,
    /// What fails in its pods.
    pub failures: Vec<FailureRow>,
    /// Why no restart is advised, if its pods are outdated.
    pub not_advised: Option<NotAdvised>,
    /// Its annotations and labels that have no effect.
    pub mistakes: Vec<Mistake>,
    /// How a new pod mounts agents as image volumes; `None` if it mounts none.
    pub mounting: Option<Mounting>,
}

/// A pod that mounts agents as image volumes.
#[derive(Debug)]
pub struct Mounting {
    /// Whether one of them is a folder of its image.
    pub by_subpath: bool,
    /// A pod, as JSON, with what decides on which nodes this one may run.
    pub pod: String,
}

impl Mounting {
    fn of(findings: &[Finding], pod: &Value) -> Option<Self> {
        let by_subpath = |finding: &Finding| {
            let row = LANGUAGES.iter().find(|row| row.name == finding.language);
            row.is_none_or(|row| row.image_volume == ImageVolume::Folder)
        };
        let mounted = findings.iter().filter(|one| one.notes.contains(&Note::ImageVolume));
        let by_subpath = mounted.map(by_subpath).max()?;
        let spec = ["nodeName", "nodeSelector", "affinity"].map(|field| (field, pod["spec"][field].clone()));
        Some(Self { by_subpath, pod: json!({"spec": BTreeMap::from(spec)}).to_string() })
    }
}

impl Surveyed {
    /// Returns the findings about a new pod.
    pub fn decided(&self) -> &[Finding] {
        match &self.next {
            Next::Decided(findings) => findings,
            Next::Unreadable(_) | Next::Unknown => &[],
        }
    }
}

impl Survey {
    /// Returns how new pods of the workloads mount agents as image volumes.
    pub fn mounting(&self) -> Vec<&Mounting> {
        self.workloads.iter().filter_map(|workload| workload.mounting.as_ref()).collect()
    }
}

/// The result for a new pod.
#[derive(Debug)]
pub enum Next {
    /// The findings.
    Decided(Vec<Finding>),
    /// The pod cannot be read.
    Unreadable(String),
    /// Its template is not known: another controller creates the pods.
    Unknown,
}

/// The running pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// The number of pods.
    pub count: usize,
    /// Whether they could not be counted, since the user may not read them or their owners.
    pub is_unknown: bool,
    /// The number of pods with an agent.
    pub agents: BTreeMap<Agent, usize>,
    /// The number of pods that were reviewed and skipped for a language, by the code of the reason.
    pub skipped: BTreeMap<(String, String), usize>,
}

/// How the pods of a workload are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replaced {
    /// By a restart.
    #[default]
    ByRestart,
    /// By a restart, once it is resumed.
    Paused,
    /// By its controller, after someone deletes them.
    OnDelete,
}

impl Pods {
    /// Returns the agents of a language, with the number of pods.
    pub fn agents_of(&self, language: &str) -> impl Iterator<Item = (&Agent, usize)> {
        let own = self.agents.iter().filter(move |(agent, _)| agent.language == language);
        own.map(|(agent, count)| (agent, *count))
    }

    /// Returns the number of pods with a language, by the webhook that injected it.
    pub fn by(&self, language: &str) -> BTreeMap<By, usize> {
        let mut all = BTreeMap::new();
        for (agent, count) in self.agents_of(language) {
            *all.entry(agent.by).or_default() += count;
        }
        all
    }

    /// Returns the number of pods with a language, from any webhook.
    pub fn with(&self, language: &str) -> usize {
        self.agents_of(language).map(|(_, count)| count).sum()
    }

    /// Counts a pod.
    pub fn add(&mut self, pod: &RunningPod) {
        self.count += 1;
        for agent in pod.agents.iter().flatten() {
            *self.agents.entry(agent.clone()).or_default() += 1;
        }
        let mut languages = BTreeSet::new();
        for (language, code) in &pod.skipped {
            if languages.insert(language) {
                *self.skipped.entry((language.clone(), code.clone())).or_default() += 1;
            }
        }
    }
}

impl Survey {
    /// Returns whether the cluster has no namespace that could be read.
    pub fn is_of_nowhere(&self) -> bool {
        self.namespaces.is_empty() && self.failed.is_empty()
    }
}

/// Returns the row of a workload.
fn at(known: &Known, mut object: Value, subject: Subject) -> Option<Surveyed> {
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let mut mistakes = mistakes::of(&object, &api_version, &kind);
    let replaced = replaced(&object);
    let workload = Workload::of(&mut object, &api_version, &kind)?;
    let (mut unsure, mut agents, mut references) = (Vec::new(), Vec::new(), Vec::new());
    let mut mounting = None;
    let next = match known.decide(&workload, &subject.namespace) {
        Ok(decided) => {
            let near = known.one_label_away(&workload, &subject.namespace, &decided);
            mistakes.extend(near.into_iter().filter_map(Near::meant));
            unsure = decided.unsure;
            let outcome = decided.outcome;
            let mut next = workload.pod.clone();
            // The operations are made for this pod. Without them, the images stay unknown.
            let _ = json_patch::patch(&mut next, &outcome.patch.operations());
            agents = injected::next_agents(&next, &outcome.findings);
            references = referenced(workload.pod, &next);
            mounting = Mounting::of(&outcome.findings, workload.pod);
            Next::Decided(outcome.findings)
        }
        Err(problem) => Next::Unreadable(problem),
    };
    let annotations = &workload.pod["metadata"]["annotations"];
    let collector = annotations[COLLECTOR].as_str().map(|value| value != "false");
    Some(Surveyed {
        own: own_languages(workload.pod),
        collector: collector.or_else(|| injected::has_collector(workload.pod).then_some(true)),
        labels: labels(workload.pod),
        subject,
        next,
        unsure,
        agents,
        referenced: references,
        replaced,
        pods: Pods::default(),
        failures: Vec::new(),
        not_advised: None,
        mistakes,
        mounting,
    })
}

/// Returns how the pods of a workload are replaced.
fn replaced(object: &Value) -> Replaced {
    let spec = &object["spec"];
    if spec["paused"] == true {
        Replaced::Paused
    } else if spec["updateStrategy"]["type"] == "OnDelete" {
        Replaced::OnDelete
    } else {
        Replaced::ByRestart
    }
}

/// Returns the findings for a pod without annotations and labels, if the namespace or a selector opts in.
fn at_namespace(known: &Known, name: &str) -> Vec<Finding> {
    let mut pod = json!({"metadata": {}, "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
    known.decide(&workload, name).map(|decided| decided.outcome.findings).unwrap_or_default()
}

/// Workloads of kinds that only the owner references of their pods name: the kinds, and what shows the templates of the
/// workloads if they cannot be listed.
#[derive(Default)]
struct Others {
    /// Version and kind.
    kinds: BTreeSet<(String, String)>,
    stand_ins: HashMap<Subject, StandIn>,
}

/// Something that shows the template of a workload.
enum StandIn {
    /// A pod.
    Pod(Box<Surveyed>),
    /// A ReplicaSet with this name.
    ReplicaSet(String),
}

impl Others {
    /// Keeps what the first pod of a workload shows.
    fn keep(&mut self, known: &Known, pod: Value, subject: Subject, is_injected: bool) {
        let stand_in = match owners::replica_set(&pod) {
            Some(name) => Some(StandIn::ReplicaSet(name)),
            None => {
                by_pod(known, pod, &subject, is_injected).map(|surveyed| StandIn::Pod(Box::new(surveyed)))
            }
        };
        self.stand_ins.extend(stand_in.map(|stand_in| (subject, stand_in)));
    }

    /// Drops the stand-in of a workload that was listed.
    fn forget(&mut self, subject: &Subject) {
        self.stand_ins.remove(subject);
    }

    /// Takes the stand-ins of the workloads that were not listed.
    fn take(&mut self) -> HashMap<Subject, StandIn> {
        std::mem::take(&mut self.stand_ins)
    }
}

/// Pods of another controller show its template as long as they are not injected.
fn by_pod(known: &Known, pod: Value, subject: &Subject, hides_template: bool) -> Option<Surveyed> {
    let mut surveyed = at(known, pod, subject.clone())?;
    if hides_template {
        surveyed.next = Next::Unknown;
        surveyed.unsure.clear();
    }
    Some(surveyed)
}

#[cfg(test)]
pub mod tests;
