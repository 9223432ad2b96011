//! Certificates that are created, rotated and put into webhook configurations by replicas that
//! agree through a Secret. Nothing here is about OpenTelemetry, or about what the webhook does.
//!
//! All decisions are here, without I/O and without a clock; the program carries them out. From the
//! bottom up:
//!
//! - [`program`]: the name of the program, by which it marks what it writes
//! - [`x509`]: what a certificate says, and who signed it
//! - [`authority`]: a CA that signs certificates, created or read from its key
//! - [`certificate`]: a chain and its key, checked, so that it can be served
//! - [`content`]: the data of the Secret: CA, CA bundle, serving certificate
//! - [`secret`]: the Secret as a Kubernetes object, and whether it may be overwritten
//! - [`configuration`]: the `caBundle` of a webhook configuration, and the patch that sets it
//! - [`trust`]: which CAs the configurations have, and since when
//! - [`restraint`]: when to try again, and when to leave a configuration alone
//! - [`plan`]: what the Secret has to hold next
//! - [`replica`]: what one replica knows, and what it does next
//!
//! The tests simulate replicas in one cluster: steps are interleaved, replicas end between any two
//! steps, and what they know is late.

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

#[cfg(test)]
mod simulation;
