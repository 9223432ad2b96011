//! The steps on the way of a workload's data, each by what `explain` and the causes of missing data say.

use k8s_openapi::api::core::v1::Pod;
use kube::core::ApiResource;
use serde_json::Value;

use crate::{
    cluster::{
        arrival::{self, Arrival, Data},
        facts::not_readable,
        known::Known,
        reader::ClusterReader,
    },
    explain::{
        line::{self, Line},
        report::{Explained, PodRow},
    },
};
use otel_webhook_api::otlp::Endpoint;
use otel_webhook_fleet::silent::{Likely, Route, Step as Way, container};
use otel_webhook_inject::{
    language::{LANGUAGES, Shape, named},
    reason::DependsOn,
};
use otel_webhook_server::subject::Subject;

/// How far the data of a language of a workload comes.
pub struct Trace {
    /// The workload.
    pub subject: Subject,
    /// The language; `None` if there is none.
    pub language: Option<&'static str>,
    /// The pod that was looked at, if it came so far.
    pub pod: Option<String>,
    /// The steps, of which only the last can have failed.
    pub steps: Vec<Step>,
    /// The likely causes of missing data, the most likely first.
    pub causes: Vec<Likely>,
    /// What the agent logged, if the pod is silent.
    pub log: Option<Result<String, String>>,
    /// What could not be read.
    pub caveats: Vec<String>,
}

/// A step.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name in JSON.
    pub name: &'static str,
    /// Its name in text.
    pub title: &'static str,
    /// What is known of it.
    pub outcome: Outcome,
    /// The same as a sentence.
    pub message: String,
}

/// What is known of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be.
    Passed,
    /// It is not known.
    Unknown,
    /// The data stops here.
    Failed {
        /// The code of the reason.
        code: &'static str,
        /// What to do; `None` if the message says it.
        remedy: Option<String>,
    },
}

/// The steps: their names in JSON and in text.
const OPTED_IN: (&str, &str) = ("optedIn", "opted in");
const SELECTED: (&str, &str) = ("selected", "Instrumentation");
const REGISTERED: (&str, &str) = ("registered", "sent to the webhook");
const INJECTED: (&str, &str) = ("injected", "injected");
/// Those that causes of missing data are about.
const WAY: [(Way, &str, &str); 6] = [
    (Way::AgentFiles, "agentFiles", "files of the agent"),
    (Way::Started, "started", "started"),
    (Way::Exported, "exported", "exports by OTLP"),
    (Way::Resolved, "resolved", "endpoint"),
    (Way::Reachable, "reachable", "reachable"),
    (Way::Heard, "heard", "arrives"),
];

impl Trace {
    /// Returns whether a step has failed.
    pub fn is_failed(&self) -> bool {
        self.steps.last().is_some_and(|step| matches!(step.outcome, Outcome::Failed { .. }))
    }

    fn new(workload: &Explained, language: Option<&'static str>) -> Self {
        Self {
            subject: workload.subject.clone(),
            language,
            pod: None,
            steps: Vec::new(),
            causes: Vec::new(),
            log: None,
            caveats: Vec::new(),
        }
    }

    fn pass(&mut self, (name, title): (&'static str, &'static str), message: impl Into<String>) {
        self.steps.push(Step { name, title, outcome: Outcome::Passed, message: message.into() });
    }

    fn skip(&mut self, (name, title): (&'static str, &'static str), message: impl Into<String>) {
        self.steps.push(Step { name, title, outcome: Outcome::Unknown, message: message.into() });
    }

    fn fail(
        &mut self,
        (name, title): (&'static str, &'static str),
        code: &'static str,
        message: impl Into<String>,
        remedy: Option<String>,
    ) {
        let outcome = Outcome::Failed { code, remedy };
        self.steps.push(Step { name, title, outcome, message: message.into() });
    }
}

/// Follows each language of a workload; `enabled` are the languages of the installation.
pub async fn of(cluster: &ClusterReader, known: &Known, workload: &Explained, enabled: &str) -> Vec<Trace> {
    let has = |language: &str| workload.lines.iter().any(|line| line.language() == language);
    let languages: Vec<_> = LANGUAGES.iter().map(|row| row.name).filter(|name| has(name)).collect();
    if languages.is_empty() {
        let mut trace = Trace::new(workload, None);
        match (&workload.problem, &workload.unread) {
            (Some(problem), _) => trace.fail(OPTED_IN, "NotRead", problem, None),
            (None, Some(missing)) => trace.skip(OPTED_IN, format!("not known, since {missing}")),
            (None, None) => {
                let remedy = workload.mistakes.first().map(|one| line::mistake(one).trim().to_owned());
                trace.fail(OPTED_IN, "NotOptedIn", line::not_opted_in(enabled).trim(), remedy);
            }
        }
        return vec![trace];
    }
    let mut traces = Vec::new();
    for language in languages {
        let mut trace = Trace::new(workload, Some(language));
        if let Some(pod) = until_injected(&mut trace, workload, language) {
            trace.pod = Some(pod.name.clone());
            follow_pod(cluster, known, workload, language, &mut trace).await;
        }
        traces.push(trace);
    }
    traces
}

