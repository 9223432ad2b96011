//! `explain deployment/order`: what a new pod of a workload in a cluster would get, and what its pods have now.

use std::collections::BTreeSet;

use k8s_openapi::api::{apps::v1::ReplicaSet, batch::v1::Job, core::v1::Pod};
use kube::core::ApiResource;
use serde_json::Value;

use super::{
    line::Line,
    report::{Added, Answer, Explained, Failing, Kind, PodRow, Silence},
    target::{self, Target},
};
use crate::{
    cluster::{
        arrival::{self, Data},
        facts::{Facts, caveats, not_readable},
        flags::InstalledFlags,
        fleet,
        known::Known,
        object::{labels, own_languages, text},
        owners::{Owners, controller},
        reader::{Asked, ClusterReader, Part},
    },
    output::Failure,
    workload,
};
use otel_webhook_fleet::{
    census::Census, failing::Run, pod::RunningPod, report::FailureRow, silent::container,
    workload as fleet_workload,
};
use otel_webhook_inject::{Finding, mistakes, template::Workload, text::Text, workload::OwnerKind};
use otel_webhook_server::{
    registration::{Labels, Registration},
    subject::Subject,
};

/// Of how many containers of a workload the logs are read, and of how many silent languages the causes.
const LOGS: usize = 3;

/// Kinds of workloads with short-lived pods.
const SHORT_LIVED: [&str; 2] = ["Job", "CronJob"];

/// The question: which workloads, and with which flags.
pub struct Question<'q> {
    /// The namespace.
    pub namespace: String,
    /// The workloads.
    pub targets: &'q [Target],
    /// The label selector.
    pub labels: Option<&'q str>,
    /// The flags that are used in place of those of the installation.
    pub installed: &'q InstalledFlags,
}

/// Everything that the results depend on.
struct ClusterState<'f> {
    facts: &'f Facts,
    known: Known,
    /// Each running pod with its controllers; none if the user may not list them.
    running: Option<Vec<(Vec<Subject>, RunningPod)>>,
}

/// Answers a question about an installation. Returns what the results depend on, too.
///
/// # Errors
/// If a workload does not exist, or the user may not read it.
pub async fn answer(
    cluster: &ClusterReader,
    facts: &Facts,
    question: &Question<'_>,
) -> Result<(Answer, Known), Failure> {
    let namespace = &*question.namespace;
    let mut known = Known::list(cluster, Some(namespace), facts.flags(question.installed)).await;
    if known.namespaces.is_empty() && !known.unread.namespaces {
        return Err(Failure::unreadable(format!("namespace \"{namespace}\" not found")));
    }
    let found = target::find(cluster, namespace, question.targets, question.labels).await?;
    for object in &found.objects {
        match &*text(&object["kind"]) {
            "ReplicaSet" => known.book.put(OwnerKind::ReplicaSet, object),
            "Job" => known.book.put(OwnerKind::Job, object),
            _ => {}
        }
    }
    learn(cluster, &mut known, namespace, &found.objects).await;
    let mut caveats = caveats(facts, &known, question.installed.own_flags);
    caveats.extend(found.failed.iter().map(not_readable));
    let running = running_pods(cluster, namespace).await;
    caveats.extend(running.as_ref().err().map(not_readable));
    let languages = known.settings.languages.names();
    let state = ClusterState { facts, known, running: running.ok() };
    let mut workloads: Vec<_> =
        found.objects.into_iter().map(|object| state.explain(namespace, object)).collect();
    for failing in workloads.iter_mut().flat_map(|workload| workload.failing.iter_mut().take(LOGS)) {
        let Some(run) = failing.run else { continue };
        let FailureRow { pod, container, .. } = &failing.row;
        failing.log = Some(cluster.log(namespace, pod, container, run == Run::Previous).await);
    }
    silence(cluster, &state.known, &mut workloads).await;
    Ok((Answer { workloads, caveats, languages }, state.known))
}

/// Adds why no data of workloads arrives, as far as the controller says so.
async fn silence(cluster: &ClusterReader, known: &Known, workloads: &mut [Explained]) {
    let mut found = 0;
    for workload in workloads {
        let languages: BTreeSet<_> = workload
            .pods
            .iter()
            .flatten()
            .flat_map(|pod| &pod.agents)
            .map(|(agent, _)| agent.language)
            .collect();
        for language in languages {
            let Data::Silent(silent) = workload.data(known, language) else { continue };
            // Of many workloads, each has the same cause.
            if found == LOGS {
                return;
            }
            found += 1;
            if let Some(one) = Silence::read(cluster, known, workload, language, silent).await {
                workload.silent.push(one);
            }
        }
    }
}

