//! The state of one language in one running pod.
//!
//! | has | a new pod would get | state |
//! |---|---|---|
//! | not read yet | anything | unconfirmed |
//! | anything but that of another injector | not known, since it is not readable | unconfirmed |
//! | an agent of another injector | anything | foreign |
//! | our agent, hash of another version | anything | unconfirmed |
//! | our agent | the same Instrumentation, same hash, or would if injection were not paused | injected |
//! | our agent | another hash or Instrumentation, or nothing | stale |
//! | nothing | an agent | missed |
//! | nothing | an agent, if injection were not paused | skipped |
//! | nothing | nothing | skipped |

use jiff::Timestamp;
use otel_webhook_inject::compiled::Freshness;
use serde::Serialize;

/// What a running pod has of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has<'p> {
    /// The pod was not read yet.
    Unread,
    /// No agent.
    Nothing,
    /// An agent that another injector, such as the operator, has added.
    Foreign,
    /// An agent that this webhook has added.
    Agent(Origin<'p>),
}

/// Where an agent comes from: an Instrumentation, and the hash of its configuration for the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'p> {
    /// `namespace/name` of the Instrumentation.
    pub instrumentation: &'p str,
    /// The hash.
    pub hash: &'p str,
}

/// What a new pod in place of the running one would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'p> {
    /// An agent.
    Agent(Origin<'p>),
    /// No agent while injection is paused, and else this one.
    Paused(Origin<'p>),
    /// No agent, by this reason code.
    Skipped(&'p str),
    /// Not known, since the user may not read what it depends on.
    Unknown,
}

/// The state of one language in one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It has the agent with the current configuration.
    Injected,
    /// It has no agent, and a new pod would not get one.
    Skipped,
    /// Another injector has injected it.
    Foreign,
    /// It was not read yet, its hash is of another version of the program, or what a new pod would get is not known.
    Unconfirmed,
    /// It has the agent with another configuration than a new pod would get.
    Stale,
    /// It has no agent, and a new pod would get one.
    Missed,
}

impl State {
    /// All states, from the best to the worst.
    pub const ALL: [Self; 6] =
        [Self::Injected, Self::Skipped, Self::Foreign, Self::Unconfirmed, Self::Stale, Self::Missed];

    /// Compares what a pod has with what a new one would get.
    pub fn of(has: Has<'_>, next: Next<'_>) -> Self {
        match (has, next) {
            (Has::Foreign, _) => Self::Foreign,
            (Has::Nothing, Next::Agent(_)) => Self::Missed,
            (Has::Nothing, Next::Skipped(_) | Next::Paused(_)) => Self::Skipped,
            (Has::Unread, _) | (Has::Nothing, Next::Unknown) => Self::Unconfirmed,
            (Has::Agent(agent), next) => Self::of_agent(agent, next),
        }
    }

    fn of_agent(agent: Origin<'_>, next: Next<'_>) -> Self {
        // Compared with itself, a hash is current unless it is of another version.
        if Freshness::of(agent.hash, agent.hash) == Freshness::Unknown {
            return Self::Unconfirmed;
        }
        match next {
            Next::Agent(next) | Next::Paused(next) if next == agent => Self::Injected,
            Next::Unknown => Self::Unconfirmed,
            _ => Self::Stale,
        }
    }

    /// Whether a restart of the workload changes the state, if a new pod would get an agent.
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::Stale | Self::Missed)
    }

    /// The name in metrics, tables and the status of an Instrumentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Skipped => "skipped",
            Self::Foreign => "foreign",
            Self::Unconfirmed => "unconfirmed",
            Self::Stale => "stale",
            Self::Missed => "missed",
        }
    }
}

/// Why a pod has no agent although a new one would get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missed {
    /// The selectors of the webhook configuration exclude it: a restart does not help.
    NotSelected,
    /// It was created before the Instrumentation.
    OlderThanInstrumentation,
    /// The webhook was not called, or did not answer in time.
    WebhookNotReached,
    /// The namespace or a selector opts in, and since when is not known.
    Unknown,
}

/// What is known about a pod that was missed.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// Whether the webhook configuration sends such pods to the webhook.
    pub is_selected: bool,
    /// When the pod was created.
    pub created: Timestamp,
    /// When the Instrumentation that a new pod would use was created.
    pub instrumentation: Option<Timestamp>,
    /// Whether the pod itself opts in, by its own annotation or label, or that of its template.
    pub opts_in_itself: bool,
}

