//! SDK only: the variables, for applications that bring their own SDK.

use super::Language;
use crate::{
    edit::Place,
    job::Job,
    note::{self, Note},
    reason::Reason,
    target::{self, Own},
};
use otel_webhook_api::Settings;

/// The row of SDK-only injection in the language table.
pub const ROW: Language = Language {
    name: "sdk",
    inject: "inject-sdk",
    containers: "sdk-container-names",
    defaults: None,
    enabled_by_default: true,
    exports_from_target: true,
    in_init_containers: true,
    marks: &[],
    settings: |_| Settings::default(),
    inject_into: inject,
};

fn inject(job: &mut Job<'_, '_>) {
    if let Err(reason) = job.instrumentation().exporter.check_pod(job.facts.pod, &job.edit.volumes) {
        return job.report_all(reason);
    }
    for &place in &job.plan.targets {
        match inject_target(job, place) {
            Ok((reason, notes)) => job.report(place, reason, notes),
            Err(reason) => job.report(place, reason, Vec::new()),
        }
    }
}

fn inject_target(job: &mut Job<'_, '_>, place: Place) -> Result<(Reason, Vec<Note>), Reason> {
    if let Some(reason) = left_out_for_attributes(job, place) {
        return Err(reason);
    }
    let before = job.target(place)?.edits();
    target::check(job, place, &[])?;
    // The operator looks for it in regular containers to know a pod that was given variables alone (D29).
    target::instrument(job, place, &Own { node_name: !place.init, ..Own::NOTHING })?;
    // Another language has given the container all of it.
    if job.target(place)?.edits() == before {
        return Ok((Reason::NothingToAdd, Vec::new()));
    }
    Ok((Reason::Injected, note::certificates(job).collect()))
}

/// Another language was left out of the container because its attributes cannot
/// be extended. Setting them now would let that language in at a second review.
fn left_out_for_attributes(job: &Job<'_, '_>, place: Place) -> Option<Reason> {
    let container = job.name(place);
    let here = job.findings.iter().filter(|finding| finding.container.as_deref() == Some(container));
    let mut reasons = here.map(|finding| &finding.reason);
    let same = |reason: &&Reason| matches!(reason, Reason::OptionalReference { variable } if variable == target::RESOURCE_ATTRIBUTES);
    reasons.find(same).cloned()
}
