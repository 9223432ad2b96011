//! The status of an Instrumentation.
//!
//! Conditions have the standard shape, and `observedGeneration` is only in them: kstatus, by which Flux and others wait
//! for what they apply, treats `Stalled` and `Reconciling`, and a `status.observedGeneration` that is older than the
//! object, as an unfinished or failed object. Pods that are not up to date are neither.

use jiff::Timestamp;
use serde_json::{Value, json};

use otel_webhook_fleet::{
    count::sentence,
    mistakes::{MOST_IN_STATUS, MistakeRow},
    report::{Counts, InstrumentationRow},
    restart::{Progress, Stop, annotations},
    workload::Workload,
};
use otel_webhook_inject::catalogue::Stored;

/// The field manager of what this writes.
pub const MANAGER: &str = "otel-webhook-controller";

/// The types of the conditions.
const READY: &str = "Ready";
const UP_TO_DATE: &str = "UpToDate";
const IN_PROGRESS: &str = "RestartInProgress";
const STOPPED: &str = "RestartStopped";
const DATA: &str = "DataArrives";
const OWN: [&str; 5] = [READY, UP_TO_DATE, DATA, IN_PROGRESS, STOPPED];

/// What a status is made of.
#[derive(Clone, Copy)]
pub struct Input<'t> {
    /// The pods.
    pub row: &'t InstrumentationRow,
    /// Which workloads may be named to readers of the object.
    pub named: Named<'t>,
    /// The Instrumentation as the webhook knows it.
    pub stored: Option<&'t Stored>,
    /// Its restarts.
    pub restart: Restart<'t>,
    /// Its mistakes and those of its namespace, the worst first; `None` if they are not reported.
    pub mistakes: Option<&'t [&'t MistakeRow]>,
}

/// Which workloads a status names. It is read by those who may read its namespace.
#[derive(Clone, Copy)]
pub enum Named<'t> {
    /// Those of this namespace; the others are counted.
    Of(&'t str),
    /// All.
    All,
}

impl Named<'_> {
    fn has(self, workload: &Workload) -> bool {
        match self {
            Self::Of(namespace) => workload.namespace == namespace,
            Self::All => true,
        }
    }

    /// What failed and why, or that another namespace has it.
    fn sentence(self, stop: &Stop) -> String {
        if self.has(&stop.workload) {
            return stop.to_string();
        }
        "a workload of another namespace failed; its Event RestartStopped has the reason".to_owned()
    }
}

/// The restarts of an Instrumentation.
#[derive(Clone, Copy)]
pub enum Restart<'t> {
    /// There are none.
    None,
    /// A new leader has not planned them yet; what the last one wrote stays.
    Unplanned,
    /// How far they are.
    Planned(&'t Progress),
}

/// Returns the status that an Instrumentation has to have; none if `before` is that already.
pub fn of(input: Input<'_>, generation: i64, before: &Value, now: Timestamp) -> Option<Value> {
    let Input { row, named, stored, restart, mistakes } = input;
    let (planned, is_unplanned) = match restart {
        Restart::None => (None, false),
        Restart::Unplanned => (None, true),
        Restart::Planned(progress) => (Some(progress), false),
    };
    let restarts = planned.map(|progress| [in_progress(progress, named), stopped(progress, named)]);
    let own = [ready(stored), up_to_date(row.pods)].into_iter().chain(data_arrives(row.pods));
    let own = own.chain(restarts.into_iter().flatten());
    let own = own.map(|condition| condition.at(generation, before, now));
    let known = before["conditions"].as_array().into_iter().flatten();
    let kind = |condition: &Value| OWN.into_iter().find(|kind| condition["type"] == *kind);
    let others = known.clone().filter(|condition| kind(condition).is_none());
    let kept = known
        .filter(|condition| is_unplanned && [Some(IN_PROGRESS), Some(STOPPED)].contains(&kind(condition)));
    let conditions: Vec<_> = others.cloned().chain(own).chain(kept.cloned()).collect();
    let restart = planned.map(|progress| {
        json!({
            "hash": progress.config,
            "done": progress.done,
            "total": progress.total,
            "stoppedBy": progress.stop.as_ref().map(|stop| named.sentence(stop)),
        })
    });
    let workloads: Vec<_> = row.workloads.iter().filter(|one| named.has(&one.workload)).collect();
    let status = json!({
        "pods": row.pods,
        "workloads": workloads,
        "more": row.more + row.workloads.len() - workloads.len(),
        "mistakes": mistakes.map(|all| all.iter().take(MOST_IN_STATUS).map(|row| mistake(row)).collect::<Vec<_>>()),
        "moreMistakes": mistakes.map(|all| all.len().saturating_sub(MOST_IN_STATUS)),
        // Without restarts it is removed.
        "restart": if is_unplanned { before["restart"].clone() } else { json!(restart) },
        "conditions": conditions,
    });
    let is_same =
        status.as_object().into_iter().flatten().all(|(field, value)| before[field] == as_stored(value));
    (!is_same).then(|| {
        let mut status = status;
        status["lastUpdated"] = json!(seconds(now));
        status
    })
}

