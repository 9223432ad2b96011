//! The mount of the ServiceAccount's token in added containers (D31).
//!
//! The API server's ServiceAccount admission plugin gives each container this mount. It runs before the
//! webhooks, and again after one has changed the pod: then it would add the mount to the containers that
//! injection adds. A change after the webhook makes the API server call it again
//! (`reinvocationPolicy: IfNeeded`), so added containers have the mount from the beginning.

use super::{
    added::{Listed, NewContainer, NewMount},
    pod::{Container, Pod},
};

/// Where the plugin mounts the token. It compares paths as they are written.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The first volume with a name that begins like this is the one that the plugin mounts.
const VOLUME_PREFIX: &str = "kube-api-access-";

/// The mount that the plugin would add to a new container of the pod; `None` if it would add none, or if it
/// has not been called for the pod as it is, and so changes it in any case.
pub fn of<'p>(pod: &'p Pod<'p>) -> Option<NewMount<'p>> {
    let spec = &pod.spec;
    if spec.automount_service_account_token == Some(false) {
        return None;
    }
    let volume = spec.volumes.iter().find(|volume| volume.name.starts_with(VOLUME_PREFIX))?;
    let mut containers = spec.init_containers.iter().chain(spec.containers.iter());
    containers.all(mounts_path).then(|| NewMount { read_only: true, ..NewMount::new(&*volume.name, PATH) })
}

/// Whether the container of a pod mounts something at the path.
fn mounts_path(container: &Container<'_>) -> bool {
    container.mounts().is_ok_and(|mounts| mounts.iter().any(|mount| *mount.mount_path == *PATH))
}

/// Adds the mount to a new container as the plugin does: at the end, unless something is mounted there.
pub fn add<'p>(mount: Option<&NewMount<'p>>, container: &mut NewContainer<'p>) {
    let is_there = |listed: &Listed<NewMount<'_>>| match listed {
        Listed::Copied(own) => own["mountPath"] == PATH,
        Listed::Added(added) => added.path == PATH,
    };
    if let Some(mount) = mount
        && !container.volume_mounts.iter().any(is_there)
    {
        container.volume_mounts.push(Listed::Added(mount.clone()));
    }
}
