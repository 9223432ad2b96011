//! Go: a privileged sidecar that attaches to the application's process.

use std::borrow::Cow;

use serde_json::json;

use crate::{
    added::{NewContainer, NewMount, mounts, pull_policy, variables},
    container::{check_root, sidecar_resources},
    edit::{Mounts, NewVolume, Place},
    env::{Entry, Env, SetBy},
    injection::Injection,
    language::{self, GO_SIDECAR},
    note::Note,
    reason::{Annotation, Reason},
    target::{self, RESOURCE_ATTRIBUTES},
    warning,
};

const KERNEL_DEBUG: &str = "kernel-debug";
const KERNEL_DEBUG_PATH: &str = "/sys/kernel/debug";
const EXECUTABLE: &str = "OTEL_GO_AUTO_TARGET_EXE";
const EXECUTABLE_ANNOTATION: &str = "otel-go-auto-target-exe";

/// Adds the sidecar for the first named container.
pub fn inject(injection: &mut Injection<'_, '_>) {
    // Of several containers the first is used. It has to exist in the pod (D5) and
    // be suitable for Go.
    let Some(place) = injection.plan.first_listed.filter(|place| injection.plan.targets.contains(place))
    else {
        return;
    };
    match check_pod(injection).and_then(|()| add_sidecar(injection, place)) {
        Ok(notes) => injection.report(place, Reason::Injected, notes),
        Err(reason) => injection.report(place, reason, Vec::new()),
    }
}

fn check_pod(injection: &Injection<'_, '_>) -> Result<(), Reason> {
    if injection.facts.pod.spec.share_process_namespace == Some(false) {
        return Err(Reason::ProcessNamespaceNotShared);
    }
    let list = injection.annotations.of_pod(language::GO.containers).unwrap_or_default();
    if list.contains(',') {
        let annotation = Annotation { key: language::GO.containers, of_namespace: false, is_label: false };
        return Err(Reason::SeveralContainers { annotation, containers: list.to_owned() });
    }
    if injection.enforced_level().is_some() {
        return Err(injection.rejected_by_level("the privileged Go agent".to_owned()));
    }
    injection.check_names(&[KERNEL_DEBUG], [GO_SIDECAR])
}

fn add_sidecar(injection: &mut Injection<'_, '_>, place: Place) -> Result<Vec<Note>, Reason> {
    let said = injection.prepared().security_context.as_ref().map(Cow::Borrowed);
    // The agent loads programs into the kernel, which requires all privileges on the node.
    let security_context = said.unwrap_or_else(|| Cow::Owned(json!({"privileged": true, "runAsUser": 0})));
    check_root(injection, &security_context)?;
    let env = own_variables(injection, place)?;
    let (resources, mut notes) = sidecar_resources(injection)?;
    notes.extend(target::certificates(injection));
    notes.extend(warning::of_exporter(injection.plan, &env, None));
    let (pod, instrumentation) = (injection.facts.pod, injection.instrumentation());
    let source = json!({"hostPath": {"path": KERNEL_DEBUG_PATH}});
    injection.edit.volumes.add(NewVolume::new(KERNEL_DEBUG, Cow::Owned(source)));
    let mut folders = Mounts::default();
    folders.add(NewMount::new(KERNEL_DEBUG, KERNEL_DEBUG_PATH));
    instrumentation.exporter.mount(pod, &mut injection.edit.volumes, &mut folders);
    injection.edit.add_sidecar(NewContainer {
        env: variables(env, &[]),
        volume_mounts: mounts(Vec::new(), folders.added),
        image_pull_policy: pull_policy(instrumentation.image_pull_policy.as_deref()),
        security_context: Some(security_context),
        ..NewContainer::new(GO_SIDECAR, injection.image(), resources)
    });
    // With `hostPID` there is nothing to share, and the
    // API server rejects both together (D17).
    let sees_node = pod.spec.host_pid == Some(true);
    let shares = pod.spec.share_process_namespace == Some(true);
    injection.edit.share_process_namespace |= !sees_node && !shares;
    Ok(notes)
}

/// The sidecar's variables, for the original container of the application,
/// without the changes of other languages (D19).
fn own_variables<'p>(injection: &Injection<'_, 'p>, place: Place) -> Result<Env<'p>, Reason> {
    let instrumentation = injection.instrumentation();
    let mut env = Env::default();
    if let Some(executable) = injection.annotations.of_pod(EXECUTABLE_ANNOTATION) {
        // The pod's own annotation.
        env.set_default(Entry { set_by: SetBy::Container, ..Entry::new(EXECUTABLE, executable) });
    }
    env.set_defaults(&injection.prepared().env, SetBy::Language);
    target::add_common(instrumentation, &mut env);
    if !env.has(EXECUTABLE) {
        return Err(Reason::TargetExecutableMissing);
    }
    env.check_extensible(RESOURCE_ATTRIBUTES, &[])?;
    let mut attributes = injection.attributes(place);
    // The application's own attributes are in another container, so no key is omitted here (D12).
    let present = target::own_keys(&env);
    target::configure(instrumentation, &mut env, &mut attributes, &present, false);
    Ok(env)
}
