//! Why no data of an injected pod arrives: a ranked list, by the pod and by what is known of where it sends.
//!
//! What is not known is no cause. The ranks are those of the table in `otel_webhook_inject::reason`.

mod policy;

use std::collections::HashMap;

use otel_webhook_api::otlp::{self, Agent as Exporter, Endpoint, Problem};
use otel_webhook_inject::{
    language::named,
    reason::{ObjectName, Silent},
    shown::Names,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    failing::{self, Part},
    heard::{Variables, senders},
    injected::{self, Agent},
    report::WorkloadRow,
};
use policy::{Direction, Peer, denying};

/// How far data comes on its way from the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The files of the agent are in the pod.
    AgentFiles,
    /// The container with the agent has started.
    Started,
    /// The agent exports by OTLP.
    Exported,
    /// The endpoint is a Service with ready endpoints.
    Resolved,
    /// The backend can be reached.
    Reachable,
    /// The data arrives.
    Heard,
}

/// A likely cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likely {
    /// Where the data stops.
    pub step: Step,
    /// Why.
    pub cause: Silent,
}

impl Serialize for Likely {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { step, cause } = self;
        let row = serde_json::json!({
            "code": cause.code(), "step": step, "message": cause.to_string(), "remedy": cause.remedy(),
        });
        row.serialize(serializer)
    }
}

/// Where an agent sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The pod itself.
    OwnPod,
    /// A Service of the cluster.
    Service(ObjectName),
    /// A Service, if the cluster has the namespace; else a name outside of it.
    ServiceIfNamespace(ObjectName),
    /// An address, or a name outside of the cluster.
    Elsewhere,
    /// The variable refers to another one.
    Unknown,
}

/// Returns where an agent of a pod in this namespace sends with an endpoint.
pub fn target(endpoint: &Endpoint, namespace: &str) -> Target {
    let host = endpoint.host.trim_end_matches('.');
    let service = |name: &str, namespace: &str| ObjectName { namespace: namespace.into(), name: name.into() };
    let is_own =
        host == "localhost" || host.parse::<core::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match *host.split('.').collect::<Vec<_>>() {
        _ if is_own => Target::OwnPod,
        [""] => Target::Unknown,
        _ if host.parse::<core::net::IpAddr>().is_ok() => Target::Elsewhere,
        [name] => Target::Service(service(name, namespace)),
        [name, namespace] => Target::ServiceIfNamespace(service(name, namespace)),
        [name, namespace, "svc", ..] => Target::Service(service(name, namespace)),
        _ => Target::Elsewhere,
    }
}

/// Returns where a pod sends the data of a language, with the containers that do; `None` if a file decides, or what
/// its agent reads is not known.
pub fn endpoints(pod: &Value, language: &'static str) -> Option<Vec<(String, Endpoint)>> {
    let (agents, mut found) = (injected::agents(pod), Vec::new());
    for (_, container) in senders(pod, &[language]) {
        let variables = Variables(container);
        if !variables.are_known() || !reads_variables(language) {
            return None;
        }
        let all = otlp::endpoints(|name| variables.seen(name), exporter(&agents, language));
        found.extend(all.into_iter().map(|endpoint| (text(&container["name"]).to_owned(), endpoint)));
    }
    Some(found)
}

/// Returns the name of the first container of a pod that sends data of a language.
pub fn container<'p>(pod: &'p Value, language: &'static str) -> Option<&'p str> {
    senders(pod, &[language]).next().map(|(_, container)| text(&container["name"]))
}

/// Returns the problems of the exporter of a container with one of these agents.
pub(crate) fn problems(agents: &[Agent], language: &'static str, container: &Value) -> Vec<Problem> {
    let variables = Variables(container);
    if !variables.are_known() || !reads_variables(language) {
        return Vec::new();
    }
    otlp::problems(|name| variables.seen(name), exporter(agents, language))
}

/// The module of a web server reads its configuration.
fn reads_variables(language: &str) -> bool {
    let defaults = named(language).and_then(|row| row.defaults);
    defaults.is_none_or(|defaults| defaults.export.directive.is_none())
}

/// Returns what is known of the exporter of an injected agent, by its image.
fn exporter(agents: &[Agent], language: &str) -> Exporter {
    let agent = agents.iter().find(|agent| agent.language == language);
    let image = agent.and_then(|agent| agent.image.as_deref());
    let defaults = named(language).and_then(|row| row.defaults);
    defaults.zip(image).map_or(Exporter::UNKNOWN, |(defaults, image)| defaults.agent(image))
}

/// What is known of where a container sends.
#[derive(Clone, Debug)]
pub struct Route {
    /// The container.
    pub container: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The Service of the endpoint; `None` if it is none, or could not be read.
    pub service: Option<Service>,
    /// A pod behind the Service; `None` if there is none, or it could not be read.
    pub backend: Option<Backend>,
}

/// The Service of an endpoint.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name.
    pub name: ObjectName,
    /// Its ports; `None` if it does not exist.
    pub ports: Option<Vec<u16>>,
    /// The number of ready addresses of the endpoint's port; `None` if it is not known, or the name stands for another one.
    pub ready: Option<usize>,
}

