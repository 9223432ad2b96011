//! Which CAs are in the CA bundles of the configurations, and since when.
//!
//! Every API server receives a changed configuration by its own watch, so a change is effective only
//! some time after it was seen here. Each replica measures that time by its own clock, and starts
//! again with each start: clocks need not agree, and a crash costs only the waiting time.

use std::time::{Duration, Instant};

use crate::configuration::Configuration;
use crate::x509::X509;

/// The CAs that all configurations have.
#[derive(Default)]
pub struct Trust {
    authorities: Vec<(X509, Instant)>,
}

impl Trust {
    /// Stores the CA bundles of the existing configurations.
    pub fn update<'c>(&mut self, configurations: impl Iterator<Item = &'c Configuration>, now: Instant) {
        let mut common: Option<Vec<X509>> = None;
        for configuration in configurations {
            let mut trusted = configuration.trusted();
            if let Some(common) = &common {
                trusted.retain(|authority| common.contains(authority));
            }
            common = Some(trusted);
        }
        let common = common.unwrap_or_default();
        self.authorities.retain(|(known, _)| common.contains(known));
        for authority in common {
            if !self.authorities.iter().any(|(known, _)| *known == authority) {
                self.authorities.push((authority, now));
            }
        }
    }

    /// How long all configurations have had this CA; `None` while one does not have it.
    pub fn how_long(&self, authority: &X509, now: Instant) -> Option<Duration> {
        let (_, since) = self.authorities.iter().find(|(known, _)| known == authority)?;
        Some(now.saturating_duration_since(*since))
    }
}