/// Adds the steps up to the injection. Returns the pod to look at, unless one has failed.
fn until_injected<'w>(trace: &mut Trace, workload: &'w Explained, language: &str) -> Option<&'w PodRow> {
    let mut lines = workload.lines.iter().filter(|line| line.language() == language);
    let line = lines.clone().find(|line| !line.is_trouble()).or_else(|| lines.next())?;
    // A pod that no workload controls is no template: it is injected already.
    let is_injected = line.is_injected()
        || workload.subject.kind == "Pod" && with_agent(workload, language).next().is_some();
    let at = match line.outcome() {
        _ if is_injected => None,
        "NotReviewed" => Some(REGISTERED),
        "NotReadable" => None,
        _ => Some(step_of(line)),
    };
    let is_reached = |step| {
        at.is_none_or(|at| {
            ORDER.iter().position(|one| *one == step) < ORDER.iter().position(|one| *one == at)
        })
    };
    let fail = |trace: &mut Trace, step| {
        trace.fail(step, line.outcome(), line.reason(), line.remedy().map(str::to_owned));
    };
    if line.outcome() == "NotReadable" {
        trace.skip(OPTED_IN, line.reason());
    } else if is_reached(OPTED_IN) {
        trace.pass(
            OPTED_IN,
            line.field().map_or_else(
                || "by its namespace or an Instrumentation".to_owned(),
                |field| format!("by {field}"),
            ),
        );
    } else {
        fail(trace, OPTED_IN);
        return None;
    }
    match line.instrumentation() {
        _ if !is_reached(SELECTED) => {
            fail(trace, SELECTED);
            return None;
        }
        Some(name) => trace.pass(SELECTED, name),
        None => trace.skip(SELECTED, "not known"),
    }
    match workload.is_reviewed {
        Some(true) => trace.pass(REGISTERED, "a webhook configuration selects its pods"),
        Some(false) => {
            fail(trace, REGISTERED);
            return None;
        }
        None => trace.skip(REGISTERED, "not readable by you"),
    }
    if !is_reached(INJECTED) {
        fail(trace, INJECTED);
        return None;
    }
    injected_pod(trace, workload, language)
}

/// The steps that the decision about a new pod is about.
const ORDER: [(&str, &str); 4] = [OPTED_IN, SELECTED, REGISTERED, INJECTED];

/// Returns the step that the reason of a skipped language is about.
fn step_of(line: &Line) -> (&'static str, &'static str) {
    match line.depends_on() {
        Some(DependsOn::Named | DependsOn::Selection | DependsOn::Chosen) => SELECTED,
        Some(DependsOn::Namespace | DependsOn::Flags) => OPTED_IN,
        _ => INJECTED,
    }
}

/// The running pods that have the agent.
fn with_agent<'w>(workload: &'w Explained, language: &str) -> impl Iterator<Item = &'w PodRow> {
    let has = move |pod: &&PodRow| pod.agents.iter().any(|(agent, _)| agent.language == language);
    workload.pods.iter().flatten().filter(has)
}

fn injected_pod<'w>(trace: &mut Trace, workload: &'w Explained, language: &str) -> Option<&'w PodRow> {
    let Some(pods) = &workload.pods else {
        trace.skip(INJECTED, "the running pods are not readable by you");
        return None;
    };
    let own: Vec<&PodRow> = with_agent(workload, language).collect();
    let remedy = workload.remedy.clone().or_else(|| Some(workload.not_advised.as_ref()?.message.clone()));
    if own.is_empty() {
        let (code, message) = match pods.len() {
            0 => ("NoPods", "there is no running pod".to_owned()),
            all => (
                "NotInjected",
                format!("none of its {all} running pods has the agent; a new pod would get it"),
            ),
        };
        trace.fail(INJECTED, code, message, remedy);
        return None;
    }
    trace.pass(INJECTED, format!("{} of {} running pods", own.len(), pods.len()));
    let fails = |pod: &&&PodRow| workload.failing.iter().any(|failing| failing.row.pod == pod.name);
    own.iter().find(fails).or_else(|| own.first()).copied()
}

