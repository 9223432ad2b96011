//! A cluster as `check`, `explain` and `status` see it: read once, with the permissions of the user.
//!
//! ```text
//! reader ──> facts    webhook configurations, Services, the webhook's own pods and flags
//!        └─> known    namespaces, Instrumentations, limits ──> the decision about a new pod
//! facts + known ──> facts::caveats   what the results do not know
//! known + pods  ──> fleet    states of running pods, counted by crates/fleet
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "`json!` makes a value, and a test reads better without the &"
    )
)]

pub mod arrival;
pub mod facts;
pub mod flags;
pub mod fleet;
pub mod known;
pub mod object;
pub mod owners;
mod progress;
pub mod reader;
pub mod running;
