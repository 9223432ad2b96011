//! Whether data of injected pods arrives, by the instances that a store of metrics or a Collector reports.
//!
//! Injection sets `service.instance.id` to `NAMESPACE.POD.CONTAINER`, so that the instances of pods are known without
//! asking the pods.
//!
//! | of each container with the agent | state |
//! |---|---|
//! | the source does not answer; the agent cannot be recognised, or sends nothing that the source shows | unknown |
//! | reported within the patience | heard |
//! | the pod is Ready and the source answers, both for as long as the patience | silent |
//! | else | unknown |

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use otel_webhook_api::otlp::{Problem, Variable};
use otel_webhook_inject::language::{Shape, named};
use serde::Serialize;
use serde_json::Value;

use crate::{
    census::{Census, Group, Member},
    failing,
    injected::{Agent, is_init, is_mark},
    pod::hash,
    silent::{self, items, text},
};

/// Kinds of telemetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signals {
    /// Metrics.
    pub metrics: bool,
    /// Spans.
    pub spans: bool,
}

impl Signals {
    fn overlap(self, other: Self) -> bool {
        self.metrics && other.metrics || self.spans && other.spans
    }
}

/// Why it is not known whether data arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Unknown {
    /// The pod is not Ready for long enough, or the source does not answer for long enough.
    Waiting,
    /// The source does not answer.
    SourceUnavailable,
    /// The container has a `service.instance.id` that injection did not set.
    OwnInstanceId,
    /// `OTEL_SDK_DISABLED` is true.
    SdkDisabled,
    /// The exporters of the signals that the source shows are off, no span is sampled, or a file or a reference decides.
    NotExported,
    /// Which containers have the agent is not known.
    NoContainer,
}

/// Whether data of a language of a pod arrives; of several containers, the worst of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// Since when it does.
    Heard(Timestamp),
    /// It is not known.
    Unknown(Unknown),
    /// Since when it does not: the time it was heard last, or since the pod is Ready.
    Silent(Timestamp),
}

/// The containers of a pod that send data for a language.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    pub(crate) language: &'static str,
    /// What their instances end with, or why they cannot be recognised.
    containers: Result<Box<[Box<str>]>, Unknown>,
    signals: Signals,
    /// Why nothing can arrive with the variables of the exporter; `None` if they show no problem.
    pub(crate) problem: Option<Box<Problem>>,
}

/// The variable with the instance, which ends with the name of the container.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const INSTANCE: &str = "service.instance.id";
const POD_NAME: &str = "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)";
/// Where the value of one of them is a reference, what is sent is not known.
const DECIDING: [&str; 5] = [DISABLED, METRICS, TRACES, SAMPLER, "OTEL_TRACES_SAMPLER_ARG"];
const DISABLED: &str = "OTEL_SDK_DISABLED";
const METRICS: &str = "OTEL_METRICS_EXPORTER";
const TRACES: &str = "OTEL_TRACES_EXPORTER";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
/// The path of a declarative configuration.
const CONFIG_FILES: [&str; 2] = ["OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"];
/// Samplers that drop every span, in some cases by their argument.
const NEVER: [&str; 2] = ["always_off", "parentbased_always_off"];
const BY_RATIO: [&str; 2] = ["traceidratio", "parentbased_traceidratio"];

/// Returns the containers of a pod that send data for languages, each with its language.
pub(crate) fn senders<'p>(
    pod: &'p Value,
    languages: &[&'static str],
) -> impl Iterator<Item = (&'static str, &'p Value)> {
    let of_list =
        |list| items(&pod["spec"][list]).map(move |container| (is_init(list, container), container));
    // What has ended sends nothing.
    let lasting = ["initContainers", "containers"].into_iter().flat_map(of_list).filter(|(init, _)| !init);
    lasting.flat_map(move |(init, container)| {
        let name = text(&container["name"]);
        let of_container = if is_mark(init, name) {
            failing::of_container(languages, init, name)
        } else {
            failing::of_target(pod, container, languages)
        };
        of_container.into_iter().map(move |language| (language, container))
    })
}

/// The variables of a container.
#[derive(Clone, Copy)]
pub(crate) struct Variables<'c>(pub(crate) &'c Value);