fn mistake(row: &MistakeRow) -> Value {
    /// A longer message is truncated.
    const LONGEST: usize = 500;
    let MistakeRow { object, finding } = row;
    let message: String = format!("{}; {}", finding.message, finding.remedy).chars().take(LONGEST).collect();
    json!({"kind": object.kind, "name": object.name, "code": finding.code, "message": message})
}

/// A field as the API server stores it: without members that are null.
fn as_stored(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            set.map(|(name, value)| (name.clone(), as_stored(value))).collect()
        }
        Value::Array(items) => items.iter().map(as_stored).collect(),
        other => other.clone(),
    }
}

/// A condition without its times.
struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// Whether the specification can be used: never a matter of pods.
fn ready(stored: Option<&Stored>) -> Condition {
    let problems = stored.map(Stored::problems).unwrap_or_default();
    let said = problems.iter().map(|(language, problem)| match *language {
        "all" => (*problem).to_owned(),
        language => format!("{language}: {problem}"),
    });
    let message = said.collect::<Vec<_>>().join("; ");
    match stored {
        Some(Stored::Invalid { .. }) => {
            Condition { kind: READY, status: "False", reason: "Invalid", message }
        }
        _ if problems.is_empty() => Condition {
            kind: READY,
            status: "True",
            reason: "Valid",
            message: "the specification can be used".to_owned(),
        },
        _ => Condition { kind: READY, status: "False", reason: "PartlyInvalid", message },
    }
}

fn up_to_date(pods: Counts) -> Condition {
    let (status, reason) = if pods.stale + pods.missed > 0 {
        ("False", "PodsOutdated")
    } else if pods.unconfirmed > 0 {
        ("Unknown", "PodsUnconfirmed")
    } else {
        ("True", "PodsUpToDate")
    };
    Condition { kind: UP_TO_DATE, status, reason, message: sentence(pods) }
}

/// Whether data of all pods arrives of which that is known; none without a source.
fn data_arrives(pods: Counts) -> Option<Condition> {
    let (heard, silent) = pods.heard.zip(pods.silent)?;
    let (status, reason) = match (heard, silent) {
        (_, 1..) => ("False", "PodsSilent"),
        (1.., _) => ("True", "PodsHeard"),
        _ => ("Unknown", "NotKnown"),
    };
    let unknown = (pods.injected + pods.stale).saturating_sub(heard + silent);
    let message = format!("{heard} pods heard, {silent} silent, {unknown} not known");
    Some(Condition { kind: DATA, status, reason, message })
}

fn in_progress(progress: &Progress, named: Named<'_>) -> Condition {
    let Progress { done, total, left, refused, refusal, obstacle, .. } = progress;
    let (status, reason) = if progress.is_stopped_for_all {
        ("False", "RestartStopped")
    } else if let Some((reason, _)) = obstacle {
        ("True", *reason)
    } else if done + left + refused < *total {
        ("True", "WorkloadsOutdated")
    } else if *refused > 0 {
        ("False", "WorkloadsRefused")
    } else if *left > 0 {
        ("False", "WorkloadsNotUpToDate")
    } else {
        ("False", "WorkloadsRestarted")
    };
    let left = (*left > 0).then(|| format!("; {left} restarted, but not up to date and healthy"));
    let refusal = refusal.as_ref().map(|refusal| {
        let such = if named.has(&refusal.workload) { format!(", such as {refusal}") } else { String::new() };
        format!("; {refused} refused{such}")
    });
    let obstacle = obstacle.as_ref().map(|(_, why)| format!("; waits: {why}"));
    let more: String = left.into_iter().chain(refusal).chain(obstacle).collect();
    Condition {
        kind: IN_PROGRESS,
        status,
        reason,
        message: format!("{done} of {total} workloads restarted{more}"),
    }
}

fn stopped(progress: &Progress, named: Named<'_>) -> Condition {
    match &progress.stop {
        Some(stop) => Condition {
            kind: STOPPED,
            status: "True",
            reason: "PodsFail",
            message: format!(
                "{}{}; restarts go on after the next change of the configuration, or with another value of the \
                 annotation {}",
                if progress.is_stopped_for_all { "" } else { "in its namespace only: " },
                named.sentence(stop),
                annotations::RESUME
            ),
        },
        None => Condition {
            kind: STOPPED,
            status: "False",
            reason: "NotStopped",
            message: if progress.done == 0 {
                "no restart is complete yet".to_owned()
            } else {
                "restarted workloads are healthy".to_owned()
            },
        },
    }
}

impl Condition {
    /// Returns the condition. The time of its last transition is kept unless its status changes.
    fn at(self, generation: i64, before: &Value, now: Timestamp) -> Value {
        let known = before["conditions"].as_array().into_iter().flatten();
        let known = known.into_iter().find(|known| known["type"] == self.kind);
        let since =
            known.filter(|known| known["status"] == self.status).map(|known| &known["lastTransitionTime"]);
        json!({
            "type": self.kind,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": generation,
            "lastTransitionTime": since.cloned().unwrap_or_else(|| json!(seconds(now))),
        })
    }
}

fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

#[cfg(test)]
mod tests;
