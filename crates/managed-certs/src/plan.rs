//! The next change of the Secret: a pure function of its content, the time, and the CA bundles of the
//! configurations.
//!
//! ```text
//! nothing usable ──> CA and certificate
//! CA is due ──> a new one before it in the bundle ──> in all configurations for the propagation time
//!        ──> certificate by the new CA ──> certificates of the old CA have expired ──> old CA is removed
//! certificate is due, damaged or lacks a name ──> certificate by the same CA
//! ```
//! Each arrow is one write, and any replica can do it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;

use crate::authority::{Authority, IssueError};
use crate::certificate::CertificateError;
use crate::content::{Content, Leaf};
use crate::x509::X509;

/// The settings of certificates.
#[derive(Clone, Debug)]
pub struct Policy {
    /// DNS names and IP addresses of the serving certificate.
    pub names: Vec<String>,
    /// Lifetime of a serving certificate. It is replaced after two thirds of it.
    pub lifetime: Duration,
    /// Lifetime of a CA. It is replaced after two thirds of it.
    pub authority_lifetime: Duration,
    /// The propagation time: how long API servers may need to receive a changed CA bundle.
    pub propagation: Duration,
}

/// The input besides the Secret.
pub struct Circumstances<'c> {
    /// The present time.
    pub now: Timestamp,
    /// How long all configurations have had a CA in their bundles.
    pub trusted_for: &'c dyn Fn(&X509) -> Option<Duration>,
    /// The certificate that this replica serves, and the CA that signed it. If the Secret was lost, that CA
    /// stays in the bundle until a new one is trusted.
    pub serving: Option<(&'c X509, &'c X509)>,
}

/// The next change.
pub enum Plan {
    /// Nothing before this time.
    Keep(Timestamp),
    /// Write this content into the Secret.
    Change(Box<Content>, Vec<Cause>),
}

/// Why the Secret is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no CA with a key.
    NoAuthority,
    /// Two thirds of its lifetime are over.
    AuthorityDue,
    /// There is no certificate with its key.
    NoCertificate,
    /// No CA of the bundle signed it.
    CertificateNotTrusted,
    /// It has expired.
    CertificateExpired,
    /// Two thirds of its lifetime are over.
    CertificateDue,
    /// It lacks these names.
    NamesMissing(Vec<String>),
    /// The propagation time of the new CA is over.
    AuthorityKnown,
    /// All certificates that these CAs signed have expired: serial numbers.
    AuthoritiesLeave(Vec<String>),
}

/// Why a plan cannot be made.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A CA or a certificate cannot be created.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// What was created cannot be served.
    #[error("cannot use the created certificate: {0}")]
    Use(#[from] CertificateError),
}

/// Returns the next change of a Secret with this content.
///
/// # Errors
/// If a key or a certificate cannot be created.
pub fn plan(found: &Content, policy: &Policy, known: &Circumstances<'_>) -> Result<Plan, PlanError> {
    let mut change = Change { content: found.clone(), causes: Vec::new(), policy, known };
    if let Some(cause) = change.authority_cause() {
        change.make_authority(cause)?;
    }
    if let Some(cause) = change.leaf_cause() {
        change.make_leaf(cause)?;
    }
    change.let_authorities_leave();
    if change.causes.is_empty() { Ok(Plan::Keep(change.next())) } else { Ok(change.done()) }
}

struct Change<'c> {
    content: Content,
    causes: Vec<Cause>,
    policy: &'c Policy,
    known: &'c Circumstances<'c>,
}

