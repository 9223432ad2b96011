//! A real control plane on loopback, the processes beside it, and pods as its API server has them.

pub mod control_plane;
pub mod created;
pub mod ports;
pub mod program;
pub mod secret_volume;
