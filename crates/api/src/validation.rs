//! Whether an Instrumentation can be taken, and what is worth a warning.
//!
//! ```text
//! object ─ schema ──> types, values and patterns, as the CRD has them
//!        └ rules ───> what fields mean to each other and to a pod
//! ```
//!
//! All errors are found, not only the first. A message names the value and
//! what is valid; the path of the field stands beside it. Values of variables
//! are never repeated: they may be secrets.

mod claim;
mod exporter;
mod image;
mod judge;
mod language;
mod path;
mod reach;
mod resources;
mod sampler;
mod schema;
mod secret;
mod security;
mod selector;
mod source;
mod text;
mod unusable;
mod variables;
mod verdict;

use serde_json::Value;

pub use image::check as check_images;
use judge::judge;
pub use language::warn_of_sizes;
pub use reach::Reach;
pub use text::suggestion;
pub use unusable::{Unusable, unusable};
pub use verdict::{Cause, Problem, Verdict, Warning};

/// Judges an object, which has been defaulted or will be: what defaulting
/// would fill in counts as if it were there. `old` is the object before an
/// update; an update is refused only for errors that it did not have.
pub fn validate(new: &Value, old: Option<&Value>) -> Verdict {
    if !new["metadata"]["deletionTimestamp"].is_null() {
        // Whatever is wrong with it, it is on its way out; finalizers have to come off.
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
