//! The status of an Instrumentation.
//!
//! Conditions have the standard shape, and `observedGeneration` is only in them: kstatus, by which Flux and others wait
//! for what they apply, treats `Stalled` and `Reconciling`, and a `status.observedGeneration` that is older than the
//! object, as an unfinished or failed object. Pods that are not up to date are neither.

use jiff::Timestamp;
use serde_json::{Value, json};

use otel_webhook_fleet::{
    count::sentence,
    report::{Counts, InstrumentationRow},
};
use otel_webhook_inject::catalogue::Stored;

/// The field manager of what this writes.
pub const MANAGER: &str = "otel-webhook-controller";

/// The types of the conditions.
const READY: &str = "Ready";
const UP_TO_DATE: &str = "UpToDate";

/// Returns the status that an Instrumentation has to have; none if `before` is that already.
///
/// `stored` is the Instrumentation as the webhook knows it.
pub fn of(
    row: &InstrumentationRow,
    stored: Option<&Stored>,
    generation: i64,
    before: &Value,
    now: Timestamp,
) -> Option<Value> {
    let conditions = [ready(stored), up_to_date(row.pods)];
    let conditions = conditions.map(|condition| condition.at(generation, before, now));
    let kept = before["conditions"].as_array().into_iter().flatten();
    let is_own =
        |condition: &&Value| [READY, UP_TO_DATE].contains(&condition["type"].as_str().unwrap_or_default());
    let others = kept.filter(|condition| !is_own(condition)).cloned();
    let status = json!({
        "pods": row.pods,
        "workloads": row.workloads,
        "more": row.more,
        "conditions": others.chain(conditions).collect::<Vec<_>>(),
    });
    let is_same = status.as_object().into_iter().flatten().all(|(field, value)| before[field] == *value);
    (!is_same).then(|| {
        let mut status = status;
        status["lastUpdated"] = json!(seconds(now));
        status
    })
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
mod tests {
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_inject::{compiled::Shared, object};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn row(injected: usize, stale: usize) -> InstrumentationRow {
        let pods = Counts { matched: injected + stale, injected, stale, ..Counts::default() };
        InstrumentationRow { pods, ..InstrumentationRow::default() }
    }

    fn stored(spec: &Value) -> Stored {
        let object = json!({"metadata": {"namespace": "shop", "name": "inst"}, "spec": spec});
        object::instrumentation(&object, &DefaultImages::default(), &mut Shared::default())
    }

    fn condition<'s>(status: &'s Value, kind: &str) -> &'s Value {
        let all = status["conditions"].as_array().expect("conditions");
        all.iter().find(|condition| condition["type"] == kind).expect("the condition")
    }

    #[test]
    fn nothing_is_written_while_nothing_changes() {
        let valid = stored(&json!({}));
        let first = of(&row(3, 0), Some(&valid), 1, &Value::Null, at(0)).expect("a first status");
        assert_eq!(first["lastUpdated"], "1970-01-01T00:00:00Z");
        assert_eq!(of(&row(3, 0), Some(&valid), 1, &first, at(60)), None);
        let second = of(&row(2, 1), Some(&valid), 1, &first, at(60)).expect("another status");
        assert_eq!(second["lastUpdated"], "1970-01-01T00:01:00Z");
        assert_eq!(condition(&second, "UpToDate")["status"], "False");
        assert_eq!(condition(&second, "UpToDate")["message"], "3 pods: 2 injected, 1 stale");
        assert_eq!(condition(&second, "UpToDate")["lastTransitionTime"], "1970-01-01T00:01:00Z");
        assert_eq!(condition(&second, "Ready")["lastTransitionTime"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn ready_is_a_matter_of_the_specification_alone() {
        for (spec, status, reason, message) in [
            (json!({}), "True", "Valid", "the specification can be used"),
            (json!({"sampler": {"type": 7}}), "False", "Invalid", "invalid type: integer `7`"),
        ] {
            let status_of = of(&row(0, 5), Some(&stored(&spec)), 4, &Value::Null, at(0)).expect("a status");
            let ready = condition(&status_of, "Ready");
            assert_eq!((&ready["status"], &ready["reason"]), (&json!(status), &json!(reason)), "{ready}");
            assert!(ready["message"].as_str().expect("text").contains(message), "{ready}");
            assert_eq!(ready["observedGeneration"], 4);
        }
    }

    #[test]
    fn conditions_and_fields_of_others_stay() {
        let before = json!({"upgradeBlockedVersions": {"java": "1"}, "conditions": [{"type": "Theirs", "status": "True"}]});
        let status = of(&row(1, 0), None, 1, &before, at(0)).expect("a status");
        assert_eq!(status["conditions"][0], before["conditions"][0]);
        assert!(status.get("upgradeBlockedVersions").is_none(), "not in the patch, so not changed: {status}");
    }
}
