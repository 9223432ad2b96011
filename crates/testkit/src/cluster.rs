//! A real control plane, on loopback or with a real node, the processes next to it, and pods as its API server has them.

pub mod client;
pub mod control_plane;
pub mod created;
mod kwok;
pub mod manifests;
pub mod namespaces;
pub mod node;
pub mod ports;
pub mod program;
pub mod proxy;
pub mod secret_volume;
pub mod traffic;
