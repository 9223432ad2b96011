//! Why a workload is restarted, waits, or is left as it is.

use std::fmt;

use jiff::Timestamp;
use otel_webhook_inject::pause::Pause;

use super::{change::InvalidConsent, ledger::Stop};
use crate::{report::RestartRow, workload::Workload};

/// What a plan says of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None of its pods is stale or missed.
    UpToDate,
    /// It is restarted now.
    Starts,
    /// Its restart began, and it is observed.
    Restarting {
        /// Since when.
        since: Timestamp,
        /// Why the API server refused its last step, such as for a `PodDisruptionBudget`.
        refused: Option<String>,
    },
    /// It is restarted later.
    Waits(Wait),
    /// It is not restarted.
    Left(Left),
}

/// What a restart waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The end of a pause of injection: a restart would remove agents.
    Paused(Pause),
    /// Pods that were not read yet, or of which it is not known what new ones would get.
    Unconfirmed(usize),
    /// The Instrumentation was changed shortly before.
    Settles(Timestamp),
    /// The canary.
    Canary(Workload),
    /// Its own rollout.
    Rollout,
    /// The webhook, which would not inject the configuration into new pods.
    Webhook(String),
    /// Restarts of other workloads, of which there are as many as allowed.
    AtOnce,
    /// A restart in its namespace.
    Namespace,
    /// As many restarts began within a minute as allowed.
    Rate,
}

/// Why a workload is not restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// No one consented.
    NoConsent,
    /// The annotation is not valid.
    InvalidConsent(InvalidConsent),
    /// A new pod would get no agent.
    NoAgent,
    /// Its kind.
    Kind,
    /// Another controller writes its template.
    Controlled(String),
    /// Its strategy is `Recreate`.
    Recreate,
    /// Its update strategy is `OnDelete`.
    OnDelete,
    /// Its partition keeps old pods.
    Partition,
    /// It is paused.
    Paused,
    /// A pod of it cannot start, and not because of a restart.
    Failing(String),
    /// It has received this change, and its pods are outdated all the same.
    AlreadyRestarted,
    /// Fewer than two pods are available, so none is evicted.
    TooFewAvailable,
    /// The API server refused to have its template written, with this message.
    Refused(String),
    /// The restarts of its Instrumentation were stopped.
    Stopped(Stop),
    /// The ConfigMap has no room for more restarts of Instrumentations of this namespace.
    LedgerFull,
}

impl Verdict {
    /// The code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UpToDate => "UpToDate",
            Self::Starts => "Starts",
            Self::Restarting { .. } => "Restarting",
            Self::Waits(wait) => wait.code(),
            Self::Left(left) => left.code(),
        }
    }
}

impl From<&Verdict> for RestartRow {
    fn from(verdict: &Verdict) -> Self {
        Self { code: verdict.code().to_owned(), message: verdict.to_string() }
    }
}

impl Wait {
    /// Whether it ends by a change of what is seen, and not by time.
    pub fn is_for_what_is_seen(&self) -> bool {
        matches!(self, Self::Paused(_) | Self::Unconfirmed(_) | Self::Rollout)
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Paused(_) => "InjectionPaused",
            Self::Unconfirmed(_) => "WaitsForConfirmation",
            Self::Settles(_) => "WaitsForInstrumentation",
            Self::Canary(_) => "WaitsForCanary",
            Self::Rollout => "WaitsForRollout",
            Self::Webhook(_) => "WaitsForWebhook",
            Self::AtOnce | Self::Namespace | Self::Rate => "WaitsForOthers",
        }
    }
}

impl Left {
    fn code(&self) -> &'static str {
        match self {
            Self::NoConsent => "NoConsent",
            Self::InvalidConsent(_) => "InvalidConsent",
            Self::NoAgent => "NoAgent",
            Self::Kind => "KindNotRestarted",
            Self::Controlled(_) => "Controlled",
            Self::Recreate => "Recreate",
            Self::OnDelete => "OnDelete",
            Self::Partition => "Partition",
            Self::Paused => "Paused",
            Self::Failing(_) => "Failing",
            Self::AlreadyRestarted => "AlreadyRestarted",
            Self::TooFewAvailable => "TooFewAvailable",
            Self::Refused(_) => "RestartRefused",
            Self::Stopped(_) => "RestartStopped",
            Self::LedgerFull => "LedgerFull",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate => write!(f, "up to date"),
            Self::Starts => write!(f, "is restarted now"),
            Self::Restarting { refused: Some(refused), .. } => {
                write!(f, "its pods are evicted one by one, which is not possible now: {refused}")
            }
            Self::Restarting { since, .. } => write!(f, "restarted at {since:.0}, and observed"),
            Self::Waits(wait) => write!(f, "waits: {wait}"),
            Self::Left(left) => write!(f, "not restarted: {left}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused(by) => write!(f, "injection is paused by {by}; a restart would remove agents"),
            Self::Unconfirmed(count) => write!(f, "{count} pods are unconfirmed"),
            Self::Settles(until) => write!(f, "the Instrumentation was changed; until {until:.0}"),
            Self::Canary(canary) => write!(f, "{canary} is restarted first, and observed"),
            Self::Rollout => {
                write!(f, "its last rollout is in progress, or not all of its pods are available")
            }
            Self::Webhook(why) => write!(f, "new pods might not get the configuration: {why}"),
            Self::AtOnce => write!(f, "as many workloads as allowed are being restarted"),
            Self::Namespace => write!(f, "as many workloads of the namespace as allowed are being restarted"),
            Self::Rate => write!(f, "as many restarts as allowed began within a minute"),
        }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConsent => write!(
                f,
                "no consent; annotate the workload or its namespace with otel-webhook/restart: rollout"
            ),
            Self::InvalidConsent(invalid) => invalid.fmt(f),
            Self::NoAgent => write!(f, "a new pod would get no agent"),
            Self::Kind => write!(f, "its kind is not restarted; delete its pods, or wait for the next run"),
            Self::Controlled(by) => write!(f, "{by} writes its template; restart that, or consent to evict"),
            Self::Recreate => {
                write!(f, "strategy Recreate ends all pods at once; restart it by hand, or consent to evict")
            }
            Self::OnDelete => write!(f, "update strategy OnDelete; delete its pods, or consent to evict"),
            Self::Partition => write!(f, "its partition keeps old pods; set it to 0, or consent to evict"),
            Self::Paused => write!(f, "it is paused; resume its rollout"),
            Self::Failing(pod) => write!(f, "pod {pod} cannot start"),
            Self::AlreadyRestarted => {
                write!(f, "it was restarted for this configuration already; see why its pods do not have it")
            }
            Self::TooFewAvailable => write!(f, "fewer than two pods are available; none is evicted"),
            Self::Refused(message) => write!(
                f,
                "the API server refused it: {message}; it is tried again after the next change of the specification, \
                 or with another value of the annotation otel-webhook/resume-restart"
            ),
            Self::Stopped(stop) => write!(f, "stopped by {stop}"),
            Self::LedgerFull => write!(
                f,
                "the ConfigMap of restarts has no room for more of the Instrumentations of this namespace; delete \
                 Instrumentations that are not used"
            ),
        }
    }
}
