//! The report of `explain` about workloads of a cluster.

use serde_json::{Value, json};

use super::line::{self, Line, not_opted_in, table};
use otel_webhook_fleet::{
    advice::NotAdvised,
    failing::Run,
    injected::{Agent, By},
    pod::RunningPod,
    report::FailureRow,
    silent::Likely,
    state::State,
};
use otel_webhook_inject::mistakes::Mistake;
use otel_webhook_review::one_line;
use otel_webhook_server::subject::Subject;
use otel_webhook_store::unread::Missing;

/// How many pods of a group are named.
const NAMED: usize = 3;

/// The report: one entry for each workload.
#[derive(Default)]
pub struct Answer {
    /// The workloads.
    pub workloads: Vec<Explained>,
    /// What all results depend on, and is not known or not working.
    pub caveats: Vec<String>,
    /// The enabled languages.
    pub languages: String,
}

impl Answer {
    /// Adds the workloads of another namespace of the same cluster.
    pub fn add(&mut self, other: Self) {
        self.workloads.extend(other.workloads);
        for caveat in other.caveats {
            if !self.caveats.contains(&caveat) {
                self.caveats.push(caveat);
            }
        }
        self.languages = other.languages;
    }

    /// Returns whether new pods of a workload are not injected as they opt in, or whether this is not known.
    pub fn is_trouble(&self) -> bool {
        self.workloads.iter().any(|workload| {
            workload.problem.is_some()
                || workload.unread.is_some()
                || workload.mistakes.iter().any(Mistake::is_of_opt_in)
                || workload.lines.iter().any(Line::is_trouble)
        })
    }
}

/// The result for one workload.
pub struct Explained {
    /// The workload.
    pub subject: Subject,
    /// The controller of a pod, if its template is not known.
    pub creator: Option<String>,
    /// Annotations and labels that have no effect.
    pub mistakes: Vec<Mistake>,
    /// The results for a new pod.
    pub lines: Vec<Line>,
    /// Why there are none.
    pub problem: Option<String>,
    /// What could opt in the pod, and is not readable.
    pub unread: Option<Missing>,
    /// Whether API servers send the pod to a webhook that injects; none if this is not known.
    pub is_reviewed: Option<bool>,
    /// The languages that are injected into a new pod.
    pub injected: Vec<&'static str>,
    /// The containers and image volumes that are added to a new pod.
    pub added: Vec<Added>,
    /// The running pods; none if they are not readable.
    pub pods: Option<Vec<PodRow>>,
    /// What keeps running pods from starting or staying.
    pub failing: Vec<Failing>,
    /// Why no data of its pods arrives, as far as the controller says that it does not.
    pub silent: Vec<Silence>,
    /// Why no restart is advised, if running pods are outdated.
    pub not_advised: Option<NotAdvised>,
    /// How to inject into the running pods.
    pub remedy: Option<String>,
}

/// A running pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// Its name.
    pub name: String,
    /// Its agents, with their states.
    pub agents: Vec<(Agent, State)>,
    /// The languages that were skipped when it was created, with the code of the reason.
    pub skipped: Vec<(String, String)>,
    /// What was wrong when it was created.
    pub message: Option<String>,
}

