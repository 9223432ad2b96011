//! The ports as clients see them: real TLS and HTTP over loopback.

mod certificates;
mod clients;
pub mod harness;
mod http;
mod shutdown;
mod tls;