/// A pod behind a Service.
#[derive(Clone, Debug, Default)]
pub struct Backend {
    /// The pod.
    pub pod: Value,
    /// Its port; `None` if it is not known.
    pub port: Option<u16>,
    /// The addresses of the pod and of the Service.
    pub addresses: Vec<String>,
    /// The labels of its namespace; `None` if they could not be read.
    pub namespace_labels: Option<Value>,
    /// The NetworkPolicies of its namespace.
    pub policies: Vec<Value>,
    /// The Secrets with certificates that it mounts, each with the names of its certificate, and whether it is valid
    /// for the host of the endpoint.
    pub certificates: Vec<(ObjectName, Vec<String>, bool)>,
}

/// Of how many other pods of a namespace data arrives, or should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// The number of pods, other than those of the workload, of which data arrives.
    pub heard: usize,
    /// The number of silent pods, with those of the workload.
    pub silent: usize,
}

/// What causes are derived from.
#[derive(Clone, Debug)]
pub struct Facts<'f> {
    /// The running pod.
    pub pod: &'f Value,
    /// The language.
    pub language: &'static str,
    /// Where it sends.
    pub routes: &'f [Route],
    /// The labels of its namespace; `None` if they could not be read.
    pub namespace_labels: Option<&'f Value>,
    /// The NetworkPolicies of its namespace.
    pub policies: &'f [Value],
    /// The objects with certificates that it mounts and that do not exist.
    pub missing: &'f [String],
    /// The other pods of its namespace; `None` if it is not known of which data arrives.
    pub neighbours: Option<Neighbours>,
}

/// Returns the likely causes, the most likely first.
pub fn causes(facts: &Facts<'_>) -> Vec<Likely> {
    let mut found: Vec<Likely> = of_pod(facts).into_iter().chain(of_exporters(facts)).collect();
    found.extend(facts.missing.iter().map(|object| Likely {
        step: Step::Reachable,
        cause: Silent::CertificateNotFound { object: object.clone() },
    }));
    for route in facts.routes {
        of_route(facts, route, &mut found);
    }
    let namespace = text(&facts.pod["metadata"]["namespace"]);
    found.extend(facts.neighbours.and_then(|neighbours| neighbours.cause(namespace)));
    found.dedup();
    found.sort_by_key(|one| Silent::ALL.iter().position(|row| row.code == one.cause.code()));
    found
}

fn of_pod(facts: &Facts<'_>) -> Vec<Likely> {
    let status = failing::of(facts.pod, &[facts.language]);
    let failing = |failure: &failing::Failure| {
        let (problem, remedy) = failure.kind.texts(failure.part);
        let step = if failure.part == Part::Application { Step::Started } else { Step::AgentFiles };
        let (container, code) = (failure.container.to_string(), failure.kind.code());
        Likely { step, cause: Silent::AgentFails { container, code, problem, remedy } }
    };
    let failures = status.failures.iter().filter(|failure| !failure.languages.is_empty());
    let mut found: Vec<_> = failures.map(failing).collect();
    if found.is_empty() && !status.is_ready {
        let pod = text(&facts.pod["metadata"]["name"]).to_owned();
        found.push(Likely { step: Step::Started, cause: Silent::PodNotReady { pod } });
    }
    found
}

fn of_exporters(facts: &Facts<'_>) -> Vec<Likely> {
    let (agents, mut found) = (injected::agents(facts.pod), Vec::new());
    for (language, container) in senders(facts.pod, &[facts.language]) {
        let (variables, name) = (Variables(container), text(&container["name"]).to_owned());
        let signals = variables.signals(language);
        let cause = if variables.is_disabled() {
            Some(Silent::SdkDisabled { container: name })
        } else if variables.are_known() && !signals.metrics && !signals.spans {
            Some(Silent::NotExported { container: name, variables: Names::of(variables.silencing()) })
        } else {
            None
        };
        found.extend(cause.map(|cause| Likely { step: Step::Exported, cause }));
        found.extend(problems(&agents, language, container).iter().map(of_problem));
    }
    found
}

/// Returns the cause that a problem of an exporter is.
pub(crate) fn of_problem(problem: &Problem) -> Likely {
    let text = problem.to_string();
    match problem {
        Problem::NoScheme { .. } => {
            Likely { step: Step::Resolved, cause: Silent::EndpointWithoutScheme { problem: text } }
        }
        Problem::Port { .. } => {
            Likely { step: Step::Reachable, cause: Silent::PortContradictsProtocol { problem: text } }
        }
    }
}