impl<'c> Variables<'c> {
    fn entry(self, name: &str) -> Option<&'c Value> {
        items(&self.0["env"]).filter(|one| one["name"] == *name).last()
    }

    fn literal(self, name: &str) -> Option<&'c str> {
        self.entry(name).map(|one| text(&one["value"]).trim())
    }

    /// Returns the variable as the checks of the exporter see it.
    pub(crate) fn seen(self, name: &str) -> Variable<'c> {
        let is_from = |source: &Value| name.starts_with(text(&source["prefix"]));
        match self.entry(name) {
            Some(entry) if entry["valueFrom"].is_object() => Variable::Hidden,
            Some(entry) => Variable::Value(text(&entry["value"]).trim()),
            None if items(&self.0["envFrom"]).any(is_from) => Variable::Hidden,
            None => Variable::Unset,
        }
    }

    pub(crate) fn is_disabled(self) -> bool {
        self.literal(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether it can be known what is sent: what a file says replaces the variables, and is not read.
    pub(crate) fn are_known(self) -> bool {
        let is_by_file =
            CONFIG_FILES.iter().any(|name| self.literal(name).is_some_and(|path| !path.is_empty()));
        let is_hidden = |name: &&str| self.entry(name).is_some_and(|one| one["valueFrom"].is_object());
        !is_by_file && !DECIDING.iter().any(is_hidden)
    }

    /// Returns what is sent, if that can be known.
    pub(crate) fn signals(self, language: &str) -> Signals {
        let row = named(language);
        // Agents of `spec.agents` are not known; the others send spans, and all but these metrics.
        let default = row.is_some_and(|row| {
            !matches!(row.shape, Shape::Sidecar | Shape::WebServer) && !row.names_agents()
        });
        Signals {
            metrics: self.exports(METRICS, default),
            spans: !self.drops_spans() && self.exports(TRACES, true),
        }
    }

    /// Returns the variables because of which nothing is sent.
    pub(crate) fn silencing(self) -> impl Iterator<Item = &'static str> {
        let sampler = self.drops_spans().then_some(SAMPLER);
        [METRICS, TRACES].into_iter().filter(move |name| !self.exports(name, true)).chain(sampler)
    }

    fn exports(self, name: &str, default: bool) -> bool {
        match self.literal(name) {
            None | Some("") => default,
            Some(list) => list.split(',').any(|one| one.trim() == "otlp"),
        }
    }

    fn drops_spans(self) -> bool {
        let sampler = self.literal(SAMPLER).unwrap_or_default();
        let ratio = || self.literal("OTEL_TRACES_SAMPLER_ARG").and_then(|ratio| ratio.parse::<f64>().ok());
        NEVER.contains(&sampler) || BY_RATIO.contains(&sampler) && ratio().is_some_and(|ratio| ratio <= 0.0)
    }
}

impl Sender {
    /// Returns those of a pod with these agents.
    pub(crate) fn of(pod: &Value, agents: &[Agent]) -> Vec<Self> {
        let namespace = text(&pod["metadata"]["namespace"]);
        let languages: Vec<_> = agents.iter().map(|agent| agent.language).collect();
        let mut found: BTreeMap<usize, Self> = BTreeMap::new();
        for (language, container) in senders(pod, &languages) {
            let at = languages.iter().position(|one| *one == language).unwrap_or_default();
            let mut one = Self::in_container(container, namespace, language);
            one.problem = silent::problems(agents, language, container).into_iter().next().map(Box::new);
            match found.get_mut(&at) {
                Some(sender) => sender.add(one),
                None => drop(found.insert(at, one)),
            }
        }
        found.into_values().collect()
    }

    fn in_container(container: &Value, namespace: &str, language: &'static str) -> Self {
        let variables = Variables(container);
        let none = Signals { metrics: false, spans: false };
        let signals = if variables.are_known() { variables.signals(language) } else { none };
        let pairs = variables.literal(ATTRIBUTES).unwrap_or_default().split(',');
        let mut ids =
            pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(key, _)| key.trim() == INSTANCE);
        let prefix = [namespace, ".", POD_NAME, "."].concat();
        let containers = if variables.is_disabled() {
            Err(Unknown::SdkDisabled)
        } else {
            let own =
                ids.next().and_then(|(_, id)| id.strip_prefix(&*prefix)).filter(|_| ids.next().is_none());
            own.map(|own| Box::from([Box::from(own)])).ok_or(Unknown::OwnInstanceId)
        };
        Self { language, containers, signals, problem: None }
    }

    /// Adds another container. What only one of them sends, the language sends.
    fn add(&mut self, other: Self) {
        self.signals.metrics |= other.signals.metrics;
        self.signals.spans |= other.signals.spans;
        self.problem = self.problem.take().or(other.problem);
        self.containers =
            match (std::mem::replace(&mut self.containers, Ok(Box::default())), other.containers) {
                (Ok(own), Ok(other)) => Ok(own.into_iter().chain(other).collect()),
                (Err(why), _) | (_, Err(why)) => Err(why),
            };
    }
}

