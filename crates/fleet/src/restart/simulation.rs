//! Leaders in one cluster in simulated time: they end between any two steps, two of them overlap, their views are
//! late, and Instrumentations, default images, GitOps tools, policies, `PodDisruptionBudget`s and the replicas of the
//! webhook change at random.
//!
//! The world simulates only the rules of the API server and of rollouts: versions, preconditions, pods that
//! become ready or fail. The decisions are made by the real code.

mod world;

use crate::restart::{Ledger, Observed, Pace, Step, Verdict, Webhook, plan};
use otel_webhook_testkit::generated::choices::Choices;
use world::World;

/// How often something disturbs the cluster: once in so many steps on average.
const TROUBLE: usize = 40;

/// Runs a number of steps of a second or two each, and checks the promises after each.
fn run(seed: u64, steps: u32) -> World {
    let mut choices = Choices::new(seed);
    let mut world = World::new(&mut choices, seed);
    let mut leaders = vec![Leader::new()];
    for _ in 0..steps {
        world.advance(1 + i64::from(choices.chance(50)));
        if choices.below(TROUBLE) == 0 {
            world.disturb(&mut choices);
        }
        match choices.below(200) {
            // A successor; the leader before goes on for a while in the belief that it leads.
            0 => leaders.push(Leader::new()),
            1 => leaders = vec![Leader::new()],
            _ => {}
        }
        if leaders.len() > 1 && choices.below(20) == 0 {
            leaders.remove(0);
        }
        let at = choices.below(leaders.len());
        leaders[at].step(&mut world, &mut choices);
        world.check();
    }
    world
}

/// Lets everything be well, and returns after a time in which all restarts can be made.
fn calm(world: &mut World, seed: u64) -> Leader {
    let mut choices = Choices::new(seed);
    let mut leader = Leader::new();
    world.calm();
    for _ in 0..4000 {
        world.advance(2);
        leader.step_without_crash(world, &mut choices);
        world.check();
    }
    leader
}

/// A hundred thousand steps; a million by `make simulation`. The seeds are independent.
fn seeds() -> u64 {
    option_env!("OTEL_WEBHOOK_SIMULATION_SEEDS").map_or(20, |seeds| seeds.parse().expect("a number"))
}

#[test]
fn pace_canary_stop_and_budgets_hold_whatever_happens() {
    for seed in 0..seeds() {
        let world = run(seed, 5000);
        assert!(world.restarts() > 0, "seed {seed}: nothing was restarted, so nothing was checked");
    }
}

#[test]
fn in_a_calm_cluster_every_workload_with_consent_is_brought_up_to_date() {
    for seed in 0..seeds() / 2 {
        let mut world = run(seed, 2000);
        let leader = calm(&mut world, seed);
        world.check_all_are_up_to_date(&leader.verdicts);
    }
}

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
    pub fn step(&mut self, world: &mut World, choices: &mut Choices) {
        if self.round(world, choices, 30).is_none() {
            *self = Self::new();
        }
    }

    /// One round to its end.
    pub fn step_without_crash(&mut self, world: &mut World, choices: &mut Choices) {
        let end = self.round(world, choices, usize::MAX);
        assert_eq!(end, Some(()), "nothing ends it");
    }

    /// Returns `None` if the process ends in between: once in `crashes` of the places where it can.
    fn round(&mut self, world: &mut World, choices: &mut Choices, crashes: usize) -> Option<()> {
        let mut alive = || (choices.below(crashes) > 0).then_some(());
        let view = world.view();
        let (ledger, version) = self.ledger.take().unwrap_or_else(|| world.ledger());
        let workloads: Vec<_> = view.iter().map(|(seen, _)| seen.clone()).collect();
        let instrumentations = world.instrumentations();
        let mut webhook = Webhook::default();
        let planned = loop {
            let seen = Observed {
                now: world.now(),
                instrumentations: &instrumentations,
                workloads: &workloads,
                webhook: &webhook,
            };
            let planned = plan(seen, &Pace::default(), &ledger);
            let mut answered = webhook.clone();
            for (workload, config) in planned.expected() {
                world.ask(workload, config, &mut answered);
            }
            if answered == webhook {
                break planned;
            }
            webhook = answered;
        };
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
                    if world.is_refused(&workload, &change) {
                        alive()?;
                        ledger.refused(&workload, "denied", world.now());
                    } else if world.roll_out(&workload, &change, resource_version) {
                        alive()?;
                        ledger.written(&workload);
                    }
                }
                Step::Evict { workload, pod, uid } if world.evict(&workload, &pod, &uid) => {
                    ledger.evicted(&workload);
                }
                Step::Evict { workload, .. } => {
                    ledger.eviction_refused(&workload, world.now());
                }
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
