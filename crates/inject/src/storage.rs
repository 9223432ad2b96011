//! Ephemeral storage: whether the agents fit into a pod's limit.
//!
//! The kubelet adds up what a pod uses (writable layers, logs, emptyDir
//! volumes on disk) and evicts it when that is more than the limit of the pod
//! pod. That limit is the sum of the containers' limits for
//! `ephemeral-storage`, however few have one: a single limited container
//! limits the pod. The files of an emptyDir never count against the limit of
//! one container.

use std::fmt;

use serde_json::value::RawValue;

use crate::{
    demand::{Amounts, Asked},
    edit::PodEdit,
    finding::Finding,
    injection::Injection,
    note::Note,
    pod::{Container, Pod},
    reason::Reason,
    settings::InitResources,
    shown::Names,
};
use otel_webhook_api::quantity::Quantity;

const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// A warning is given if less is left than the kubelet keeps of one container's log (five files of 10Mi).
const CLOSE: Quantity = Quantity::mebibytes(50);

/// The size of a language's agent in the pod's ephemeral storage.
pub struct Room {
    /// The size of the agent and its extensions.
    size: Quantity,
    /// The counted part of it: zero in a claim.
    counted: Quantity,
    /// The language's field in the specification.
    field: &'static str,
}

impl Room {
    /// The part that counts against the pod's limit.
    pub fn counted(&self) -> Quantity {
        self.counted
    }
}

/// Checks that the language's agent fits into the pod's limit, together with those of the
/// languages before it, and a reserve. `is_claim` means that the agent is in a
/// volume that does not count.
///
/// # Errors
/// The limit, the needed amount, and what to do.
pub fn check(injection: &Injection<'_, '_>, is_claim: bool) -> Result<Room, Reason> {
    let Some(defaults) = injection.plan.language.defaults else {
        return Ok(Room { size: Quantity::ZERO, counted: Quantity::ZERO, field: "" });
    };
    let size = injection.facts.sizes.of(defaults, injection.prepared().extensions.len());
    let counted = if is_claim { Quantity::ZERO } else { size };
    let room = Room { size, counted, field: defaults.field };
    let limit = Limit::of(injection.facts.pod);
    let Some(limit) = with_own_limit(injection, limit).filter(|_| !is_claim) else { return Ok(room) };
    let need = injection.edit.volumes.held().plus(counted);
    let least = need.plus(RESERVE);
    if least <= limit.amount {
        return Ok(room);
    }
    let claim = defaults.has_volume.then_some(room.field);
    let shortage = Shortage { limit, need, least, claim };
    Err(Reason::EphemeralStorage { shortage: Box::new(shortage) })
}

/// The limit of the pod with the language's init containers. They change it only if their
/// resources are those of the Instrumentation.
fn with_own_limit(injection: &Injection<'_, '_>, limit: Option<Limit>) -> Option<Limit> {
    let value = &injection.prepared().resources.value["limits"][EPHEMERAL_STORAGE];
    let own = Quantity::of(value).filter(|_| injection.facts.init_resources == InitResources::Exact);
    let Some(own) = own else { return limit };
    Some(match limit {
        Some(limit) => Limit { amount: limit.amount.max(own), ..limit },
        None => Limit { amount: own, containers: Names::of(["the init container of the agent"]) },
    })
}

/// Warns about a volume with a size limit that is smaller than the agent.
pub fn warn_of_volume(injection: &mut Injection<'_, '_>, room: &Room) {
    let limit = injection.prepared().size_limit.filter(|limit| *limit < room.size);
    if let Some(limit) = limit.filter(|_| !room.counted.is_zero()) {
        injection.note(Note::VolumeLimitTooSmall {
            field: room.field.to_owned(),
            limit: limit.to_string(),
            size: room.size.to_string(),
        });
    }
}

/// Warns, once for all languages, if the agents leave little of the pod's limit.
pub fn warn_of_pod(findings: &mut [Finding], edit: &PodEdit<'_>) {
    let need = edit.volumes.held();
    let Some(limit) = Some(need).filter(|need| !need.is_zero()).and_then(|_| Limit::of(edit.pod)) else {
        return;
    };
    let left = limit.amount.less(need);
    let injected = findings.iter_mut().find(|finding| finding.reason.is_injected());
    if let Some(finding) = injected.filter(|_| left < CLOSE) {
        finding.notes.push(Note::LittleStorageLeft {
            limit: limit.amount.to_string(),
            need: need.to_string(),
            left: left.to_string(),
        });
    }
}

/// The reserve for the pod itself: one log file of the size at which the kubelet rotates.
pub const RESERVE: Quantity = Quantity::mebibytes(10);

/// The limit of a whole pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    pub amount: Quantity,
    /// The containers with a limit.
    pub containers: Names,
}

