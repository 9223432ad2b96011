//! A leader: reads, plans, writes the ledger, takes the steps. It may end between any two of them.

use super::{random::Random, world::World};
use crate::restart::{Ledger, Pace, Step, Verdict, World as Seen, plan};

/// What a leader keeps in memory.
pub struct Leader {
    /// The ledger as it was read or written last, with its version.
    ledger: Option<(Ledger, u64)>,
    /// What the last plan said.
    pub verdicts: Vec<Verdict>,
}

impl Leader {
    /// A process that has just become leader.
    pub fn new() -> Self {
        Self { ledger: None, verdicts: Vec::new() }
    }

    /// One round, which may end anywhere.
    pub fn step(&mut self, world: &mut World, random: &mut Random) {
        if self.round(world, random, 30).is_none() {
            *self = Self::new();
        }
    }

    /// One round to its end.
    pub fn step_without_crash(&mut self, world: &mut World, random: &mut Random) {
        let end = self.round(world, random, u32::MAX);
        assert_eq!(end, Some(()), "nothing ends it");
    }

    /// Returns `None` if the process ends in between: once in `crashes` of the places where it can.
    fn round(&mut self, world: &mut World, random: &mut Random, crashes: u32) -> Option<()> {
        let mut alive = || (random.below(crashes) > 0).then_some(());
        let view = world.view();
        let (ledger, version) = self.ledger.take().unwrap_or_else(|| world.ledger());
        let workloads: Vec<_> = view.iter().map(|(seen, _)| seen.clone()).collect();
        let instrumentations = world.instrumentations();
        let seen = Seen { now: world.now(), instrumentations: &instrumentations, workloads: &workloads };
        let planned = plan(seen, &Pace::default(), &ledger);
        alive()?;
        self.verdicts = planned.verdicts;
        let mut ledger = planned.ledger;
        // Another leader has written: this one reads again.
        let Some(version) = world.write_ledger(&ledger, version) else { return Some(()) };
        for step in planned.steps {
            alive()?;
            let at = view.iter().find(|(seen, _)| seen.workload == *workload_of(&step));
            let resource_version = at.map(|(_, version)| *version).expect("planned from it");
            match step {
                Step::Rollout { workload, change } => {
                    if world.roll_out(&workload, &change, resource_version) {
                        alive()?;
                        ledger.written(&workload);
                    }
                }
                Step::Evict { workload, pod, uid } => world.evict(&workload, &pod, &uid),
            }
        }
        self.ledger = Some((ledger, version));
        Some(())
    }
}

fn workload_of(step: &Step) -> &crate::workload::Workload {
    match step {
        Step::Rollout { workload, .. } | Step::Evict { workload, .. } => workload,
    }
}