/// Returns what instances are compared by.
pub fn instance(id: &str) -> u64 {
    hash(&id)
}

/// When an instance was reported.
#[derive(Clone, Copy, Debug)]
struct Reported {
    /// For the first time without an interruption as long as the patience.
    since: Timestamp,
    last: Timestamp,
}

/// What a source has reported of the instances of a census.
#[derive(Clone, Debug)]
pub struct Heard {
    patience: SignedDuration,
    signals: Signals,
    /// Since when the source answers; `None` if it does not.
    answers_since: Option<Timestamp>,
    /// When it was asked last.
    now: Timestamp,
    /// Only instances of pods of the census, so that what a source reports takes no room.
    instances: HashMap<u64, Reported>,
}

impl Heard {
    /// Returns one that has asked nothing. `signals` are those that the source shows, and `patience` is how long an
    /// agent may send nothing.
    pub fn new(patience: SignedDuration, signals: Signals) -> Self {
        let (now, instances) = (Timestamp::UNIX_EPOCH, HashMap::new());
        Self { patience, signals, answers_since: None, now, instances }
    }

    /// Notes the instances that a source reports, or that it does not answer. Marks the workloads of which something
    /// else is known then as changed, and returns whether there are any.
    pub fn take(&mut self, reported: Option<&HashSet<u64>>, now: Timestamp, census: &mut Census) -> bool {
        let mut next = Self::new(self.patience, self.signals);
        next.now = now;
        next.answers_since = reported.map(|_| self.answers_since.unwrap_or(now));
        for id in census.groups().flat_map(|group| group.members.iter().flat_map(move |one| ids(group, one)))
        {
            let before = self.instances.get(&id).copied();
            if reported.is_some_and(|reported| reported.contains(&id)) {
                let is_new = |before: &Reported| before.last + self.patience < now;
                let since = before.filter(|before| !is_new(before)).map_or(now, |before| before.since);
                next.instances.insert(id, Reported { since, last: now });
            } else if let Some(before) = before {
                next.instances.insert(id, before);
            }
        }
        let states = |heard: &Self, group: Group<'_>| -> Vec<Data> {
            let senders = |member: &Member| {
                let of = |sender: &Sender| heard.of_sender(group, member, sender);
                member.senders().iter().map(of).collect::<Vec<_>>()
            };
            group.members.iter().flat_map(senders).collect()
        };
        let is_changed = |group: &Group<'_>| states(self, *group) != states(&next, *group);
        let changed: Vec<Arc<str>> =
            census.groups().filter(is_changed).map(|group| group.key().into()).collect();
        let is_any = !changed.is_empty();
        census.touch_all(changed);
        *self = next;
        is_any
    }

    /// Returns whether data of a language of a pod arrives, as of when the source was asked last.
    pub fn of(&self, group: Group<'_>, member: &Member, language: &str) -> Data {
        let sender = member.senders().iter().find(|sender| sender.language == language);
        sender.map_or(Data::Unknown(Unknown::NoContainer), |sender| self.of_sender(group, member, sender))
    }

    fn of_sender(&self, group: Group<'_>, member: &Member, sender: &Sender) -> Data {
        let Some(answers_since) = self.answers_since else {
            return Data::Unknown(Unknown::SourceUnavailable);
        };
        let containers = match &sender.containers {
            Err(why) => return Data::Unknown(*why),
            Ok(containers) => containers,
        };
        let of = |container: &str| {
            let reported = self.instances.get(&id(group, member, container));
            match (reported, member.ready_since()) {
                (Some(reported), _) if reported.last + self.patience >= self.now => {
                    Data::Heard(reported.since)
                }
                _ if !self.signals.overlap(sender.signals) => Data::Unknown(Unknown::NotExported),
                (reported, Some(ready)) if ready.max(answers_since) + self.patience <= self.now => {
                    Data::Silent(reported.map_or(ready, |reported| ready.max(reported.last)))
                }
                _ => Data::Unknown(Unknown::Waiting),
            }
        };
        containers.iter().map(|container| of(container)).max().unwrap_or(Data::Unknown(Unknown::NoContainer))
    }
}

fn id(group: Group<'_>, member: &Member, container: &str) -> u64 {
    instance(&[group.namespace(), group.name_of(member), container].join("."))
}

fn ids<'m>(group: Group<'m>, member: &'m Member) -> impl Iterator<Item = u64> + 'm {
    let containers = member.senders().iter().filter_map(|sender| sender.containers.as_ref().ok());
    containers.flatten().map(move |container| id(group, member, container))
}
