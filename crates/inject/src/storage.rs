//! Ephemeral storage: whether the agents fit into a pod's limit.
//!
//! The kubelet adds up what a pod uses (writable layers, logs, emptyDir
//! volumes on disk) and evicts it when that is more than the limit of the pod
//! pod. That limit is the sum of the containers' limits for
//! `ephemeral-storage`, however few have one: a single limited container
//! limits the pod. The files of an emptyDir never count against the limit of
//! one container.

pub mod limit;

use limit::{Limit, RESERVE, Shortage};

use super::{
    edit::PodEdit, finding::Finding, injection::Injection, note::Note, reason::Reason,
    settings::InitResources, shown::Names,
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
