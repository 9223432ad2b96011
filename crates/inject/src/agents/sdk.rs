//! SDK only: the variables, for applications that contain an SDK.

use crate::{
    edit::Place,
    injection::Injection,
    note::Note,
    reason::Reason,
    target::{self, Own},
};

/// Sets the variables of every target.
pub fn inject(injection: &mut Injection<'_, '_>) {
    if let Err(reason) =
        injection.instrumentation().exporter.check_pod(injection.facts.pod, &injection.edit.volumes)
    {
        return injection.report_all(reason);
    }
    for &place in &injection.plan.targets {
        match inject_target(injection, place) {
            Ok((reason, notes)) => injection.report(place, reason, notes),
            Err(reason) => injection.report(place, reason, Vec::new()),
        }
        injection.edit.measure(place);
        if injection.edit.check_size(0).is_err() {
            return;
        }
    }
}

fn inject_target(injection: &mut Injection<'_, '_>, place: Place) -> Result<(Reason, Vec<Note>), Reason> {
    if let Some(reason) = left_out_for_attributes(injection, place) {
        return Err(reason);
    }
    let before = injection.target(place)?.edits();
    target::check(injection, place, &[])?;
    // The operator recognises SDK-only pods by this variable in regular containers (D29).
    let notes = target::instrument(injection, place, &Own { node_name: !place.init, ..Own::NOTHING })?;
    // Another language has added all variables.
    if injection.target(place)?.edits() == before {
        return Ok((Reason::NothingToAdd, Vec::new()));
    }
    Ok((Reason::Injected, notes))
}

/// Another language was skipped in the container because its attributes cannot
/// be extended. Setting them now would inject that language in a second review.
fn left_out_for_attributes(injection: &Injection<'_, '_>, place: Place) -> Option<Reason> {
    let variable = target::RESOURCE_ATTRIBUTES;
    let is_left_out = injection.edit.without_attributes.contains(&place);
    is_left_out.then(|| Reason::OptionalReference { variable: variable.to_owned() })
}