impl Silence {
    async fn read(
        cluster: &ClusterReader,
        known: &Known,
        workload: &Explained,
        language: &'static str,
        silent: u64,
    ) -> Option<Self> {
        let subject = &workload.subject;
        let pods = workload.pods.as_deref().unwrap_or_default();
        let row = pods.iter().find(|pod| pod.agents.iter().any(|(agent, _)| agent.language == language))?;
        let kind = ApiResource::erase::<Pod>(&());
        let pod = cluster.get_value(&kind, Some(&subject.namespace), &row.name).await.ok()??;
        let neighbours = arrival::neighbours(known, subject, pods.len(), silent);
        let arrival = arrival::read(cluster, &pod, language, neighbours).await;
        let container = container(&pod, language)?;
        let log = cluster.log_of_agent(&subject.namespace, &row.name, container).await;
        Some(Self { language, pods: silent, pod: row.name.clone(), causes: arrival.causes, log })
    }
}

/// Lists the Instrumentations of other namespaces that the workloads name, as far as the user may.
async fn learn(cluster: &ClusterReader, known: &mut Known, namespace: &str, objects: &[Value]) {
    let mut named = BTreeSet::new();
    for object in objects {
        let mut object = object.clone();
        let Some(workload) = workload_of(&mut object) else { continue };
        let unsure = known.decide(&workload, namespace).map(|decided| decided.unsure).unwrap_or_default();
        named.extend(unsure.iter().filter_map(|one| one.instrumentations_of().map(str::to_owned)));
    }
    if !named.is_empty() {
        known.learn(cluster, named).await;
    }
}

/// Reads the running pods of a namespace.
async fn running_pods(cluster: &ClusterReader, namespace: &str) -> Asked<Vec<(Vec<Subject>, RunningPod)>> {
    let mut owners = Owners::default();
    for (kind, resource) in [
        (OwnerKind::ReplicaSet, ApiResource::erase::<ReplicaSet>(&())),
        (OwnerKind::Job, ApiResource::erase::<Job>(&())),
    ] {
        cluster.each(&resource, Some(namespace), Part::Metadata, |object| owners.put(kind, &object)).await?;
    }
    let mut found = Vec::new();
    let take = |pod: Value| {
        if let Some(running) = RunningPod::read(&pod) {
            let own = Subject::new("Pod", namespace, &running.name);
            found.push(([vec![own], owners.chain(&pod)].concat(), running));
        }
    };
    cluster.each(&ApiResource::erase::<Pod>(&()), Some(namespace), Part::Whole, take).await?;
    Ok(found)
}

impl ClusterState<'_> {
    fn explain(&self, namespace: &str, mut object: Value) -> Explained {
        let subject = Subject::new(&text(&object["kind"]), namespace, &text(&object["metadata"]["name"]));
        let mut explained = Explained::new(subject.clone());
        explained.creator = controller(&object)
            .filter(|_| subject.kind == "Pod")
            .map(|(_, kind, name)| format!("{kind}/{name}"));
        if let Some(all) = &self.running {
            let own = all.iter().filter(|(owners, _)| owners.contains(&subject));
            let own: Vec<_> = own.map(|(_, pod)| pod).collect();
            let row = |pod: &&RunningPod| PodRow::of(pod, &fleet::states(pod, &self.known));
            explained.pods = Some(own.iter().map(row).collect());
            self.count(&mut explained, &own, fleet::forbids(&object));
        }
        explained.unread = self.known.unread.opt_ins(namespace);
        explained.mistakes = mistakes::of(&object, &text(&object["apiVersion"]), &subject.kind);
        let referenced = &object["spec"]["workloadRef"];
        let referenced = format!("{}/{}", text(&referenced["kind"]), text(&referenced["name"]));
        let Some(workload) = workload_of(&mut object) else {
            explained.problem = Some(match &*referenced {
                "/" => "it has no pod template".to_owned(),
                referenced => {
                    format!("its pod template is that of {referenced} (spec.workloadRef); explain that")
                }
            });
            return explained;
        };
        match self.known.decide(&workload, namespace) {
            Ok(decided) => {
                let near = self.known.one_label_away(&workload, namespace, &decided);
                explained.mistakes.extend(near.into_iter().map(|near| near.mistake));
                let fields = workload::fields(&workload);
                let findings = decided.outcome.findings.iter().map(|finding| Line::of(finding, &fields));
                explained.lines = findings.chain(decided.unsure.iter().map(Line::unknown)).collect();
                explained.injected = injected(&decided.outcome.findings);
                self.review(&mut explained, namespace, workload.pod);
                if decided.unsure.is_empty() && explained.is_reviewed != Some(false) {
                    let mut after = workload.pod.clone();
                    if json_patch::patch(&mut after, &decided.outcome.patch.operations()).is_ok() {
                        explained.added = added(workload.pod, &after);
                    }
                }
            }
            Err(problem) => explained.problem = Some(format!("the pod cannot be read: {problem}")),
        }
        explained.remedy = remedy(&explained);
        explained
    }

    /// Records what fails in pods, and why no restart is advised, as `status` counts it.
    fn count(&self, explained: &mut Explained, pods: &[&RunningPod], is_restart_forbidden: bool) {
        let mut census = Census::default();
        for pod in pods {
            census.put((*pod).clone());
        }
        let mut report = fleet::count(&census, &self.known, None).0.report;
        let mut outside = fleet::outside(self.facts, &self.known);
        if is_restart_forbidden {
            outside.never.extend(report.workloads.iter().map(|row| row.workload.clone()));
        }
        report.withhold(&outside);
        let failing = |row: FailureRow| {
            let named = pods.iter().filter(|pod| pod.name == row.pod);
            let mut failures = named.flat_map(|pod| &pod.status.failures);
            let failure = failures.find(|failure| *failure.container == *row.container);
            // One that was never created has no log.
            let run = failure.filter(|failure| failure.kind.is_end()).and_then(|failure| failure.ended);
            Failing { row, run, log: None }
        };
        for row in report.workloads {
            explained.not_advised = explained.not_advised.take().or(row.not_advised);
            explained.failing.extend(row.failures.into_iter().map(failing));
        }
    }

    /// Records whether API servers send the pod to the webhook.
    fn review(&self, explained: &mut Explained, namespace: &str, pod: &Value) {
        let of_namespace = self.known.namespaces.get(namespace);
        let Some((registration, of_namespace)) = self.facts.selecting().zip(of_namespace) else { return };
        let (of_pod, asks) = (labels(pod), !own_languages(pod).is_empty());
        let hooks = registration.reviewers(of_namespace, &of_pod, asks);
        explained.is_reviewed = Some(!hooks.is_empty());
        if hooks.is_empty() {
            let cause = not_reviewed(registration, of_namespace, &of_pod, namespace);
            explained.injected.clear();
            let lines = std::mem::take(&mut explained.lines).into_iter();
            explained.lines = lines.map(|line| line.without_review(&cause)).collect();
        }
    }
}

