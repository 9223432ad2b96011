//! What one replica knows, and what it has to do next. It does nothing itself: see [`Action`].

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

/// The longest time without a look at it all: a clock may have been set.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What has to be done, one thing at a time.
pub enum Action {
    /// Read the Secret again, make a plan, and write it where there is anything to change.
    ChangeSecret,
    /// Show this certificate from now on.
    Serve(ServingCertificate),
    /// Read this configuration and the Secret again, and put the bundle into it.
    Mend(usize),
    /// Nothing, until there is news or this time has passed.
    Wait(Duration),
}

/// What was heard of an object.
#[derive(Clone, Debug, Default)]
pub enum Heard<T> {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It does not exist.
    Absent,
    /// It exists, in this version.
    There(T),
}

/// One replica.
pub struct Replica {
    policy: Policy,
    secret: Heard<Stored>,
    /// Whether the Secret has to be read before anything else is done: nothing but a read tells for sure
    /// which version is the present one, and what time it is for the API server.
    in_doubt: bool,
    /// When to try again to change the Secret.
    pub secret_retry: Retry,
    /// The configurations, in the order of their indices.
    pub registrations: Vec<Registration>,
    trust: Trust,
    serving: Option<Serving>,
}

/// A configuration that the flags name, of one kind.
#[derive(Default)]
pub struct Registration {
    /// What is known of it.
    pub configuration: Heard<Configuration>,
    /// When to try again to change it.
    pub retry: Retry,
    restraint: Restraint,
    /// The bundle that was last seen in it when it agreed.
    agreed: Option<String>,
}

/// What this replica shows, and who signed it. It outlives the Secret.
struct Serving {
    leaf: X509,
    authority: X509,
}

impl Replica {
    /// One that knows nothing yet. It looks after `registrations` configurations.
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

    /// Takes in what was read or written: the Secret as it is, or that there is none.
    pub fn take_secret(&mut self, secret: Option<Stored>) {
        self.secret = secret.map_or(Heard::Absent, Heard::There);
        self.in_doubt = false;
    }

    /// Takes in what a watch tells of the Secret. News of a version before the known one come late, most
    /// often; but versions also start again when a cluster is restored from a backup.
    pub fn hear_secret(&mut self, secret: Option<Stored>) {
        match (&self.secret, secret) {
            (Heard::There(known), Some(told)) if told.is_older_than(known) => self.in_doubt = true,
            (_, told) => self.secret = told.map_or(Heard::Absent, Heard::There),
        }
    }

    /// Takes in a configuration, or that there is none.
    pub fn see_configuration(&mut self, index: usize, told: Option<Configuration>, now: Instant) {
        let bundle = self.whole().map(|content| (content.bundle.clone(), content.bundle_pem()));
        self.registrations[index].see(told, bundle.as_ref());
        let all_heard = self.registrations.iter().all(Registration::is_heard);
        let there = self.registrations.iter().filter(|_| all_heard).filter_map(Registration::there);
        self.trust.update(there, now);
    }

    /// The Secret, when it is there.
    pub fn stored(&self) -> Option<&Stored> {
        match &self.secret {
            Heard::There(stored) => Some(stored),
            _ => None,
        }
    }

    /// The content of the Secret, if everything is in it.
    pub fn whole(&self) -> Option<&Content> {
        self.stored().map(|stored| &stored.content).filter(|content| content.is_whole())
    }

    /// What has to be done to the Secret.
    ///
    /// # Errors
    /// When a key or a certificate has to be made and cannot be.
    pub fn plan(&self, now: Timestamp, instant: Instant) -> Result<Plan, PlanError> {
        let empty = Content::default();
        let content = self.stored().map_or(&empty, |stored| &stored.content);
        let serving = self.serving.as_ref().map(|serving| (&serving.leaf, &serving.authority));
        let trusted_for = |authority: &X509| self.trust.how_long(authority, instant);
        plan(content, &self.policy, &Circumstances { now, trusted_for: &trusted_for, serving })
    }

    /// What has to be done next. A certificate that it says to serve counts as served.
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

    /// Whether what it serves is trusted by all configurations there are, and there is one.
    pub fn is_ready(&self, instant: Instant) -> bool {
        let serving = self.serving.as_ref();
        serving.is_some_and(|serving| self.trust.how_long(&serving.authority, instant).is_some())
    }

    /// Whether no configuration exists that API servers would call the webhook by.
    pub fn is_unregistered(&self) -> bool {
        self.registrations.iter().all(|registration| matches!(registration.configuration, Heard::Absent))
    }

    /// Counts one time that the bundle was put into a configuration. Whether that was the last for a while.
    pub fn mended(&mut self, index: usize, now: Instant) -> bool {
        self.registrations[index].restraint.mended(now)
    }

    /// Whether a configuration that does not agree has agreed to the same bundle before: somebody changed it.
    pub fn was_changed(&self, index: usize) -> bool {
        let agreed = self.registrations[index].agreed.as_ref();
        self.whole().is_some_and(|content| agreed == Some(&content.bundle_pem()))
    }

    /// How long until the Secret's certificate is to be served; none while another one is better, or it is
    /// served already.
    ///
    /// It is one that API servers trust, unless the Secret was lost or overwritten. What is served by then is
    /// kept until they do, as long as it is any good.
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
        let content = self.whole().expect("adoption was asked first");
        let (leaf, signer) = content.leaf.as_ref().zip(content.signer()).expect("it is whole");
        let serving = Serving { leaf: leaf.x509.clone(), authority: signer.clone() };
        let certificate = leaf.serving.clone();
        self.serving = Some(serving);
        certificate
    }

    /// How long until a configuration has to be mended; none when it need not be.
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
    /// Takes it in; `bundle` is what it has to trust. News may come late: it is read again before it is
    /// changed.
    fn see(&mut self, told: Option<Configuration>, bundle: Option<&(Vec<X509>, String)>) {
        // Without webhooks it registers nothing.
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

    /// The configuration, when it is there.
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
