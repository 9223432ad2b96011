//! The two ports: the webhook over HTTPS, and health and metrics over HTTP.
//!
//! ```text
//! Listening::bind ─> Listening::serve ─ a task for each connection: handshake ─> HTTP/1.1 ─> router
//!                     ^           connections.rs: the limits           webhook_router | admin_router
//!                     Shutdown: drain (keep accepting) ─> stop (finish what is in flight)
//!
//! review.rs: body.rs (body_memory.rs) ─> turn.rs (small and large ones) ─> response; all until deadline.rs
//! ```
//! Architecture invariant: only [`admission`] parses reviews. It gets bodies as bytes and returns bytes. [`tls`] has the
//! serving certificate, [`registration`] the webhook configurations, [`page`] the status page.

mod admin;
pub mod admission;
mod body;
mod body_memory;
mod connection;
mod connections;
mod deadline;
mod endpoint;
mod files;
mod health;
mod listen;
pub mod page;
mod refusal;
pub mod registration;
mod review;
mod router;
mod shutdown;
mod signals;
mod status_page;
pub mod subject;
pub mod tls;
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
