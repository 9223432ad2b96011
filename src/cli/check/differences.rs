//! Which of the numbered differences from the operator (docs/injection.md) change a workload's next pod.
//!
//! They are derived from the pod, its namespace and the findings. Some cannot be seen in a pod: D10 is about
//! time, D11 about unknown fields, D22 about storing Instrumentations. D40 is in nearly every pod, and makes a difference
//! only when an init container runs again.

mod by_finding;
mod by_instrumentation;
mod by_pod;
mod case;
mod seen;

use std::borrow::Cow;

pub use case::{Case, Difference};
use seen::Seen;

/// A rule: whether a case has a difference.
type Rule = fn(&Seen<'_>) -> bool;

/// The rules, by number.
static RULES: &[(u8, Rule)] = &[
    (1, by_pod::original_kept),
    (2, by_finding::every_target_skipped),
    (3, by_pod::extension_has_pull_policy),
    (4, by_pod::has_node_name),
    (5, by_finding::names_unknown_or_padded),
    (6, by_pod::original_attributes_kept),
    (7, by_pod::attribute_with_equals_sign),
    (8, |seen| seen.has("NamespaceLanguageIgnored")),
    (9, by_instrumentation::chosen_among_several),
    (12, by_pod::attribute_would_be_repeated),
    (13, by_pod::variable_would_be_repeated),
    (14, by_instrumentation::sets_what_is_extended),
    (15, by_finding::first_target_skipped),
    (16, by_pod::odd_attributes),
    (17, by_finding::would_be_invalid),
    (18, by_finding::injected_in_part),
    (19, by_pod::owner_in_attributes),
    (20, by_finding::certificates_not_checked),
    (21, by_finding::other_language_fails),
    (23, |seen| seen.case.outcome.patch != seen.case.exact.patch),
    (24, by_pod::default_container_is_not_first),
    (25, |seen| seen.has("WindowsPod") || seen.has("ModuleLacksArm64")),
    (26, by_pod::extended_twice),
    (27, by_pod::replica_set_of_another),
    (28, by_instrumentation::image_follows_default),
    (29, by_pod::node_name_added),
    (30, by_finding::helpers_skipped),
    (31, by_pod::token_mounted),
    (32, by_finding::bounded_by_namespace),
    (33, |seen| seen.has("PodTooLarge")),
    (34, by_instrumentation::attribute_encoded),
    (35, by_finding::image_mounted),
    (36, by_finding::opted_in_by_selector),
    (37, by_finding::opted_in_or_out_by_label),
    (38, by_finding::agent_of_the_instrumentation),
    (39, by_finding::image_of_the_namespace),
    (41, by_finding::must_not_run_as_root),
    (42, by_pod::sidecar_is_native),
    (43, by_pod::older_folder_of_dotnet),
];

/// Returns the differences of a case, by number.
pub fn of(case: &Case<'_>) -> Vec<Difference> {
    if !case.outcome.is_asked() {
        return Vec::new();
    }
    let mut after = Cow::Borrowed(case.pod);
    let patch = &case.outcome.patch.operations();
    if !patch.is_empty() && json_patch::patch(after.to_mut(), patch).is_err() {
        return Vec::new();
    }
    let seen = Seen { case, after: &after };
    RULES.iter().filter(|(_, rule)| rule(&seen)).map(|(number, _)| Difference(*number)).collect()
}

#[cfg(test)]
mod tests;
