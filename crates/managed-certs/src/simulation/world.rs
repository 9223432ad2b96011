//! The simulated objects of the cluster, and which versions API servers know.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Random;
use crate::configuration::Configuration;
use crate::content::Content;
use crate::plan::Policy;
use crate::secret::{self, Stored};
use crate::x509::X509;

pub const KINDS: usize = 2;

/// One version of a configuration, and since when it is the present one.
struct Version {
    since: Duration,
    object: Value,
    configuration: Configuration,
}

impl Version {
    fn new(since: Duration, object: Value) -> Self {
        let configuration = Configuration::read(&object);
        Self { since, object, configuration }
    }
}

pub struct World {
    /// The simulated time since the start.
    pub now: Duration,
    version: u64,
    secret: Option<Value>,
    configurations: [Vec<Version>; KINDS],
    made: Vec<String>,
    pub damages: u32,
    /// How often each object has changed: the Secret, then the configurations.
    pub changes: [u64; 1 + KINDS],
    began: Instant,
}

/// The start of the simulation by the clock of the world.
fn epoch() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

pub fn policy() -> Policy {
    Policy {
        names: vec!["webhook.example.svc".to_owned()],
        lifetime: Duration::from_secs(30 * 3600),
        authority_lifetime: Duration::from_secs(100 * 3600),
        propagation: Duration::from_secs(10),
    }
}

impl World {
    pub fn new() -> Self {
        let object = |webhooks: &[&str]| {
            let webhooks: Vec<_> = webhooks
                .iter()
                .map(|name| json!({"name": name, "clientConfig": {"url": "https://a/"}}))
                .collect();
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": "one", "resourceVersion": "1"}, "webhooks": webhooks,
            })
        };
        let configurations =
            [&["a", "b"][..], &["c"]].map(|webhooks| vec![Version::new(Duration::ZERO, object(webhooks))]);
        Self {
            now: Duration::ZERO,
            version: 1,
            secret: None,
            configurations,
            made: Vec::new(),
            damages: 0,
            changes: [0; 1 + KINDS],
            began: Instant::now(),
        }
    }

    /// The time of the API servers.
    pub fn time(&self) -> Timestamp {
        epoch() + self.now
    }

    /// The same for timers.
    pub fn instant(&self) -> Instant {
        self.began + self.now
    }

    pub fn secret(&self) -> Option<Stored> {
        self.secret.clone().map(Stored::read)
    }

    pub fn configuration(&self, index: usize) -> Configuration {
        self.configurations[index].last().expect("a version").configuration.clone()
    }

    /// How many different CAs have been in the Secret.
    pub fn authorities_made(&self) -> usize {
        self.made.len()
    }

    /// Server-side apply without force: the first one wins.
    pub fn create_secret(&mut self, content: &Content) -> Option<Stored> {
        if self.secret.is_some() {
            return None;
        }
        self.store_secret(secret::new("namespace", "name", content))
    }

    /// Rejected if the Secret has changed since it was read.
    pub fn update_secret(&mut self, read: &Stored, content: &Content) -> Option<Stored> {
        let object = read.with(content);
        let present = self.secret.as_ref()?;
        if present["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
            return None;
        }
        self.store_secret(object)
    }

    fn store_secret(&mut self, mut object: Value) -> Option<Stored> {
        self.version += 1;
        self.changes[0] += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.secret = Some(object);
        let stored = self.secret()?;
        if let Some(newest) = stored.content.newest()
            && !self.made.contains(&newest.serial)
        {
            self.made.push(newest.serial.clone());
        }
        Some(stored)
    }

    /// Rejected if a test of the patch fails.
    pub fn patch(&mut self, index: usize, patch: &json_patch::Patch) -> Option<Configuration> {
        let mut object = self.configurations[index].last().expect("a version").object.clone();
        json_patch::patch(&mut object, patch).ok()?;
        self.version += 1;
        self.changes[1 + index] += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.configurations[index].push(Version::new(self.now, object));
        Some(self.configuration(index))
    }

    /// The versions that API servers may use now: every version that was present within the propagation
    /// time. Not those before the first CA bundle: nothing was served then.
    pub fn believed(&self) -> impl Iterator<Item = Vec<X509>> {
        let earliest = self.now.saturating_sub(policy().propagation);
        let all = self.configurations.iter().flat_map(move |versions| {
            let ends = versions.iter().skip(1).map(|version| version.since).chain([Duration::MAX]);
            let recent = versions.iter().zip(ends).filter(move |(_, end)| *end > earliest);
            recent.map(|(version, _)| version.configuration.trusted())
        });
        all.filter(|trusted| !trusted.is_empty())
    }

    /// Whether a CA bundle was written into a configuration a second time: a replica had reverted the
    /// change of another.
    pub fn was_undone(&self) -> bool {
        self.configurations.iter().any(|versions| {
            let bundles: Vec<_> = versions.iter().map(|version| version.configuration.trusted()).collect();
            (1..bundles.len()).any(|later| bundles[..later].contains(&bundles[later]))
        })
    }

    /// Deletes the Secret, or a part of it.
    pub fn damage_secret(&mut self, random: &mut Random) {
        self.damages += 1;
        let keys = ["tls.crt", "tls.key", "ca.crt", "ca.key", ""];
        match keys[random.below(5) as usize] {
            "" => {
                self.secret = None;
                self.changes[0] += 1;
            }
            key => {
                let Some(mut object) = self.secret.clone() else { return };
                object["data"][key] = "bm9uc2Vuc2U=".into();
                self.store_secret(object);
            }
        }
    }
}