impl PodRow {
    /// Returns the row of a pod; `states` are those of its languages.
    pub fn of(pod: &RunningPod, states: &[(&'static str, State)]) -> Self {
        let state = |agent: &Agent| states.iter().find(|(language, _)| *language == agent.language);
        let agents = pod
            .agents
            .iter()
            .flatten()
            .map(|agent| (agent.clone(), state(agent).map_or(State::Unconfirmed, |(_, state)| *state)));
        Self {
            name: pod.name.clone(),
            agents: agents.collect(),
            skipped: pod.skipped.clone(),
            message: pod.message.clone(),
        }
    }

    /// Returns whether it lacks one of these languages, or has it with another configuration than new pods get.
    pub fn is_outdated(&self, languages: &[&str]) -> bool {
        let lacks = |language: &&str| self.agents.iter().all(|(agent, _)| agent.language != *language);
        languages.iter().any(lacks) || self.agents.iter().any(|(_, state)| *state == State::Stale)
    }
}

/// A container that cannot start or stay, in one or more of the running pods.
pub struct Failing {
    /// Why, and what to do.
    pub row: FailureRow,
    /// Which run of the container in the youngest pod has ended; none if it has no log.
    pub run: Option<Run>,
    /// The last lines that it logged, or why they are not known; none if it has not run.
    pub log: Option<Result<String, String>>,
}

impl Failing {
    fn text(&self) -> Vec<String> {
        let FailureRow { container, code, message, remedy, kubelet, pods, pod, is_counted, .. } = &self.row;
        let of = if *is_counted { "failing" } else { "failing, not known to be because of the agent" };
        let said = if kubelet.is_empty() { String::new() } else { format!(" ({kubelet})") };
        let mut lines = vec![
            format!("  {of}: {pods} ({pod}): {code} of container {container}: {message}{said}"),
            format!("    {remedy}"),
        ];
        match &self.log {
            None => {}
            Some(Ok(log)) if log.trim().is_empty() => lines.push("    its log is empty".to_owned()),
            Some(Ok(log)) => {
                lines.push("    the end of its log:".to_owned());
                lines.extend(log.lines().map(|line| format!("      {line}")));
            }
            Some(Err(why)) => lines.push(format!("    its log: {why}")),
        }
        lines
    }

    fn object(&self) -> Value {
        let mut object = json!(self.row);
        object["log"] = json!(self.log.as_ref().and_then(|log| log.as_ref().ok()));
        object["logProblem"] = json!(self.log.as_ref().and_then(|log| log.as_ref().err()));
        object
    }
}

/// A language of which no data arrives.
pub struct Silence {
    /// The language.
    pub language: &'static str,
    /// The number of pods.
    pub pods: u64,
    /// One of the pods.
    pub pod: String,
    /// Why, the most likely cause first.
    pub causes: Vec<Likely>,
    /// What the agent logged last in the pod, or why that is not known.
    pub log: Result<String, String>,
}

impl Silence {
    fn text(&self) -> Vec<String> {
        let Self { language, pods, pod, causes, log } = self;
        let mut lines =
            vec![format!("  silent: no data of {language} arrives of {pods} pods; as for {pod}:")];
        for Likely { cause, .. } in causes {
            lines.push(format!("    {}: {cause}", cause.code()));
            lines.extend(cause.remedy().map(|remedy| format!("      {remedy}")));
        }
        match log {
            Ok(log) if log.is_empty() => lines.push("    its log has no lines of the agent".to_owned()),
            Ok(log) => {
                lines.push("    log lines of the agent:".to_owned());
                lines.extend(log.lines().map(|line| format!("      {line}")));
            }
            Err(why) => lines.push(format!("    its log: {why}")),
        }
        lines
    }

    fn object(&self) -> Value {
        let Self { language, pods, pod, causes, log } = self;
        json!({
            "language": language, "pods": pods, "pod": pod, "causes": causes,
            "log": log.as_ref().ok(), "logProblem": log.as_ref().err(),
        })
    }
}

/// What is added with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An init container.
    Init,
    /// A container.
    Regular,
    /// A volume.
    Volume,
}

/// An added container, or a volume of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its image.
    pub image: String,
}

impl Explained {
    /// Returns the empty result for a workload.
    pub fn new(subject: Subject) -> Self {
        Self {
            subject,
            creator: None,
            lines: Vec::new(),
            mistakes: Vec::new(),
            problem: None,
            unread: None,
            is_reviewed: None,
            injected: Vec::new(),
            added: Vec::new(),
            pods: None,
            failing: Vec::new(),
            silent: Vec::new(),
            not_advised: None,
            remedy: None,
        }
    }

    fn text(&self, languages: &str) -> Vec<String> {
        let Subject { kind, namespace, name } = &self.subject;
        let mut lines = vec![format!("{kind}/{name} in namespace {namespace}")];
        lines.extend(self.creator.as_ref().map(|creator| {
            format!(
                "  created by {creator}; its template is not read, so this is about a pod such as this one"
            )
        }));
        match (&self.problem, &self.unread) {
            (Some(problem), _) => lines.push(format!("  {problem}")),
            (None, Some(missing)) if self.lines.is_empty() => {
                lines.push(format!("  whether a new pod opts in is unknown, since {missing}"));
            }
            (None, _) if self.lines.is_empty() => lines.push(not_opted_in(languages)),
            (None, _) => lines.extend(table(&self.lines)),
        }
        lines.extend(self.mistakes.iter().map(line::mistake));
        for Added { kind, name, image } in &self.added {
            let what = match kind {
                Kind::Init => "init container",
                Kind::Regular => "container",
                Kind::Volume => "volume",
            };
            lines.push(format!("  adds {what} {name}, image {image}"));
        }
        match &self.pods {
            None => lines.push("  running pods: not readable by you".to_owned()),
            Some(pods) if pods.is_empty() => lines.push("  running pods: none".to_owned()),
            Some(pods) => {
                lines.push(format!("  running pods: {}", pods.len()));
                lines.extend(groups(pods, &self.added));
            }
        }
        lines.extend(self.failing.iter().flat_map(Failing::text));
        lines.extend(self.silent.iter().flat_map(Silence::text));
        lines
            .extend(self.not_advised.as_ref().map(|not| format!("  do not restart it now: {}", not.message)));
        lines.extend(self.remedy.as_ref().map(|remedy| format!("  to inject as into new pods: {remedy}")));
        lines
    }

