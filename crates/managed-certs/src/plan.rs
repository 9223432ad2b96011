//! What has to be done to the Secret next: a pure function of its content, the time, and what the
//! configurations say.
//!
//! ```text
//! nothing usable ──> authority and certificate
//! authority is due ──> a new one before it in the bundle ──> trusted for the propagation time
//!        ──> certificate by the new authority ──> what the old one signed has expired ──> old one leaves
//! certificate is due, damaged or lacks a name ──> certificate by the same authority
//! ```
//! Each arrow is one write, and each can be done by any replica, whoever did the one before.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;

use crate::authority::{Authority, IssueError};
use crate::certificate::CertificateError;
use crate::content::{Content, Leaf};
use crate::x509::X509;

/// What certificates are to be like.
#[derive(Clone, Debug)]
pub struct Policy {
    /// DNS names and IP addresses of the serving certificate.
    pub names: Vec<String>,
    /// How long a serving certificate lives. It is replaced after two thirds of it.
    pub lifetime: Duration,
    /// How long an authority lives; the same holds.
    pub authority_lifetime: Duration,
    /// How long API servers are given to learn of a changed bundle.
    pub propagation: Duration,
}

/// What is known besides the Secret.
pub struct Circumstances<'c> {
    /// The present time.
    pub now: Timestamp,
    /// How long all configurations have trusted an authority.
    pub trusted_for: &'c dyn Fn(&X509) -> Option<Duration>,
    /// What this replica serves, and who signed it. Where the Secret was lost, that authority stays
    /// trusted until a new one is.
    pub serving: Option<(&'c X509, &'c X509)>,
}

/// What has to be done.
pub enum Plan {
    /// Nothing before this time.
    Keep(Timestamp),
    /// The Secret has to hold this.
    Change(Box<Content>, Vec<Cause>),
}

/// Why the Secret is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is no authority with a key.
    NoAuthority,
    /// Two thirds of its life are over.
    AuthorityDue,
    /// There is no certificate with its key.
    NoCertificate,
    /// No authority of the bundle signed it.
    CertificateNotTrusted,
    /// It can be served no longer.
    CertificateExpired,
    /// Two thirds of its life are over.
    CertificateDue,
    /// Names that it lacks.
    NamesMissing(Vec<String>),
    /// API servers have had the time to learn of the new authority.
    AuthorityKnown,
    /// Nothing that they signed is valid any more: serial numbers.
    AuthoritiesLeave(Vec<String>),
}

/// Why a plan cannot be made.
#[derive(Debug, Error)]
pub enum PlanError {
    /// A CA or a certificate cannot be created.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// What was created cannot be served.
    #[error("cannot use the certificate that was made: {0}")]
    Use(#[from] CertificateError),
}

/// Tells what has to be done to a Secret with this content.
///
/// # Errors
/// When a key or a certificate has to be made and cannot be.
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

    /// The new authority comes before those that were trusted up to now, which stay.
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
            // Until then the old authority's certificate is the one that every API server accepts.
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

    /// How much longer the newest authority has to be trusted before it is used; none while it is not.
    fn wait(&self) -> Option<Duration> {
        let trusted_for = (self.known.trusted_for)(self.content.newest()?)?;
        Some(self.policy.propagation.saturating_sub(trusted_for))
    }

    fn make_leaf(&mut self, cause: Cause) -> Result<(), PlanError> {
        let mut names = self.policy.names.clone();
        // Replicas of which each asks for a name that the other does not would replace the certificate of
        // one another for ever. What is not asked for any more goes with the next renewal.
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

    /// Lets those go that nothing needs any more: neither the certificate, nor one that it replaced.
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

    /// When time alone gives something to do.
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
            Self::NoAuthority => f.write_str("there is no authority that can sign; a new one was made"),
            Self::AuthorityDue => {
                f.write_str("two thirds of the authority's life are over; the next one is trusted beside it")
            }
            Self::NoCertificate => f.write_str("there is no certificate; one was issued"),
            Self::CertificateNotTrusted => {
                f.write_str("no authority of ca.crt signed the certificate; one was issued")
            }
            Self::CertificateExpired => f.write_str("the certificate has expired; one was issued"),
            Self::CertificateDue => {
                f.write_str("two thirds of the certificate's life are over; the next one was issued")
            }
            Self::NamesMissing(names) => {
                write!(f, "the certificate lacks {}; one was issued with it", names.join(", "))
            }
            Self::AuthorityKnown => {
                f.write_str("the new authority is trusted; a certificate was issued by it")
            }
            Self::AuthoritiesLeave(serials) => {
                write!(f, "nothing that {} signed is valid any more; it leaves", serials.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests;