impl Missed {
    /// Finds the reason.
    pub fn of(known: &Circumstances) -> Self {
        if !known.is_selected {
            return Self::NotSelected;
        }
        match known.instrumentation {
            // Both are in whole seconds: within one second their order is not known.
            Some(instrumentation) if known.created <= instrumentation => Self::OlderThanInstrumentation,
            Some(_) if known.opts_in_itself => Self::WebhookNotReached,
            _ => Self::Unknown,
        }
    }

    /// The code in tables, Events and JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotSelected => "NotSelected",
            Self::OlderThanInstrumentation => "OlderThanInstrumentation",
            Self::WebhookNotReached => "WebhookNotReached",
            Self::Unknown => "Unknown",
        }
    }

    /// What it means, and what to do.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::NotSelected => {
                "no webhook configuration sends such pods to the webhook: its selectors exclude them, or it is not \
                 installed; otel-webhook check says what to change"
            }
            Self::OlderThanInstrumentation => {
                "the pod was created before the Instrumentation; restart the workload"
            }
            Self::WebhookNotReached => {
                "the webhook was not called or did not answer in time when the pod was created; restart the workload"
            }
            Self::Unknown => {
                "the namespace or a selector opts in, which may be younger than the pod, or the webhook was not \
                 reached; restart the workload"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Origin<'_> = Origin { instrumentation: "shop/a", hash: "v1:00000001" };

    #[test]
    fn what_a_pod_has_is_compared_with_what_a_new_one_would_get() {
        let old = Origin { hash: "v1:00000002", ..NOW };
        let other = Origin { instrumentation: "shop/b", ..NOW };
        let unknown = Origin { hash: "v2:00000001", ..NOW };
        let none = Next::Skipped("NoInstrumentation");
        for (has, next, expected) in [
            (Has::Unread, Next::Agent(NOW), State::Unconfirmed),
            (Has::Foreign, Next::Agent(NOW), State::Foreign),
            (Has::Foreign, none, State::Foreign),
            (Has::Nothing, Next::Agent(NOW), State::Missed),
            (Has::Nothing, none, State::Skipped),
            (Has::Agent(NOW), Next::Agent(NOW), State::Injected),
            (Has::Agent(old), Next::Agent(NOW), State::Stale),
            (Has::Agent(other), Next::Agent(NOW), State::Stale),
            (Has::Agent(NOW), none, State::Stale),
            (Has::Nothing, Next::Paused(NOW), State::Skipped),
            (Has::Foreign, Next::Paused(NOW), State::Foreign),
            (Has::Agent(NOW), Next::Paused(NOW), State::Injected),
            (Has::Agent(old), Next::Paused(NOW), State::Stale),
            (Has::Agent(unknown), Next::Paused(NOW), State::Unconfirmed),
            (Has::Unread, Next::Paused(NOW), State::Unconfirmed),
            (Has::Agent(unknown), Next::Agent(NOW), State::Unconfirmed),
            (Has::Agent(unknown), none, State::Unconfirmed),
            (Has::Agent(NOW), Next::Unknown, State::Unconfirmed),
            (Has::Nothing, Next::Unknown, State::Unconfirmed),
            (Has::Foreign, Next::Unknown, State::Foreign),
        ] {
            assert_eq!(State::of(has, next), expected, "{has:?}, {next:?}");
        }
    }

    #[test]
    fn the_reason_of_a_missed_pod_is_only_what_can_be_known() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let known = Circumstances {
            is_selected: true,
            created: at(100),
            instrumentation: Some(at(50)),
            opts_in_itself: true,
        };
        for (known, expected) in [
            (known, Missed::WebhookNotReached),
            (Circumstances { opts_in_itself: false, ..known }, Missed::Unknown),
            (Circumstances { instrumentation: Some(at(100)), ..known }, Missed::OlderThanInstrumentation),
            (Circumstances { instrumentation: None, ..known }, Missed::Unknown),
            (
                Circumstances { is_selected: false, instrumentation: Some(at(100)), ..known },
                Missed::NotSelected,
            ),
        ] {
            assert_eq!(Missed::of(&known), expected, "{known:?}");
        }
    }
}
