//! The second step: builds the patch for a decision.

use std::{cell::OnceCell, mem, rc::Rc};

use super::{
    agents,
    decide::Decision,
    declarative,
    demand::Demand,
    edit::PodEdit,
    finding::Finding,
    growth::Excess,
    injection::Injection,
    input::Input,
    message,
    note::Note,
    outcome::Outcome,
    patch,
    reason::Reason,
    resource::{PodAttributes, PodFacts},
    secrets, stamp, storage, warning,
    workload::{self, Owners},
};

/// The annotation with the volumes that do not block scale-down.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

/// Builds the patch and the findings.
pub fn build(mut decision: Decision<'_>, owners: &dyn Owners) -> Outcome {
    if decision.plans.is_empty() && decision.findings.is_empty() {
        return Outcome::default();
    }
    let decided = mem::take(&mut decision.findings);
    let Decision { input, plans, .. } = &decision;
    let with_uids = plans.iter().any(|plan| plan.instrumentation.resource.with_uids);
    let facts = PodFacts {
        pod: input.pod,
        namespace: input.namespace,
        workload: workload::chain(input.pod, input.namespace, with_uids, owners),
        init_resources: input.settings.init_resources,
        sizes: &input.settings.sizes,
    };
    let Edited { edit, mut findings } = edited(&decision, decided, &facts);
    note_unlearned(&mut findings, &facts.workload);
    storage::warn_of_pod(&mut findings, &edit);
    warning::add(&mut findings, plans, &edit);
    finish(input, &edit, findings)
}

/// The edits of all languages, and their findings.
struct Edited<'p> {
    edit: PodEdit<'p>,
    findings: Vec<Finding>,
}

/// Edits the pod. A language that would make it too large is skipped, and the others stay: since they
/// share the variables of containers, the pod is edited again without it.
fn edited<'p>(decision: &Decision<'p>, decided: Vec<Finding>, facts: &PodFacts<'p>) -> Edited<'p> {
    let mut collected = Collected { decided, ..Collected::default() };
    collected.attributes.resize_with(decision.plans.len(), OnceCell::new);
    let mut too_large: Vec<Option<Excess>> = vec![None; decision.plans.len()];
    loop {
        match try_edit(decision, facts, &collected, &too_large) {
            Ok(edited) => return edited,
            Err((index, excess)) => too_large[index] = Some(excess),
        }
    }
}

/// What is the same whenever the pod is edited.
#[derive(Default)]
struct Collected<'p> {
    /// The findings of the decision.
    decided: Vec<Finding>,
    demand: OnceCell<Demand<'p>>,
    /// For each plan.
    attributes: Vec<OnceCell<Rc<PodAttributes<'p>>>>,
}

/// Edits the pod.
///
/// # Errors
/// The index of the first plan that would make the pod too large.
fn try_edit<'p>(
    decision: &Decision<'p>,
    facts: &PodFacts<'p>,
    collected: &Collected<'p>,
    too_large: &[Option<Excess>],
) -> Result<Edited<'p>, (usize, Excess)> {
    let input = &decision.input;
    let mut edit = PodEdit::new(input.pod, input.settings.max_pod_size);
    let mut findings = collected.decided.clone();
    for (index, plan) in decision.plans.iter().enumerate() {
        let mut injection = Injection {
            plan,
            annotations: &decision.annotations,
            namespace: input.catalogue.namespace(input.namespace),
            cluster: input.catalogue.cluster.as_deref(),
            facts,
            settings: input.settings,
            demand: &collected.demand,
            attributes: &collected.attributes[index],
            edit: &mut edit,
            findings: &mut findings,
        };
        let allowed = match too_large[index] {
            None => secrets::check(&injection).and_then(|()| declarative::check(&injection)),
            Some(excess) => Err(Reason::PodTooLarge { excess }),
        };
        match allowed {
            Ok(()) => agents::inject(&mut injection),
            Err(reason) => injection.report_all(reason),
        }
        injection.edit.check_size(0).map_err(|excess| (index, excess))?;
        for note in &plan.image_notes {
            injection.note_injected(note.clone());
        }
        for note in &plan.notes {
            injection.note(note.clone());
        }
    }
    Ok(Edited { edit, findings })
}

/// Adds the stamp and the annotation for the cluster autoscaler, and writes the patch.
fn finish(input: &Input<'_>, edit: &PodEdit<'_>, findings: Vec<Finding>) -> Outcome {
    let own = &input.pod.metadata.annotations;
    let mut stamp = stamp::Stamp::default();
    if input.settings.stamp {
        stamp = stamp::of(&findings, message::of(&findings), own, &edit.annotations);
    }
    if edit.check_size(stamp::size(&stamp)).is_err() {
        stamp = stamp::Stamp::default();
    }
    // A stamp may have been copied with other annotations: only the injection decides.
    let is_injected = findings.iter().any(|finding| finding.reason.is_injected());
    let is_stamped = !is_injected && stamp::is_on(&stamp, own);
    let evict = safe_to_evict(edit).filter(|_| input.settings.safe_to_evict);
    let evict = evict.filter(|(key, value)| {
        let added = stamp.annotations.iter().map(|(key, value)| (*key, value.as_str()));
        let files = edit.annotations.iter().map(|(key, value)| (key.as_str(), *value));
        stamp::has_room(own, added.chain(files), (key, value))
    });
    let evict = evict.filter(|(_, value)| edit.check_size(stamp::size(&stamp) + value.len()).is_ok());
    Outcome { patch: patch::operations(edit, &stamp, evict), findings, is_stamped }
}

/// Adds notes about owner lookups that timed out, or were too many.
fn note_unlearned(findings: &mut [Finding], workload: &workload::Workload) {
    if let Some(finding) = findings.iter_mut().find(|finding| finding.reason.is_injected()) {
        let notes = workload.unlearned.iter().map(|owner| Note::OwnerNotLearned { owner: owner.clone() });
        finding.notes.extend(notes);
        let count = workload.not_looked_up;
        finding.notes.extend((count > 0).then_some(Note::OwnersNotLookedUp { count }));
    }
}

/// The annotation with the pod's own value and the added emptyDir volumes. The cluster autoscaler does not remove a node
/// that has a pod with an emptyDir, unless the pod lists the volume as safe to evict. Added volumes are safe: the init
/// containers write them again.
fn safe_to_evict(edit: &PodEdit<'_>) -> Option<(&'static str, String)> {
    let own = edit.pod.metadata.annotations.get(SAFE_TO_EVICT).unwrap_or_default();
    let listed: Vec<&str> = own.split(',').map(str::trim).collect();
    let added = edit.volumes.iter().filter(|volume| volume.is_empty_dir).map(|volume| &*volume.name);
    let missing: Vec<&str> = added.filter(|name| !listed.contains(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let parts = [own.trim_end_matches([',', ' '])].into_iter().filter(|own| !own.is_empty()).chain(missing);
    Some((SAFE_TO_EVICT, parts.collect::<Vec<_>>().join(",")))
}