/// Adds the steps from the start of a pod to the backend.
async fn follow_pod(
    cluster: &ClusterReader,
    known: &Known,
    workload: &Explained,
    language: &'static str,
    trace: &mut Trace,
) {
    let subject = &workload.subject;
    let name = trace.pod.clone().unwrap_or_default();
    let kind = ApiResource::erase::<Pod>(&());
    let pod = match cluster.get_value(&kind, Some(&subject.namespace), &name).await {
        Ok(Some(pod)) => pod,
        Ok(None) => return trace.fail((WAY[0].1, WAY[0].2), "NoPods", format!("pod {name} has ended"), None),
        Err(failed) => {
            trace.caveats.push(not_readable(&failed));
            return trace.skip((WAY[0].1, WAY[0].2), "the pod is not readable by you");
        }
    };
    let data = workload.data(known, language);
    let neighbours = match data {
        Data::Silent(silent) => {
            let pods = workload.pods.as_ref().map(Vec::len).unwrap_or_default();
            arrival::neighbours(known, subject, pods, silent)
        }
        _ => None,
    };
    let arrival = arrival::read(cluster, &pod, language, neighbours).await;
    trace.caveats.extend(arrival.failed.iter().map(not_readable));
    along(trace, language, &arrival, data);
    trace.causes = arrival.causes;
    if matches!(data, Data::Silent(_)) {
        let container = container(&pod, language);
        if let Some(container) = container {
            trace.log = Some(cluster.log_of_agent(&subject.namespace, &name, container).await);
        }
    }
}

/// Adds the steps that causes of missing data are about, up to the first with one.
fn along(trace: &mut Trace, language: &'static str, arrival: &Arrival, data: Data) {
    for (way, name, title) in WAY {
        let step = (name, title);
        let cause = arrival.causes.iter().find(|one| one.step == way);
        match cause {
            // Whatever it looks like, the data arrives.
            Some(Likely { cause, .. }) if data == Data::Heard && way >= Way::Resolved => {
                trace.skip(step, format!("data arrives, although {cause}"));
            }
            Some(Likely { cause, .. }) => {
                return trace.fail(step, cause.code(), cause.to_string(), cause.remedy().map(str::to_owned));
            }
            None => pass(trace, step, way, language, arrival, data),
        }
    }
}

fn pass(
    trace: &mut Trace,
    step: (&'static str, &'static str),
    way: Way,
    language: &str,
    arrival: &Arrival,
    data: Data,
) {
    let routes = arrival.routes.as_deref();
    let is_read = arrival.failed.is_empty();
    match way {
        Way::AgentFiles => {
            let shape = named(language).map(|row| row.shape);
            let needs_none = matches!(shape, Some(Shape::Variables | Shape::Sidecar));
            trace.pass(
                step,
                if needs_none { "it needs none in the container" } else { "they are in the pod" },
            );
        }
        Way::Started => trace.pass(step, "the pod is Ready"),
        Way::Exported if routes.is_none() => {
            trace.skip(
                step,
                "a file or a reference decides, or the configuration of its module, which are not read",
            );
        }
        Way::Exported => trace.pass(step, "by its variables"),
        Way::Resolved | Way::Reachable if routes.is_none_or(<[Route]>::is_empty) => {
            trace.skip(step, "not known");
        }
        Way::Resolved => {
            let routes = routes.unwrap_or_default();
            let shown = routes.iter().map(resolved).collect::<Vec<_>>().join("; ");
            let are_known =
                routes.iter().all(|route| route.service.as_ref().is_some_and(|one| one.ready.is_some()));
            if are_known { trace.pass(step, shown) } else { trace.skip(step, shown) }
        }
        Way::Reachable
            if is_read && routes.unwrap_or_default().iter().all(|route| route.backend.is_some()) =>
        {
            trace.pass(
                step,
                "no NetworkPolicy denies it, and port, protocol and certificates do not contradict it",
            );
        }
        Way::Reachable => trace.skip(
            step,
            "nothing speaks against it; not all was readable, or the backend is outside of the cluster",
        ),
        Way::Heard => match data {
            Data::NotAsked => trace.skip(step, "not known: the controller has no source (--heard-source)"),
            Data::NotKnown { heard } => {
                trace.skip(
                    step,
                    format!("not known of its pods; of {heard} pods of the Instrumentation, data arrives"),
                );
            }
            Data::Heard => trace.pass(step, "data of its pods arrives"),
            Data::Silent(pods) => {
                let remedy = "see the log of the container for messages of the agent".to_owned();
                trace.fail(step, "Silent", format!("no data of {pods} pods arrives"), Some(remedy));
            }
        },
    }
}

/// Returns where an endpoint leads.
fn resolved(route: &Route) -> String {
    let Endpoint { variable, host, port, .. } = &route.endpoint;
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let host = if host.is_empty() { "a host of another variable" } else { host };
    let place =
        variable.map_or_else(|| format!("the default {host}{port}"), |name| format!("{name}: {host}{port}"));
    match route.service.as_ref() {
        Some(service) => match service.ready {
            Some(ready) => format!("{place}: Service {} with {ready} ready endpoints", service.name),
            None => format!("{place}: Service {}", service.name),
        },
        None => format!("{place}, which is not known to be a Service of the cluster"),
    }
}

