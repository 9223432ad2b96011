//! The second step: builds the patch for a decision.

use std::cell::OnceCell;

use super::{
    agents, autoscaler,
    decide::Decision,
    edit::PodEdit,
    finding::Finding,
    injection::Injection,
    note::Note,
    outcome::Outcome,
    patch,
    resource::PodFacts,
    secrets, stamp, storage, warning,
    workload::{self, Owners},
};

/// Builds the patch and the findings.
pub fn build(decision: Decision<'_>, owners: &dyn Owners) -> Outcome {
    let Decision { input, annotations, plans, mut findings } = decision;
    if plans.is_empty() && findings.is_empty() {
        return Outcome::default();
    }
    let with_uids = plans.iter().any(|plan| plan.instrumentation.resource.with_uids);
    let facts = PodFacts {
        pod: input.pod,
        namespace: input.namespace,
        workload: workload::chain(input.pod, input.namespace, with_uids, owners),
        init_resources: input.settings.init_resources,
        sizes: &input.settings.sizes,
    };
    let demand = OnceCell::new();
    let mut edit = PodEdit::new(input.pod);
    for plan in &plans {
        let mut injection = Injection {
            plan,
            annotations: &annotations,
            namespace: input.catalogue.namespace(input.namespace),
            facts: &facts,
            demand: &demand,
            edit: &mut edit,
            findings: &mut findings,
        };
        match secrets::check(&injection) {
            Ok(()) => agents::inject(&mut injection),
            Err(reason) => injection.report_all(reason),
        }
        injection.note_image();
        if let Some(note) = &plan.note {
            injection.note(note.clone());
        }
    }
    note_unlearned(&mut findings, &facts.workload);
    storage::warn_of_pod(&mut findings, &edit);
    warning::add(&mut findings, &plans, &edit);
    let mut stamp = if input.settings.stamp { stamp::of(&findings) } else { stamp::Stamp::default() };
    let own = &input.pod.metadata.annotations;
    stamp.1.retain(|one| stamp::has_room(own, &[], one));
    // A stamp may have been copied with other annotations: only the injection decides.
    let is_injected = findings.iter().any(|finding| finding.reason.is_injected());
    let carries = |(key, value): &(&str, String)| own.get(key) == Some(value.as_str());
    let is_stamped = !is_injected && !stamp.1.is_empty() && stamp.1.iter().all(carries);
    let evict = autoscaler::annotation(&edit).filter(|_| input.settings.safe_to_evict);
    let evict = evict.filter(|one| stamp::has_room(own, &stamp.1, one));
    Outcome { patch: patch::operations(&edit, &stamp, evict), findings, is_stamped }
}

/// Adds notes about owner lookups that timed out.
fn note_unlearned(findings: &mut [Finding], workload: &workload::Workload) {
    if let Some(finding) = findings.iter_mut().find(|finding| finding.reason.is_injected()) {
        let notes = workload.unlearned.iter().map(|owner| Note::OwnerNotLearned { owner: owner.clone() });
        finding.notes.extend(notes);
    }
}
