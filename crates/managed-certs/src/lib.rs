//! Certificates that are created, rotated and written into webhook configurations by replicas that
//! share a Secret. Nothing here depends on OpenTelemetry, or on what the webhook does.
//!
//! All decisions are here, without I/O and without a clock; the program carries them out. From the
//! bottom up:
//!
//! - [`program`]: the name of the program, which it writes into its objects
//! - [`x509`]: a parsed certificate, and which CA signed it
//! - [`authority`]: a CA that signs certificates, created or read from its key
//! - [`certificate`]: a chain and its key, checked, so that it can be served
//! - [`content`]: the data of the Secret: CA, CA bundle, serving certificate
//! - [`secret`]: the Secret as a Kubernetes object, and whether it may be overwritten
//! - [`configuration`]: the `caBundle` of a webhook configuration, and the patch that sets it
//! - [`trust`]: which CAs the configurations have, and since when
//! - [`restraint`]: when to retry, and when to stop changing a configuration for a while
//! - [`plan`]: the next change of the Secret
//! - [`replica`]: the state of one replica, and its next action
//!
//! The tests simulate replicas in one cluster: steps are interleaved, replicas end between any two
//! steps, and watch events are late.

pub mod authority;
pub mod certificate;
pub mod configuration;
pub mod content;
pub mod plan;
pub mod program;
pub mod replica;
pub mod restraint;
pub mod secret;
pub mod trust;
pub mod x509;

/// The library of cryptography: ring, or AWS-LC in its FIPS mode with the feature `fips`. Both have the same functions.
#[cfg(not(feature = "fips"))]
pub use rustls::crypto::ring as library;

#[cfg(feature = "fips")]
pub use rustls::crypto::aws_lc_rs as library;

#[cfg(test)]
mod simulation;
