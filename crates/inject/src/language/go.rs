//! Go: a privileged sidecar that attaches to the application's process.

use super::{Language, Mark};
use crate::{
    container::{Draft, sidecar_resources},
    edit::{Mounts, NewMount, NewVolume, Place, container_at},
    env::{Entry, Env, SetBy},
    job::Job,
    note::{self, Note},
    reason::{Annotation, Reason},
    resource::Attributes,
    target::{self, RESOURCE_ATTRIBUTES},
    warning,
};
use otel_webhook_api::{Settings, defaults::GO};

/// Go's row of the language table.
pub const ROW: Language = Language {
    name: "go",
    inject: "inject-go",
    containers: "go-container-names",
    defaults: Some(&GO),
    enabled_by_default: false,
    exports_from_target: false,
    in_init_containers: false,
    marks: &[Mark::Regular(SIDECAR)],
    settings: |spec| spec.go.as_ref().map(Settings::from).unwrap_or_default(),
    inject_into: inject,
};

const SIDECAR: &str = "opentelemetry-auto-instrumentation";
const KERNEL_DEBUG: &str = "kernel-debug";
const KERNEL_DEBUG_PATH: &str = "/sys/kernel/debug";
const EXECUTABLE: &str = "OTEL_GO_AUTO_TARGET_EXE";
const EXECUTABLE_ANNOTATION: &str = "otel-go-auto-target-exe";

/// The agent loads programs into the kernel, which takes all that a node has to give.
const PRIVILEGED: &str = r#"{"privileged":true,"runAsUser":0}"#;

fn inject(job: &mut Job<'_, '_>) {
    // Of several containers the first counts. It has to be one that the pod has (D5) and that Go can be put into.
    let Some(place) = job.plan.first_listed.filter(|place| job.plan.targets.contains(place)) else {
        return;
    };
    match check_pod(job).and_then(|()| add_sidecar(job, place)) {
        Ok(notes) => job.report(place, Reason::Injected, notes),
        Err(reason) => job.report(place, reason, Vec::new()),
    }
}

fn check_pod(job: &Job<'_, '_>) -> Result<(), Reason> {
    if job.facts.pod.spec.share_process_namespace == Some(false) {
        return Err(Reason::ProcessNamespaceNotShared);
    }
    let list = job.annotations.of_pod(ROW.containers).unwrap_or_default();
    if list.contains(',') {
        let annotation = Annotation { key: ROW.containers, of_namespace: false };
        return Err(Reason::SeveralContainers { annotation, containers: list.to_owned() });
    }
    if job.enforced_level().is_some() {
        return Err(job.refused_by_level("the privileged Go agent".to_owned()));
    }
    job.check_names(&[KERNEL_DEBUG], [SIDECAR])
}

fn add_sidecar(job: &mut Job<'_, '_>, place: Place) -> Result<Vec<Note>, Reason> {
    let env = variables(job, place)?;
    let (resources, mut notes) = sidecar_resources(job)?;
    notes.extend(note::certificates(job));
    notes.extend(warning::of_exporter(job.plan, &env, None));
    let (pod, instrumentation) = (job.facts.pod, job.instrumentation());
    let source = format!("\"hostPath\":{{\"path\":\"{KERNEL_DEBUG_PATH}\"}}");
    job.edit.volumes.add(NewVolume::new(KERNEL_DEBUG, source));
    let mut mounts = Mounts::default();
    mounts.add(NewMount::new(KERNEL_DEBUG, KERNEL_DEBUG_PATH));
    instrumentation.exporter.mount(pod, &mut job.edit.volumes, &mut mounts);
    let mut draft = Draft::new(SIDECAR, &job.prepared().image);
    draft.env(&env, &[]).mounts(&[], &mounts.added);
    draft.raw("resources", Some(&resources)).pull_policy(instrumentation.image_pull_policy.as_deref());
    draft.raw("securityContext", Some(job.prepared().security_context.as_deref().unwrap_or(PRIVILEGED)));
    job.edit.sidecars.push(draft.finish());
    // With the node's processes in sight there is nothing to share, and the
    // API server refuses both at once (D17).
    let sees_node = pod.spec.host_pid == Some(true);
    let shares = pod.spec.share_process_namespace == Some(true);
    job.edit.share_process_namespace |= !sees_node && !shares;
    Ok(notes)
}

/// The sidecar's variables, made for the application's container as the pod
/// came, whatever other languages have done to it since (D19).
fn variables<'p>(job: &Job<'_, 'p>, place: Place) -> Result<Env<'p>, Reason> {
    let instrumentation = job.instrumentation();
    let mut env = Env::default();
    if let Some(executable) = job.annotations.of_pod(EXECUTABLE_ANNOTATION) {
        // The pod's own word.
        env.set_default(Entry { set_by: SetBy::Container, ..Entry::new(EXECUTABLE, executable) });
    }
    env.set_defaults(&job.prepared().env, SetBy::Language);
    target::add_common(instrumentation, &mut env);
    if !env.has(EXECUTABLE) {
        return Err(Reason::TargetExecutableMissing);
    }
    env.check_extensible(RESOURCE_ATTRIBUTES, &[])?;
    let container = container_at(job.facts.pod, place);
    let mut attributes =
        Attributes::of(job.facts, &instrumentation.resource, &container.name, &container.image);
    // The application's own attributes are in another variable, and take nothing from this one (D12).
    let present = target::own_keys(&env);
    target::configure(instrumentation, &mut env, &mut attributes, &present, false);
    Ok(env)
}
