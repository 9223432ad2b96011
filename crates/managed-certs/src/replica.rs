//! The state of one replica, and its next action. The caller carries it out: see [`Action`].

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::certificate::ServingCertificate;
use crate::configuration::Configuration;
use crate::content::Content;
use crate::plan::{Circumstances, Plan, PlanError, Policy, plan};
use crate::restraint::{Restraint, Retry};
use crate::secret::Stored;
use crate::trust::Trust;
use crate::x509::X509;

/// The maximum time between two checks: the clock may have been changed.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The next action.
pub enum Action {
    /// Read the Secret again, make a plan, and write the Secret if the plan changes it.
    ChangeSecret,
    /// Serve this certificate from now on.
    Serve(ServingCertificate),
    /// Read this configuration and the Secret again, and write the CA bundle into it.
    Mend(usize),
    /// Wait for the next event, or for this time.
    Wait(Duration),
}

/// What is known about an object.
#[derive(Clone, Debug, Default)]
pub enum Heard<T> {
    /// It was not read yet.
    #[default]
    Nothing,
    /// It does not exist.
    Absent,
    /// It exists, with this version.
    There(T),
}

/// One replica.
pub struct Replica {
    policy: Policy,
    secret: Heard<Stored>,
    /// Whether the Secret has to be read before anything else: only a read returns
    /// the present version, and the time of the API server.
    in_doubt: bool,
    /// Retries of changes of the Secret.
    pub secret_retry: Retry,
    /// The configurations, in the order of their indices.
    pub registrations: Vec<Registration>,
    trust: Trust,
    serving: Option<Serving>,
}

/// A webhook configuration.
#[derive(Default)]
pub struct Registration {
    /// What is known about it.
    pub configuration: Heard<Configuration>,
    /// Retries of its changes.
    pub retry: Retry,
    restraint: Restraint,
    /// The last correct CA bundle that was seen in it.
    agreed: Option<String>,
}

/// The certificate that this replica serves, and the CA that signed it. Both stay if the Secret is deleted.
struct Serving {
    leaf: X509,
    authority: X509,
}

impl Replica {
    /// A replica at its start, for a number of configurations.
    pub fn new(policy: Policy, registrations: usize) -> Self {
        Self {
            policy,
            secret: Heard::Nothing,
            in_doubt: true,
            secret_retry: Retry::default(),
            registrations: std::iter::repeat_with(Registration::default).take(registrations).collect(),
            trust: Trust::default(),
            serving: None,
        }
    }

    /// Stores the result of a read or a write: the Secret, or that there is none.
    pub fn take_secret(&mut self, secret: Option<Stored>) {
        self.secret = secret.map_or(Heard::Absent, Heard::There);
        self.in_doubt = false;
    }

    /// Stores an event of the Secret's watch. An event of an older version is usually late;
    /// but versions also start again when a cluster is restored from a backup.
    pub fn hear_secret(&mut self, secret: Option<Stored>) {
        match (&self.secret, secret) {
            (Heard::There(known), Some(told)) if told.is_older_than(known) => self.in_doubt = true,
            (_, told) => self.secret = told.map_or(Heard::Absent, Heard::There),
        }
    }

    /// Stores a configuration, or that there is none.
    pub fn see_configuration(&mut self, index: usize, told: Option<Configuration>, now: Instant) {
        let bundle = self.whole().map(|content| (content.bundle.clone(), content.bundle_pem()));
        self.registrations[index].see(told, bundle.as_ref());
        let all_heard = self.registrations.iter().all(Registration::is_heard);
        let there = self.registrations.iter().filter(|_| all_heard).filter_map(Registration::there);
        self.trust.update(there, now);
    }

    /// The Secret, if it exists.
    pub fn stored(&self) -> Option<&Stored> {
        match &self.secret {
            Heard::There(stored) => Some(stored),
            _ => None,
        }
    }

    /// The content of the Secret, if it is complete.
    pub fn whole(&self) -> Option<&Content> {
        self.stored().map(|stored| &stored.content).filter(|content| content.is_whole())
    }

    /// The next change of the Secret.
    ///
    /// # Errors
    /// If a key or a certificate cannot be created.
    pub fn plan(&self, now: Timestamp, instant: Instant) -> Result<Plan, PlanError> {
        let empty = Content::default();
        let content = self.stored().map_or(&empty, |stored| &stored.content);
        let serving = self.serving.as_ref().map(|serving| (&serving.leaf, &serving.authority));
        let trusted_for = |authority: &X509| self.trust.how_long(authority, instant);
        plan(content, &self.policy, &Circumstances { now, trusted_for: &trusted_for, serving })
    }

