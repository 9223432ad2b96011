//! What a survey says of a workload.

use super::super::survey::{Next, Survey, Surveyed};
use crate::registration::{Hook, Labels, Registration};
use otel_webhook_inject::Finding;

/// Returns the findings about a new pod.
pub fn decided(workload: &Surveyed) -> &[Finding] {
    match &workload.next {
        Next::Decided(findings) => findings,
        Next::Unreadable(_) | Next::Unknown => &[],
    }
}

/// Returns the webhooks that select a new pod of a workload, in the order of their calls.
pub fn reviewers<'r>(workload: &Surveyed, survey: &Survey, registration: &'r Registration) -> Vec<&'r Hook> {
    let nothing = Labels::new();
    let namespace = survey.namespaces.get(&workload.subject.namespace).unwrap_or(&nothing);
    registration.reviewers(namespace, &workload.labels, !workload.own.is_empty())
}

/// Returns the languages that a new pod gets.
pub fn injected(workload: &Surveyed) -> Vec<&'static str> {
    let mut languages: Vec<_> =
        decided(workload).iter().filter(|one| one.reason.is_injected()).map(|one| one.language).collect();
    languages.dedup();
    languages
}

/// Returns whether a workload would be injected, but no webhook receives its pods.
pub fn is_unreviewed(workload: &Surveyed, survey: &Survey, registration: &Registration) -> bool {
    !injected(workload).is_empty()
        && survey.namespaces.contains_key(&workload.subject.namespace)
        && registration.pods().next().is_some()
        && reviewers(workload, survey, registration).is_empty()
}