fn injected(findings: &[Finding]) -> Vec<&'static str> {
    let injected = findings.iter().filter(|finding| finding.reason.is_injected());
    injected.map(|finding| finding.language).collect()
}

/// Returns why no webhook configuration selects a pod, and what to do.
fn not_reviewed(
    registration: &Registration,
    of_namespace: &Labels,
    of_pod: &Labels,
    namespace: &str,
) -> String {
    let names = registration.names.join(", ");
    if registration.pods().next().is_none() {
        return "no webhook configuration sends new pods to the webhook; otel-webhook check shows why"
            .to_owned();
    }
    if registration.pods().any(|hook| hook.selects(of_namespace, of_pod, true)) {
        return format!(
            "{names} selects only pods that are annotated or labelled themselves (registration.pods.shape=annotated); \
             annotate the pod template"
        );
    }
    if registration.pods().any(|hook| hook.selects_namespace(of_namespace)) {
        return format!(
            "the objectSelector of {names} does not select the labels of the pod; change one of them"
        );
    }
    format!("the namespaceSelector of {names} does not select namespace {namespace}; change one of them")
}

/// Reads a pod or a workload with a pod template.
fn workload_of(object: &mut Value) -> Option<Workload<'_>> {
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    if kind != "Rollout" {
        return Workload::of(object, &api_version, &kind);
    }
    let mut workload = Workload::of(object, "apps/v1", "Deployment")?;
    if let Some(owner) = workload.template.as_mut().and_then(|template| template.owner.as_mut()) {
        (owner.api_version, owner.kind) = (Text(api_version.into()), Text(kind.into()));
    }
    Some(workload)
}

/// Returns the containers and image volumes that a patch adds.
fn added(before: &Value, after: &Value) -> Vec<Added> {
    let lists = [("initContainers", Kind::Init), ("containers", Kind::Regular), ("volumes", Kind::Volume)];
    let all = |pod: &Value| {
        let of_list = |(list, kind)| {
            let items = pod["spec"][list].as_array().cloned().unwrap_or_default();
            items.into_iter().filter_map(move |item| {
                let image = if kind == Kind::Volume { &item["image"]["reference"] } else { &item["image"] };
                let is_of_image = kind != Kind::Volume || image.is_string();
                is_of_image.then(|| Added { kind, name: text(&item["name"]), image: text(image) })
            })
        };
        lists.into_iter().flat_map(of_list).collect::<Vec<_>>()
    };
    let before = all(before);
    all(after).into_iter().filter(|one| !before.contains(one)).collect()
}

/// Returns how to inject into the running pods, if a new pod gets what they lack.
fn remedy(explained: &Explained) -> Option<String> {
    let is_outdated = |pod: &PodRow| pod.is_outdated(&explained.injected);
    let is_any = explained.pods.iter().flatten().any(is_outdated);
    let is_certain = explained.is_reviewed == Some(true) && !explained.injected.is_empty();
    let is_lasting = !SHORT_LIVED.contains(&&*explained.subject.kind);
    let Subject { kind, namespace, name } = &explained.subject;
    let workload = fleet_workload::Workload::new(kind, namespace, name);
    let renew = || workload.restart_command().unwrap_or_else(|| workload.by_hand().to_owned());
    (is_any && is_certain && is_lasting && explained.not_advised.is_none()).then(renew)
}
