//! Why a pod is in its state.

use std::borrow::Cow;

use otel_webhook_inject::compiled::Freshness;

use crate::{
    injected::PAUSED,
    next::NextAgent,
    state::{Circumstances, Has, Missed, Next, State},
};

/// The code for a language that is no longer opted in to.
pub const NOT_ASKED: &str = "NotOptedIn";

/// The code of a hash that is missing or of another version. It stays unknown.
pub const UNKNOWN_HASH: &str = "UnknownHash";

/// A reason: a code, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The code; empty if there is nothing to say.
    pub code: &'static str,
    /// The sentence.
    pub message: Cow<'static, str>,
}

impl Cause {
    /// Nothing to say.
    pub const NONE: Self = Self::new("", "");

    const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message: Cow::Borrowed(message) }
    }

    /// Returns the reason for a state that depends on what the user may not read.
    pub fn not_readable(why: &str) -> Self {
        Self { code: "NotReadable", message: format!("not known, since {why}").into() }
    }

    /// Finds the reason for a state.
    pub fn of(
        state: State,
        has: Has<'_>,
        next: Next<'_>,
        next_agent: Option<&NextAgent>,
        circumstances: impl Fn() -> Circumstances,
    ) -> Self {
        match state {
            State::Injected => Self::NONE,
            State::Skipped => Self::of_skipped(next_agent),
            State::Foreign => Self::new(
                "OtherInjector",
                "another injector, such as the operator, or this webhook without --stamp, has injected it",
            ),
            State::Unconfirmed if matches!(has, Has::Unread) => {
                Self::new("NotRead", "the pod was not read yet")
            }
            State::Unconfirmed => Self::new(
                UNKNOWN_HASH,
                "the hash in its annotation otel-webhook/status is missing or of another version of the webhook; \
                 whether it is up to date is not known",
            ),
            // A restart would take the agent away instead of renewing it.
            State::Stale
                if matches!(next, Next::Agent(_) | Next::Paused(_)) && !circumstances().is_selected =>
            {
                Self::of_missed(Missed::NotSelected)
            }
            State::Stale => Self::of_stale(has, next, next_agent),
            State::Missed => Self::of_missed(Missed::of(&circumstances())),
        }
    }

    fn of_missed(missed: Missed) -> Self {
        Self::new(missed.code(), missed.sentence())
    }

    fn of_stale(has: Has<'_>, next: Next<'_>, next_agent: Option<&NextAgent>) -> Self {
        let (Has::Agent(agent), Next::Agent(next) | Next::Paused(next)) = (has, next) else {
            let Self { code, message } = Self::of_skipped(next_agent);
            return Self { code, message: format!("a new pod would get no agent: {message}").into() };
        };
        if agent.instrumentation != next.instrumentation {
            return Self {
                code: "OtherInstrumentation",
                message: format!(
                    "it was injected by {}; a new pod would use {}",
                    agent.instrumentation, next.instrumentation
                )
                .into(),
            };
        }
        debug_assert_eq!(Freshness::of(agent.hash, next.hash), Freshness::Stale);
        Self::new(
            "ConfigurationChanged",
            "the configuration of the Instrumentation, or an image of the installation, has changed since",
        )
    }

    fn of_skipped(next: Option<&NextAgent>) -> Self {
        match next {
            Some(NextAgent::Skipped { code, message, .. }) => Self { code, message: message.clone().into() },
            Some(NextAgent::Paused { message, .. }) => Self { code: PAUSED, message: message.clone().into() },
            _ => Self::new(NOT_ASKED, "neither the pod nor its namespace opts in to the language"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Origin;
    use jiff::Timestamp;

    const DOCUMENT: &str = include_str!("../../../docs/operations/status.md");

    fn of(state: State, has: Has<'_>, next: Next<'_>, is_selected: bool) -> &'static str {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let known =
            Circumstances { is_selected, created: at(2), instrumentation: Some(at(1)), opts_in_itself: true };
        Cause::of(state, has, next, None, || known).code
    }

    #[test]
    fn each_state_and_each_reason_is_documented() {
        let agent = |instrumentation| Origin { instrumentation, hash: "v1:00000001" };
        let other = Origin { hash: "v1:00000002", ..agent("shop/a") };
        let (has, next) = (Has::Agent(agent("shop/a")), Next::Agent(other));
        let missed = [
            Missed::NotSelected,
            Missed::OlderThanInstrumentation,
            Missed::WebhookNotReached,
            Missed::Unknown,
        ];
        let found = [
            (of(State::Stale, has, next, true), "ConfigurationChanged"),
            (of(State::Stale, has, Next::Agent(agent("shop/b")), true), "OtherInstrumentation"),
            (of(State::Stale, has, next, false), "NotSelected"),
            (of(State::Stale, has, Next::Skipped(""), false), "NotOptedIn"),
            (of(State::Foreign, Has::Foreign, next, true), "OtherInjector"),
            (of(State::Unconfirmed, has, next, true), "UnknownHash"),
            (of(State::Unconfirmed, Has::Unread, next, true), "NotRead"),
            (of(State::Missed, Has::Nothing, next, true), "WebhookNotReached"),
            (Cause::not_readable("").code, "NotReadable"),
        ];
        for (code, expected) in found {
            assert_eq!(code, expected);
        }
        let codes = found.iter().map(|(code, _)| *code).chain(missed.map(Missed::code));
        let names = State::ALL.iter().map(|state| state.name());
        for name in codes.chain(names) {
            assert!(
                DOCUMENT.contains(&format!("\n| `{name}` |")),
                "{name} is not in docs/operations/status.md"
            );
        }
    }
}
