//! The ports as clients see them: real TLS and HTTP over loopback.

mod certificates;
mod clients;
mod connections;
pub mod harness;
mod http;
mod limits;
mod log;
mod shutdown;
mod tls;
