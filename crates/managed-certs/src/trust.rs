//! Which authorities the API servers were told to trust, and for how long already.
//!
//! Every API server learns of a changed configuration by a watch of its own, so a change counts only
//! some time after it was seen here. That time is measured by the clock of each replica alone, and begins
//! anew with a replica: it needs no clocks that agree, and a crash costs nothing but the wait.

use std::time::{Duration, Instant};

use crate::configuration::Configuration;
use crate::x509::X509;

/// What the configurations trust, all of them alike.
#[derive(Default)]
pub struct Trust {
    authorities: Vec<(X509, Instant)>,
}

impl Trust {
    /// Takes in what the configurations that exist say now.
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

    /// How long all configurations have had this authority; none while one has not.
    pub fn how_long(&self, authority: &X509, now: Instant) -> Option<Duration> {
        let (_, since) = self.authorities.iter().find(|(known, _)| known == authority)?;
        Some(now.saturating_duration_since(*since))
    }
}
