//! Pods in real containers, as `tests/containers/images.sh` prepares them.

pub mod kubelet;
mod mounted;
pub mod played;
pub mod podman;
