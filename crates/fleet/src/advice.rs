//! When no restart of a workload with outdated pods is advised: its new pods would not get agents that work.

use std::collections::{HashMap, HashSet};

use otel_webhook_inject::pause::Pause;
use serde::Serialize;

use crate::{
    report::{Report, WorkloadRow},
    state::Missed,
    workload::Workload,
};

/// The code of a workload of which restarts are stopped.
const STOPPED: &str = "RestartStopped";

/// Why no restart of a workload is advised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotAdvised {
    /// The code.
    pub code: &'static str,
    /// What a restart would do, and what to do first, as a sentence.
    pub message: String,
}

/// What is known of an installation apart from its pods.
#[derive(Debug, Default)]
pub struct Outside {
    /// Why no review reaches the webhook; `None` if reviews reach it, or if that is not known.
    pub outage: Option<String>,
    /// Why restarts are stopped, by `namespace/name` of the Instrumentation.
    pub stopped: HashMap<String, String>,
    /// Workloads with the annotation `otel-webhook/restart: never`.
    pub never: HashSet<Workload>,
    /// Namespaces with it.
    pub never_in: HashSet<String>,
}

impl NotAdvised {
    /// Injection into new pods is paused.
    pub fn paused(by: &Pause) -> Self {
        let message = format!("wait: injection is paused by {by}, so a restart would remove the agent");
        Self { code: "Paused", message }
    }

    /// New pods are not sent to the webhook.
    pub fn not_selected() -> Self {
        let message = "first let the webhook receive its pods: otel-webhook check names the selector";
        Self { code: Missed::NotSelected.code(), message: message.to_owned() }
    }

    /// New pods would lack an agent that running ones have.
    pub(crate) fn removes_agent(language: &str, why: &str) -> Self {
        let message = format!("a restart would remove the agent for {language}: {why}");
        Self { code: "WouldRemoveAgent", message }
    }

    /// New pods fail because of their agents.
    pub(crate) fn agent_fails(pod: &str, code: &str) -> Self {
        let message =
            format!("first mend the agent: pod {pod} with the current configuration fails with {code}");
        Self { code: "AgentFails", message }
    }
}

impl Report {
    /// Takes back the commands that would restart workloads at a wrong time.
    pub fn withhold(&mut self, outside: &Outside) {
        for row in &mut self.workloads {
            if row.state.is_outdated() && row.not_advised.is_none() {
                row.withhold(outside.not_advised(row));
            }
        }
    }
}

impl WorkloadRow {
    /// Whether its command was taken back since restarts are stopped.
    pub fn is_stopped(&self) -> bool {
        self.not_advised.as_ref().is_some_and(|not_advised| not_advised.code == STOPPED)
    }

    /// Takes back the command, if there is a reason.
    pub(crate) fn withhold(&mut self, not_advised: Option<NotAdvised>) {
        let Some(not_advised) = not_advised else { return };
        if let Some(command) = self.command.take() {
            for failure in &mut self.failures {
                failure.remedy = failure.remedy.replace(&command, &not_advised.message);
            }
        }
        self.not_advised = Some(not_advised);
    }
}

impl Outside {
    fn not_advised(&self, row: &WorkloadRow) -> Option<NotAdvised> {
        if let Some(restart) = row.restart.as_ref().filter(|restart| restart.code == STOPPED) {
            return Some(NotAdvised { code: STOPPED, message: restart.message.clone() });
        }
        if let Some(outage) = &self.outage {
            let message = format!("first let reviews reach the webhook: {outage}");
            return Some(NotAdvised { code: "WebhookUnavailable", message });
        }
        let names = row.languages.iter().filter_map(|language| language.instrumentation.as_ref());
        let mut stopped = names.filter_map(|name| Some((name, self.stopped.get(name)?)));
        if let Some((name, why)) = stopped.next() {
            let message = format!("restarts for Instrumentation {name} are stopped: {why}");
            return Some(NotAdvised { code: STOPPED, message });
        }
        let is_never = self.never.contains(&row.workload) || self.never_in.contains(&row.workload.namespace);
        is_never.then(|| NotAdvised {
            code: "RestartNever",
            message: "it has the annotation otel-webhook/restart: never; ask its owner".to_owned(),
        })
    }
}
