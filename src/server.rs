//! The two ports: the webhook over HTTPS, and health and metrics over HTTP.
//!
//! ```text
//! Listening::bind ─> Listening::serve ─ a task for each connection: handshake ─> HTTP/1.1 ─> router
//!                          ^                                          webhook_router | admin_router
//!                       Shutdown: drain (keep accepting) ─> stop (finish what is in flight)
//! ```
//! Architecture invariant: this module does not parse reviews. It passes bodies to `admission` as bytes and gets
//! bytes back.

mod admin;
mod connection;
mod health;
mod listen;
mod review;
mod router;
mod shutdown;

pub use admin::admin_router;
pub use connection::Transport;
pub use health::{Condition, Health};
pub use listen::{ListenError, Listening};
pub use review::{BODY_LIMIT, Endpoint};
pub use router::webhook_router;
pub use shutdown::{Phases, Shutdown, TerminationSignals};
