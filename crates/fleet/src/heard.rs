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
use otel_webhook_inject::language::{Shape, named};
use serde::Serialize;
use serde_json::Value;

use crate::{
    census::{Census, Group, Member},
    failing,
    injected::{is_init, is_mark},
    pod::hash,
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
    /// The exporters of the signals that the source shows are off or set by a file, or no span is sampled.
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
    language: &'static str,
    /// What their instances end with, or why they cannot be recognised.
    containers: Result<Box<[Box<str>]>, Unknown>,
    signals: Signals,
}

/// The variables that decide whether an agent sends anything.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const INSTANCE: &str = "service.instance.id";
const POD_NAME: &str = "$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)";
/// The path of a declarative configuration.
const CONFIG_FILES: [&str; 2] = ["OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"];
/// Samplers that drop every span, in some cases by their argument.
const NEVER: [&str; 2] = ["always_off", "parentbased_always_off"];
const BY_RATIO: [&str; 2] = ["traceidratio", "parentbased_traceidratio"];

impl Sender {
    /// Returns those of a pod with these languages.
    pub(crate) fn of(pod: &Value, languages: &[&'static str]) -> Vec<Self> {
        let namespace = text(&pod["metadata"]["namespace"]);
        let mut senders: BTreeMap<usize, Self> = BTreeMap::new();
        for list in ["initContainers", "containers"] {
            for container in items(&pod["spec"][list]) {
                let (init, name) = (is_init(list, container), text(&container["name"]));
                // What has ended sends nothing.
                if init {
                    continue;
                }
                let of_container = if is_mark(init, name) {
                    failing::of_container(languages, init, name)
                } else {
                    failing::of_target(pod, container, languages)
                };
                for language in of_container {
                    let at = languages.iter().position(|one| *one == language).unwrap_or_default();
                    let one = Self::in_container(container, namespace, language);
                    match senders.get_mut(&at) {
                        Some(sender) => sender.add(one),
                        None => drop(senders.insert(at, one)),
                    }
                }
            }
        }
        senders.into_values().collect()
    }

    fn in_container(container: &Value, namespace: &str, language: &'static str) -> Self {
        let literal = |name: &str| {
            let own = items(&container["env"]).filter(|variable| variable["name"] == *name);
            own.last().map(|variable| text(&variable["value"]).trim())
        };
        let row = named(language);
        // Agents of `spec.agents` are not known; the others send spans, and all but these metrics.
        let default = row.is_some_and(|row| {
            !matches!(row.shape, Shape::Sidecar | Shape::WebServer) && !row.names_agents()
        });
        let exports = |name: &str, default: bool| match literal(name) {
            None | Some("") => default,
            Some(list) => list.split(',').any(|one| one.trim() == "otlp"),
        };
        let sampler = literal("OTEL_TRACES_SAMPLER").unwrap_or_default();
        let ratio = || literal("OTEL_TRACES_SAMPLER_ARG").and_then(|ratio| ratio.parse::<f64>().ok());
        let is_dropped = NEVER.contains(&sampler)
            || BY_RATIO.contains(&sampler) && ratio().is_some_and(|ratio| ratio <= 0.0);
        // What a file says replaces the variables, and is not read.
        let is_by_file = CONFIG_FILES.iter().any(|name| literal(name).is_some_and(|path| !path.is_empty()));
        let signals = Signals {
            metrics: !is_by_file && exports("OTEL_METRICS_EXPORTER", default),
            spans: !is_by_file && !is_dropped && exports("OTEL_TRACES_EXPORTER", true),
        };
        let pairs = literal(ATTRIBUTES).unwrap_or_default().split(',');
        let mut ids =
            pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(key, _)| key.trim() == INSTANCE);
        let prefix = [namespace, ".", POD_NAME, "."].concat();
        let containers =
            if literal("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
                Err(Unknown::SdkDisabled)
            } else {
                let own =
                    ids.next().and_then(|(_, id)| id.strip_prefix(&*prefix)).filter(|_| ids.next().is_none());
                own.map(|own| Box::from([Box::from(own)])).ok_or(Unknown::OwnInstanceId)
            };
        Self { language, containers, signals }
    }

    /// Adds another container. What only one of them sends, the language sends.
    fn add(&mut self, other: Self) {
        self.signals.metrics |= other.signals.metrics;
        self.signals.spans |= other.signals.spans;
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

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