    /// Returns the next action. A certificate that it returns is treated as served.
    pub fn next(&mut self, now: Timestamp, instant: Instant) -> Action {
        if matches!(self.secret, Heard::Nothing) {
            return Action::Wait(LONGEST_WAIT);
        }
        let mut waits = vec![LONGEST_WAIT];
        match self.secret_retry.wait(instant) {
            Some(wait) => waits.push(wait),
            None if self.in_doubt => return Action::ChangeSecret,
            None => match self.plan(now, instant) {
                Ok(Plan::Keep(until)) => waits.push(until.duration_since(now).unsigned_abs()),
                _ => return Action::ChangeSecret,
            },
        }
        match self.adoption(now, instant) {
            Some(Duration::ZERO) => return Action::Serve(self.adopt()),
            wait => waits.extend(wait),
        }
        for index in 0..self.registrations.len() {
            match self.mend(index, instant) {
                Some(Duration::ZERO) => return Action::Mend(index),
                wait => waits.extend(wait),
            }
        }
        Action::Wait(waits.into_iter().min().unwrap_or(LONGEST_WAIT))
    }

    /// Whether all configurations trust the served certificate, and there is at least one.
    pub fn is_ready(&self, instant: Instant) -> bool {
        let serving = self.serving.as_ref();
        serving.is_some_and(|serving| self.trust.how_long(&serving.authority, instant).is_some())
    }

    /// Whether there is no configuration by which API servers would call the webhook.
    pub fn is_unregistered(&self) -> bool {
        self.registrations.iter().all(|registration| matches!(registration.configuration, Heard::Absent))
    }

    /// Counts a write of the CA bundle into a configuration. Returns whether it was the last one for a while.
    pub fn mended(&mut self, index: usize, now: Instant) -> bool {
        self.registrations[index].restraint.mended(now)
    }

    /// Whether a configuration with another CA bundle had the correct one before: another tool changed it.
    pub fn was_changed(&self, index: usize) -> bool {
        let agreed = self.registrations[index].agreed.as_ref();
        self.whole().is_some_and(|content| agreed == Some(&content.bundle_pem()))
    }

    /// How long until the certificate of the Secret has to be served; `None` while another one is better,
    /// or if it is already served.
    ///
    /// API servers trust it, unless the Secret was lost or overwritten. Then the served certificate is
    /// kept until they trust the new one, if it is still valid.
    fn adoption(&self, now: Timestamp, instant: Instant) -> Option<Duration> {
        let content = self.whole()?;
        let (leaf, signer) = (content.leaf.as_ref()?, content.signer()?);
        let Some(serving) = &self.serving else { return Some(Duration::ZERO) };
        if serving.leaf == leaf.x509 {
            return None;
        }
        let is_good = content.bundle.contains(&serving.authority) && !serving.leaf.is_over(now);
        if !is_good || serving.authority == *signer {
            return Some(Duration::ZERO);
        }
        let trusted_for = self.trust.how_long(signer, instant)?;
        Some(self.policy.propagation.saturating_sub(trusted_for))
    }

    fn adopt(&mut self) -> ServingCertificate {
        let content = self.whole().expect("the caller checks it");
        let (leaf, signer) = content.leaf.as_ref().zip(content.signer()).expect("it is complete");
        let serving = Serving { leaf: leaf.x509.clone(), authority: signer.clone() };
        let certificate = leaf.serving.clone();
        self.serving = Some(serving);
        certificate
    }

    /// How long until a configuration has to be corrected; `None` if it is correct.
    fn mend(&mut self, index: usize, now: Instant) -> Option<Duration> {
        let content = self.whole()?;
        let configuration = self.registrations[index].there()?;
        if configuration.agrees(&content.bundle) {
            return None;
        }
        let bundle = content.bundle_pem();
        let registration = &mut self.registrations[index];
        let waits = [registration.retry.wait(now), registration.restraint.wait(&bundle, now)];
        Some(waits.into_iter().flatten().max().unwrap_or(Duration::ZERO))
    }
}

impl Registration {
    /// Stores it; `bundle` is the correct CA bundle. Events may be late: it is read again before it is
    /// changed.
    fn see(&mut self, told: Option<Configuration>, bundle: Option<&(Vec<X509>, String)>) {
        // Without webhooks it has no effect.
        let Some(told) = told.filter(|told| !told.is_empty()) else {
            (self.configuration, self.agreed) = (Heard::Absent, None);
            return;
        };
        if let Some((authorities, pem)) = bundle
            && told.agrees(authorities)
        {
            self.agreed = Some(pem.clone());
        }
        self.configuration = Heard::There(told);
    }

    /// The configuration, if it exists.
    pub fn there(&self) -> Option<&Configuration> {
        match &self.configuration {
            Heard::There(configuration) => Some(configuration),
            _ => None,
        }
    }

    fn is_heard(&self) -> bool {
        !matches!(self.configuration, Heard::Nothing)
    }
}

#[cfg(test)]
mod tests;
