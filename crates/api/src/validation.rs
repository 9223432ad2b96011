//! Validation of an Instrumentation: errors and warnings.
//!
//! ```text
//! object ─ schema ──> types, values and patterns of the CRD
//!        └ rules ───> how fields depend on each other, and what a pod can have
//! ```
//!
//! All errors are reported, not only the first. A message names the value and
//! what is valid; the path of the field comes with it. Values of variables
//! are never shown: they may be secrets.

mod agents;
mod claim;
mod declarative;
mod exporter;
mod image;
mod judge;
mod language;
mod opt_in;
mod reach;
mod resources;
mod sampler;
mod schema;
mod secret;
mod security;
mod selector;
mod source;
mod text;
mod variables;
mod verdict;

use serde_json::Value;

pub use image::check as check_images;
use judge::judge;
pub use language::warn_of_sizes;
pub use opt_in::check_namespaces;
pub use reach::Reach;
pub use security::{Privilege, privileges};
pub use text::{nearest, suggestion};
pub use verdict::{Cause, Problem, Verdict, Warning};
pub use verdict::{Unusable, unusable};

/// Validates an object, before or after defaulting: defaults
/// are treated as set. `old` is the object before an
/// update; an update is rejected only for errors that the old object did not have.
pub fn validate(new: &Value, old: Option<&Value>) -> Verdict {
    if !new["metadata"]["deletionTimestamp"].is_null() {
        // It is being deleted, and its finalizers have to be removed, whatever errors it has.
        return Verdict::default();
    }
    let mut verdict = judge(new);
    if let Some(old) = old {
        verdict.forgive(judge(old).errors);
    }
    verdict
}

#[cfg(test)]
mod tests;