    fn object(&self, caveats: &[String]) -> Value {
        let added = self.added.iter().map(|Added { kind, name, image }| match kind {
            Kind::Volume => json!({"volume": name, "image": image}),
            _ => json!({"container": name, "init": *kind == Kind::Init, "image": image}),
        });
        let pods = self.pods.as_ref().map(|pods| pods.iter().map(pod_object).collect::<Vec<_>>());
        let mut object = json!({
            "kind": self.subject.kind,
            "namespace": self.subject.namespace,
            "name": self.subject.name,
            "findings": self.lines.iter().map(Line::object).collect::<Vec<_>>(),
            "mistakes": self.mistakes.iter().map(line::mistake_object).collect::<Vec<_>>(),
            "reviewed": self.is_reviewed,
            "added": added.collect::<Vec<_>>(),
            "pods": pods,
            "failing": self.failing.iter().map(Failing::object).collect::<Vec<_>>(),
            "silent": self.silent.iter().map(Silence::object).collect::<Vec<_>>(),
            "notAdvised": self.not_advised,
            "remedy": self.remedy,
            "caveats": caveats.iter().cloned().chain(self.unread.iter().map(ToString::to_string)).collect::<Vec<_>>(),
        });
        if let Some(problem) = &self.problem {
            object["problem"] = json!(problem);
        }
        object
    }
}

impl Answer {
    /// Returns the report as text.
    pub fn text(&self) -> String {
        let caveats = self.caveats.iter().map(|caveat| format!("warning: {caveat}"));
        let head: Vec<String> = caveats.collect();
        let parts = self.workloads.iter().map(|workload| workload.text(&self.languages));
        let parts = std::iter::once(head).filter(|head| !head.is_empty()).chain(parts);
        let written = |lines: Vec<String>| -> String {
            lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
        };
        parts.map(written).collect::<Vec<_>>().join("\n")
    }

    /// Returns the report as JSON, with one object per workload.
    pub fn objects(&self) -> impl Iterator<Item = Value> + '_ {
        self.workloads.iter().map(|workload| workload.object(&self.caveats))
    }
}

/// Returns a line for pods with the same state, in the order of the first of each.
fn groups(pods: &[PodRow], added: &[Added]) -> Vec<String> {
    let mut groups: Vec<(&PodRow, Vec<&str>)> = Vec::new();
    for pod in pods {
        let is_like = |one: &PodRow| PodRow { name: pod.name.clone(), ..one.clone() } == *pod;
        match groups.iter_mut().find(|(first, _)| is_like(first)) {
            Some((_, names)) => names.push(&pod.name),
            None => groups.push((pod, vec![&pod.name])),
        }
    }
    let line = |(first, names): (&PodRow, Vec<&str>)| {
        let more = if names.len() > NAMED { ", …" } else { "" };
        let shown = names[..names.len().min(NAMED)].join(", ");
        format!("    {} ({shown}{more}): {}", names.len(), state(first, added))
    };
    groups.into_iter().map(line).collect()
}

fn state(pod: &PodRow, added: &[Added]) -> String {
    let mut said: Vec<String> = pod.agents.iter().map(|(one, state)| agent(one, *state, added)).collect();
    if said.is_empty() {
        said.push("not injected".to_owned());
    }
    let skipped = pod.skipped.iter();
    said.extend(skipped.map(|(language, code)| format!("{language} was skipped ({code})")));
    // It was true then; what is true now is in the table.
    said.extend(pod.message.as_ref().map(|message| format!("when it was created: {message}")));
    said.join("; ")
}

fn agent(agent: &Agent, state: State, added: &[Added]) -> String {
    let by = match (agent.by, &agent.instrumentation) {
        (By::Webhook, Some(name)) => format!(" by {name}"),
        (By::Webhook, None) => String::new(),
        (By::Operator, _) => " by the operator, or by the webhook without its status annotation".to_owned(),
    };
    let age = if state == State::Stale { ", with an earlier configuration" } else { "" };
    // A new pod's image is above.
    let other = agent.image.as_deref().filter(|image| added.iter().all(|added| added.image != *image));
    let image = other.map(|image| format!(", image {image}")).unwrap_or_default();
    format!("{} injected{by}{age}{image}", agent.language)
}

fn pod_object(pod: &PodRow) -> Value {
    let injected = pod.agents.iter().map(|(agent, state)| {
        let configuration = match state {
            State::Injected => "current",
            State::Stale => "earlier",
            _ => "unknown",
        };
        json!({
            "language": agent.language,
            "by": agent.by.word(),
            "instrumentation": agent.instrumentation,
            "image": agent.image,
            "configuration": configuration,
        })
    });
    let skipped = pod.skipped.iter();
    let skipped = skipped.map(|(language, code)| json!({"language": language, "outcome": code}));
    json!({
        "name": pod.name,
        "injected": injected.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "message": pod.message,
    })
}

#[cfg(test)]
mod tests;