impl Explained {
    /// Returns what the controller has written of the data of a language.
    pub fn data(&self, known: &Known, language: &str) -> Data {
        let agents = self.pods.iter().flatten().flat_map(|pod| &pod.agents);
        let own = agents.map(|(agent, _)| agent).find(|agent| agent.language == language);
        let name = own.and_then(|agent| agent.instrumentation.as_deref());
        let status = name.and_then(|name| {
            let (namespace, name) = name.split_once('/')?;
            Some(&known.instrumentations.get(&(namespace.to_owned(), name.to_owned()))?["status"])
        });
        Data::of(status.unwrap_or(&Value::Null), &self.subject)
    }
}

#[cfg(test)]
mod tests {
    use otel_webhook_fleet::silent::{Backend, Service};
    use otel_webhook_inject::reason::{ObjectName, Silent};

    use super::*;

    /// The way of a pod that sends to a Service with a ready endpoint.
    fn arrival(causes: Vec<Likely>) -> Arrival {
        let endpoint = Endpoint {
            variable: Some("OTEL_EXPORTER_OTLP_ENDPOINT"),
            is_tls: false,
            host: "collector".to_owned(),
            port: Some(4318),
            protocol: None,
        };
        let name = ObjectName { namespace: "shop".into(), name: "collector".into() };
        let service = Some(Service { name, ports: Some(vec![4318]), ready: Some(2) });
        let route =
            Route { container: "app".to_owned(), endpoint, service, backend: Some(Backend::default()) };
        Arrival { causes, routes: Some(vec![route]), failed: Vec::new() }
    }

    fn steps(arrival: &Arrival, data: Data) -> Vec<(&'static str, String)> {
        let mut trace =
            Trace::new(&Explained::new(Subject::new("Deployment", "shop", "order")), Some("java"));
        along(&mut trace, "java", arrival, data);
        let line = |step: Step| match step.outcome {
            Outcome::Passed => (step.name, format!("passed: {}", step.message)),
            Outcome::Unknown => (step.name, format!("unknown: {}", step.message)),
            Outcome::Failed { code, .. } => (step.name, code.to_owned()),
        };
        trace.steps.into_iter().map(line).collect()
    }

    fn silent(step: Way) -> Likely {
        Likely { step, cause: Silent::SdkDisabled { container: "app".to_owned() } }
    }

    #[test]
    fn a_trace_ends_at_the_first_step_with_a_cause() {
        for (number, (way, name, _)) in WAY.into_iter().enumerate() {
            let found = steps(&arrival(vec![silent(Way::Heard), silent(way)]), Data::NotAsked);
            assert_eq!(found.last(), Some(&(name, "SdkDisabled".to_owned())), "{found:?}");
            assert_eq!(found.len(), number + 1);
        }
    }

    #[test]
    fn what_is_not_known_stops_nothing_and_does_not_pass() {
        let found = steps(&arrival(Vec::new()), Data::NotAsked);
        let expected = "passed: OTEL_EXPORTER_OTLP_ENDPOINT: collector:4318: Service shop/collector with 2 ready endpoints";
        assert_eq!(found[3], ("resolved", expected.to_owned()));
        assert!(found[4].1.starts_with("passed: no NetworkPolicy denies it"), "{found:?}");
        assert!(found[5].1.starts_with("unknown: not known: the controller has no source"), "{found:?}");
        let mut by_file = arrival(Vec::new());
        by_file.routes = None;
        let found = steps(&by_file, Data::NotKnown { heard: 3 });
        assert!(found[2..].iter().all(|(_, line)| line.starts_with("unknown: ")), "{found:?}");
        let mut outside = arrival(Vec::new());
        outside.routes.iter_mut().flatten().for_each(|route| (route.service, route.backend) = (None, None));
        let found = steps(&outside, Data::Heard);
        assert!(
            found[3].1.contains("not known to be a Service") && found[5].1.starts_with("passed"),
            "{found:?}"
        );
    }

    #[test]
    fn data_that_arrives_is_believed_more_than_what_speaks_against_it() {
        let found = steps(&arrival(vec![silent(Way::Reachable)]), Data::Heard);
        assert!(found[4].1.starts_with("unknown: data arrives, although OTEL_SDK_DISABLED"), "{found:?}");
        assert_eq!(found[5].1, "passed: data of its pods arrives");
        let found = steps(&arrival(Vec::new()), Data::Silent(2));
        assert_eq!(found[5], ("heard", "Silent".to_owned()));
    }
}
