//! The two ports: the webhook over HTTPS, and health and metrics over HTTP.
//!
//! ```text
//! Listening::bind ─> Listening::serve ─ a task for each connection: handshake ─> HTTP/1.1 ─> router
//!                     ^           connections.rs: the limits           webhook_router | admin_router
//!                     Shutdown: drain (keep accepting) ─> stop (finish what is in flight)
//!
//! review.rs: body.rs (memory of room.rs) ─> turn.rs (small and large ones) ─> response; all until deadline.rs
//! ```
//! Architecture invariant: this module does not parse reviews. It passes bodies to `admission` as bytes and gets
//! bytes back.

mod admin;
mod body;
mod body_memory;
mod connection;
mod connections;
mod deadline;
mod endpoint;
mod files;
mod health;
mod listen;
mod refusal;
mod review;
mod router;
mod shutdown;
mod signals;
mod status_page;
mod turn;

pub use admin::admin_router;
pub use body_memory::BodyLimits;
pub use connection::Transport;
pub use endpoint::Endpoint;
pub use files::raise_file_limit;
pub use health::{Condition, Health, Pulse};
pub use listen::{ListenError, Listening};
pub use router::{webhook_router, webhook_router_within};
pub use shutdown::{Phases, Shutdown};
pub use signals::TerminationSignals;
pub use status_page::{ReadReport, page_router};