impl Change<'_> {
    fn authority_cause(&self) -> Option<Cause> {
        match self.content.newest() {
            None => Some(Cause::NoAuthority),
            Some(newest) => (newest.due() <= self.known.now).then_some(Cause::AuthorityDue),
        }
    }

    /// Puts a new CA before the present ones, which stay.
    fn make_authority(&mut self, cause: Cause) -> Result<(), IssueError> {
        let authority = Authority::make(self.known.now, self.policy.authority_lifetime)?;
        self.content.bundle.insert(0, authority.certificate().clone());
        if let Some((leaf, signer)) = self.known.serving {
            if !signer.is_over(self.known.now) && !self.content.bundle.contains(signer) {
                self.content.bundle.push(signer.clone());
            }
            if self.content.leaf.is_none() {
                self.remember_replaced(leaf.not_after);
            }
        }
        self.content.authority = Some(Arc::new(authority));
        self.content.find_signer();
        self.causes.push(cause);
        Ok(())
    }

    fn leaf_cause(&self) -> Option<Cause> {
        let Some(leaf) = &self.content.leaf else { return Some(Cause::NoCertificate) };
        let Some(signer) = self.content.signer() else { return Some(Cause::CertificateNotTrusted) };
        if leaf.x509.is_over(self.known.now) {
            return Some(Cause::CertificateExpired);
        }
        if self.content.newest() != Some(signer) {
            // Until then only the certificate of the old CA is accepted by every API server.
            return (self.wait() == Some(Duration::ZERO)).then_some(Cause::AuthorityKnown);
        }
        let missing = self.missing_names(leaf);
        if !missing.is_empty() {
            return Some(Cause::NamesMissing(missing));
        }
        (leaf.x509.due() <= self.known.now).then_some(Cause::CertificateDue)
    }

    fn missing_names(&self, leaf: &Leaf) -> Vec<String> {
        self.policy.names.iter().filter(|name| !leaf.x509.names.contains(name)).cloned().collect()
    }

    /// The rest of the newest CA's propagation time; `None` while a configuration does not have it.
    fn wait(&self) -> Option<Duration> {
        let trusted_for = (self.known.trusted_for)(self.content.newest()?)?;
        Some(self.policy.propagation.saturating_sub(trusted_for))
    }

    fn make_leaf(&mut self, cause: Cause) -> Result<(), PlanError> {
        let mut names = self.policy.names.clone();
        // Replicas with different names would replace each other's certificate
        // forever. A name that is no longer configured is removed at the next renewal.
        if let (Cause::NamesMissing(_), Some(leaf)) = (&cause, &self.content.leaf) {
            names.extend(leaf.x509.names.iter().filter(|name| !self.policy.names.contains(name)).cloned());
        }
        let authority = self.content.authority.clone().expect("there is one by now");
        let issued = authority.issue(&names, self.known.now, self.policy.lifetime)?;
        if let Some(replaced) = self.content.leaf.replace(Leaf::new(issued)?) {
            self.remember_replaced(replaced.x509.not_after);
        }
        self.content.find_signer();
        self.causes.push(cause);
        Ok(())
    }

    fn remember_replaced(&mut self, not_after: Timestamp) {
        let until = self.content.replaced_until.map_or(not_after, |until| until.max(not_after));
        self.content.replaced_until = Some(until);
    }

    /// Removes CAs that neither the certificate nor one that it replaced needs.
    fn let_authorities_leave(&mut self) {
        let now = self.known.now;
        let replaced_are_over = self.content.replaced_until.is_some_and(|until| until <= now);
        let needed = [self.content.newest().cloned(), self.content.signer().cloned()];
        let mut left = Vec::new();
        self.content.bundle.retain(|authority| {
            let stays = needed.iter().flatten().any(|needed| needed == authority)
                || !(authority.is_over(now) || replaced_are_over);
            if !stays {
                left.push(authority.serial.clone());
            }
            stays
        });
        if !left.is_empty() {
            self.causes.push(Cause::AuthoritiesLeave(left));
        }
    }

    /// The time of the next change if nothing else happens.
    fn next(&self) -> Timestamp {
        let content = &self.content;
        let mut times: Vec<Timestamp> = content.newest().map(X509::due).into_iter().collect();
        if let Some(leaf) = &content.leaf {
            let is_newest = content.newest().is_some() && content.newest() == content.signer();
            times.push(if is_newest { leaf.x509.due() } else { leaf.x509.not_after });
            if let (false, Some(wait)) = (is_newest, self.wait()) {
                times.push(self.known.now.saturating_add(wait).unwrap_or(Timestamp::MAX));
            }
        }
        if content.bundle.len() > 1 {
            times.extend(content.replaced_until);
            times.extend(content.bundle.iter().map(|authority| authority.not_after));
        }
        let later = times.into_iter().filter(|time| *time > self.known.now);
        later.min().unwrap_or(Timestamp::MAX)
    }

    fn done(self) -> Plan {
        Plan::Change(Box::new(self.content), self.causes)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAuthority => f.write_str("there is no CA that can sign; a new one was created"),
            Self::AuthorityDue => {
                f.write_str("two thirds of the CA's lifetime are over; the next CA was added to the bundle")
            }
            Self::NoCertificate => f.write_str("there is no certificate; one was issued"),
            Self::CertificateNotTrusted => {
                f.write_str("no CA of ca.crt signed the certificate; one was issued")
            }
            Self::CertificateExpired => f.write_str("the certificate has expired; one was issued"),
            Self::CertificateDue => {
                f.write_str("two thirds of the certificate's lifetime are over; the next one was issued")
            }
            Self::NamesMissing(names) => {
                write!(f, "the certificate lacks {}; one was issued with it", names.join(", "))
            }
            Self::AuthorityKnown => {
                f.write_str("the new CA is trusted by all API servers; it issued a certificate")
            }
            Self::AuthoritiesLeave(serials) => {
                write!(
                    f,
                    "all certificates that {} signed have expired; it was removed from the bundle",
                    serials.join(", ")
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
