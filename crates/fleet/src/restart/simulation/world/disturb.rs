//! What happens to a cluster.

use super::{World, pods::Replicas};
use crate::restart::{Consent, Fit, simulation::random::Random};

impl World {
    /// Lets one thing happen.
    pub fn disturb(&mut self, random: &mut Random) {
        let number = random.below(12) as usize;
        match random.below(14) {
            0..=1 => self.configure(number % 2, random),
            2..=3 => self.is_webhook_up = true,
            4 => self.is_webhook_up = false,
            5..=6 => self.take_back(number),
            7 => self.change(number, |workload| workload.budget_is_used_up = !workload.budget_is_used_up),
            8 => self.change(number, |workload| {
                workload.fit = if workload.fit == Fit::Fits { Fit::Paused } else { Fit::Fits };
            }),
            9 => self.resume(number % 2),
            10 => self.change(number, |workload| {
                workload.consent = match workload.consent {
                    Consent::Rollout if !workload.is_ordered => Consent::Evict,
                    _ => Consent::Rollout,
                };
            }),
            11 => self.pause(number % 2),
            12 => self.configured[number % 2].paused = None,
            _ => self.deploy(number),
        }
    }

    /// Somebody changes an Instrumentation: to a new configuration, one that pods do not start with, or an earlier one.
    fn configure(&mut self, number: usize, random: &mut Random) {
        let configured = &mut self.configured[number];
        configured.present.generation += 1;
        let generation = configured.present.generation;
        configured.config = match random.below(4) {
            0 => {
                let config = format!("v1:{generation}-bad");
                self.bad.insert(config.clone());
                config
            }
            1 => format!("v1:{}", random.below(u32::try_from(generation).expect("few"))),
            _ => format!("v1:{generation}"),
        };
    }

    /// A GitOps tool writes a workload as it is in its repository.
    fn take_back(&mut self, number: usize) {
        let second = self.second;
        let workload = &mut self.workloads[number];
        if workload.is_git && workload.is_annotated {
            workload.is_annotated = false;
            workload.record = None;
            workload.change_template(second);
            self.log.taken_back(&self.workloads[number].workload);
        }
    }

    /// Somebody rolls out a new version of the application.
    fn deploy(&mut self, number: usize) {
        let second = self.second;
        self.workloads[number].change_template(second);
    }

    /// Somebody pauses injection by an Instrumentation.
    fn pause(&mut self, number: usize) {
        self.configured[number].paused.get_or_insert(self.second);
    }

    fn resume(&mut self, number: usize) {
        let second = self.second;
        let configured = &mut self.configured[number];
        configured.present.resume = Some(format!("at {second}"));
        let uid = configured.present.uid.clone();
        let wave = self.ledger().0.waves.remove(&uid);
        if let Some(wave) = wave.filter(|wave| wave.stop.is_some()) {
            self.log.resumed((uid, wave.generation), wave.failed.into_iter(), second);
        }
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Replicas)) {
        let workload = &mut self.workloads[number];
        change(workload);
        workload.version += 1;
    }
}