impl Limit {
    /// Computes the limit of a pod as the kubelet does; `None` if no container has one.
    /// `spec.resources` is not used.
    pub fn of(pod: &Pod<'_>) -> Option<Self> {
        let (mut running, mut started, mut peak) = (None, None, None);
        let mut containers = Names::default();
        let mut read = |one: &Container<'_>| {
            let own = one.resources.and_then(limit);
            own.inspect(|_| containers.push(&one.name))
        };
        for one in pod.spec.containers.iter() {
            running = sum(running, read(one));
        }
        for one in pod.spec.init_containers.iter() {
            let own = read(one);
            // A native sidecar runs together with all later containers.
            if one.is_sidecar() {
                running = sum(running, own);
                started = sum(started, own);
                peak = peak.max(started);
            } else {
                peak = peak.max(sum(started, own));
            }
        }
        let amount = running.max(peak)?;
        let overhead = pod.spec.overhead.filter(|_| !amount.is_zero()).and_then(amount_of);
        Some(Self { amount: amount.plus(overhead.unwrap_or_default()), containers })
    }
}

/// A limit that is too low for the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The limit.
    pub limit: Limit,
    /// The size of the agents.
    pub need: Quantity,
    /// The minimum limit for the agents.
    pub least: Quantity,
    /// The language's field in the specification, if its volume may be a claim.
    pub claim: Option<&'static str>,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit: Limit { amount, containers }, need, least, claim } = self;
        write!(
            f,
            "the pod's limit of ephemeral storage is {amount} (sum of its containers' limits; those with one: \
             {containers}), and the agents need {need}, with {RESERVE} for the pod itself: the kubelet would \
             evict the pod; raise resources.limits[ephemeral-storage] so that the sum is at least {least}"
        )?;
        match claim {
            Some(field) => write!(f, ", or set spec.{field}.volumeClaimTemplate of the Instrumentation"),
            None => Ok(()),
        }
    }
}

/// A container's limit. Most have none, which is checked without parsing.
fn limit(resources: &RawValue) -> Option<Quantity> {
    let text = resources.get();
    if !text.contains(EPHEMERAL_STORAGE) && !text.contains('\\') {
        return None;
    }
    Asked::of_container(Some(resources)).limits.get(EPHEMERAL_STORAGE)
}

fn amount_of(amounts: &RawValue) -> Option<Quantity> {
    Amounts::read(Some(amounts)).get(EPHEMERAL_STORAGE)
}

fn sum(one: Option<Quantity>, other: Option<Quantity>) -> Option<Quantity> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.plus(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limit_of(spec: &Value) -> String {
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        Limit::of(&pod)
            .map_or_else(|| "none".to_owned(), |limit| format!("{} by {}", limit.amount, limit.containers))
    }

    fn container(name: &str, limit: &str) -> Value {
        json!({"name": name, "resources": {"limits": {"ephemeral-storage": limit}}})
    }

    fn sidecar(name: &str, limit: &str) -> Value {
        let mut sidecar = container(name, limit);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    }

    #[test]
    fn a_single_limited_container_limits_the_pod() {
        let free = json!({"name": "app", "resources": {"limits": {"cpu": "1"}, "requests": {"ephemeral-storage": "9Gi"}}});
        assert_eq!(limit_of(&json!({"containers": [free]})), "none");
        let spec = json!({"containers": [free, container("log", "20Mi")]});
        assert_eq!(limit_of(&spec), "20Mi by log");
        let spec = json!({"containers": [container("app", "1Gi"), container("log", "24Mi")]});
        assert_eq!(limit_of(&spec), "1048Mi by app, log");
    }

    #[test]
    fn an_init_container_is_counted_alone_and_a_native_sidecar_with_all_later_containers() {
        let app = || [container("app", "30Mi")];
        let with = |init: &[Value]| limit_of(&json!({"containers": app(), "initContainers": init}));
        assert_eq!(with(&[container("init", "20Mi")]), "30Mi by app, init");
        assert_eq!(with(&[container("init", "50Mi")]), "50Mi by app, init");
        assert_eq!(with(&[sidecar("mesh", "5Mi")]), "35Mi by app, mesh");
        let both = [sidecar("mesh", "5Mi"), container("init", "40Mi")];
        assert_eq!(with(&both), "45Mi by app, mesh, init");
        let alone = json!({"containers": [{"name": "app"}], "initContainers": [container("init", "50Mi")]});
        assert_eq!(limit_of(&alone), "50Mi by init");
    }

    #[test]
    fn limits_of_the_whole_pod_are_not_used_and_its_overhead_is() {
        let whole = json!({"limits": {"ephemeral-storage": "1Mi"}});
        let overhead = json!({"ephemeral-storage": "6Mi", "cpu": "1"});
        let free = json!({"containers": [{"name": "app"}], "resources": whole, "overhead": overhead});
        assert_eq!(limit_of(&free), "none");
        let limited = |limit| json!({"containers": [container("app", limit)], "resources": whole, "overhead": overhead});
        assert_eq!(limit_of(&limited("30Mi")), "36Mi by app");
        assert_eq!(limit_of(&limited("0")), "0 by app");
    }
}
