//! The cluster autoscaler does not remove a node that has a pod with an emptyDir,
//! unless the pod lists the volume as safe to evict. Added volumes are safe: the init containers
//! write them again.

use super::edit::PodEdit;

/// The annotation with the volumes that do not block scale-down.
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

/// The annotation with the pod's own value and the added emptyDir volumes.
pub fn annotation(edit: &PodEdit<'_>) -> Option<(&'static str, String)> {
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