fn of_route(facts: &Facts<'_>, route: &Route, found: &mut Vec<Likely>) {
    let Route { container, endpoint, service, backend } = route;
    let mut add = |step, cause| found.push(Likely { step, cause });
    let Some(port) = endpoint.port else { return };
    let namespace = text(&facts.pod["metadata"]["namespace"]);
    if target(endpoint, namespace) == Target::OwnPod {
        let others = ["initContainers", "containers"].into_iter().flat_map(|list| {
            items(&facts.pod["spec"][list]).filter(move |one| !injected::is_init(list, one))
        });
        let own = |one: &Value| senders(facts.pod, &[facts.language]).any(|(_, sender)| sender == one);
        if others.into_iter().all(own) {
            add(Step::Resolved, Silent::EndpointInPod { container: container.clone(), port });
        }
        return;
    }
    if let Some(Service { name, ports, ready }) = service {
        let (service, variable) = (name.clone(), endpoint.variable.unwrap_or(otlp::ENDPOINT));
        match ports {
            None => return add(Step::Resolved, Silent::ServiceNotFound { variable, service }),
            Some(ports) if !ports.is_empty() && !ports.contains(&port) => {
                let ports = Names::of(ports.iter().map(u16::to_string));
                return add(Step::Resolved, Silent::PortNotInService { service, port, ports });
            }
            Some(_) if *ready == Some(0) => {
                return add(Step::Resolved, Silent::NoReadyEndpoints { service, port });
            }
            Some(_) => {}
        }
    }
    let to = backend.as_ref().and_then(|backend| backend.port).unwrap_or(port);
    let behind = service
        .as_ref()
        .zip(endpoint.protocol)
        .filter(|(_, protocol)| to != port && protocol.contradicts(to));
    if let Some((Service { name, .. }, protocol)) = behind {
        let problem =
            format!("Service \"{name}\" forwards port {port} to {to}, but the agent sends {protocol}");
        add(Step::Reachable, Silent::PortContradictsProtocol { problem });
    }
    let outside = Backend::default();
    let Backend { pod, addresses, namespace_labels, policies, certificates, .. } =
        backend.as_ref().unwrap_or(&outside);
    // Which of several is used is not known.
    let is_valid = certificates.iter().any(|(.., is_valid)| *is_valid);
    if let Some((secret, names, _)) = certificates.first().filter(|_| endpoint.is_tls && !is_valid) {
        let (host, secret, names) = (endpoint.host.clone(), secret.clone(), Names::of(names));
        add(Step::Reachable, Silent::CertificateOfOtherName { host, secret, names });
    }
    let shown =
        service.as_ref().map_or(endpoint.host.clone(), |service| format!("Service \"{}\"", service.name));
    let is_outside = service.is_none() && target(endpoint, namespace) == Target::Elsewhere;
    let known = backend.as_ref().map(|_| pod);
    if known.is_some() || is_outside {
        let peer = Peer { pod: known, namespace_labels: namespace_labels.as_ref(), addresses };
        let denying = denying(facts.policies, Direction::Egress, facts.pod, peer, to);
        if !denying.is_empty() {
            let (policies, backend) = (Names::of(denying), shown.clone());
            add(Step::Reachable, Silent::EgressDenied { policies, backend, port: to });
        }
    }
    if let Some(backend) = known {
        let addresses = items(&facts.pod["status"]["podIPs"]).map(|one| text(&one["ip"]).to_owned());
        let addresses: Vec<String> = addresses.collect();
        let peer =
            Peer { pod: Some(facts.pod), namespace_labels: facts.namespace_labels, addresses: &addresses };
        let denying = denying(policies, Direction::Ingress, backend, peer, to);
        if !denying.is_empty() {
            let policies = Names::of(denying);
            add(Step::Reachable, Silent::IngressDenied { policies, backend: shown, port: to });
        }
    }
}

impl Neighbours {
    /// Returns what other pods say of the cause of a silent workload; `None` if there are none.
    pub fn cause(self, namespace: &str) -> Option<Likely> {
        let namespace = namespace.to_owned();
        let cause = match self {
            Self { heard: 0, silent: 0 | 1 } => return None,
            Self { heard: 0, silent } => Silent::NamespaceSilent { namespace, pods: silent },
            Self { heard, .. } => Silent::WorkloadSilent { namespace, pods: heard },
        };
        Some(Likely { step: Step::Heard, cause })
    }
}

/// Adds what other pods say of the cause where the pods of a silent workload show none.
pub(crate) fn compare(workloads: &mut [WorkloadRow]) {
    let mut namespaces: HashMap<String, Neighbours> = HashMap::new();
    for row in workloads.iter() {
        let data = row.languages.iter().filter_map(|language| language.data.as_ref());
        let of = namespaces.entry(row.workload.namespace.clone()).or_default();
        data.for_each(|data| {
            of.heard += data.heard;
            of.silent += data.silent;
        });
    }
    for row in workloads {
        let namespace = &row.workload.namespace;
        let all = namespaces.get(namespace).copied().unwrap_or_default();
        for data in row.languages.iter_mut().filter_map(|language| language.data.as_mut()) {
            let is_own = data.cause.as_ref().is_some_and(|cause| cause.step != Step::Heard);
            if data.silent > 0 && !is_own {
                let neighbours = Neighbours { heard: all.heard - data.heard, silent: all.silent };
                data.cause = neighbours.cause(namespace);
            }
        }
    }
}

pub(crate) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
