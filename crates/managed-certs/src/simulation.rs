//! Replicas in one cluster in simulated time: their steps are interleaved, they end between any
//! two steps, their clocks differ, and watch events of replicas and API servers are late.
//!
//! The world simulates only the rules of the API server: versions increase, a write of an old version is
//! rejected, the first creation wins. The decisions are made by the real code.

mod random;
mod replicas;
mod world;

use std::time::Duration;

use random::Random;
use replicas::Replicas;
use world::World;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// The maximum error of clocks: less than certificates are backdated.
const SKEW: Duration = Duration::from_secs(10 * 60);

/// The disturbances of a run.
struct Weather {
    crashes: bool,
    damage: bool,
}

/// Runs for a while, and checks after each step that no replica serves a certificate that an API server does
/// not trust.
fn run(seed: u64, hours: u32, weather: &Weather) -> (World, Replicas) {
    let mut random = Random(seed);
    let mut world = World::new();
    let mut replicas = Replicas::start(3, &world, &mut random);
    let end = HOUR * hours;
    let mut next_trouble = HOUR;
    while world.now < end {
        replicas.step(&mut world, &mut random);
        replicas.check(&world, seed);
        if world.now >= next_trouble {
            next_trouble = world.now + MINUTE * random.below(600).max(1);
            if weather.crashes {
                replicas.crash(&world, &mut random);
            }
            if weather.damage && replicas.all_are_ready(&world) {
                world.damage_secret(&mut random);
                replicas.tell(&world, &mut random);
            }
        }
    }
    (world, replicas)
}

#[test]
fn replicas_that_start_together_create_one_ca() {
    for seed in 0..10 {
        let (world, replicas) = run(seed, 1, &Weather { crashes: false, damage: false });
        assert_eq!(world.authorities_made(), 1, "seed {seed}");
        assert!(!world.was_undone(), "seed {seed}");
        assert!(replicas.all_are_ready(&world), "seed {seed}");
        assert_eq!(replicas.served().len(), 1, "seed {seed}");
    }
}

#[test]
fn no_rotation_serves_an_untrusted_certificate_however_replicas_end() {
    let mut rotations = 0;
    for seed in 100..104 {
        let (world, mut replicas) = run(seed, 900, &Weather { crashes: true, damage: false });
        rotations += world.authorities_made() - 1;
        assert!(!world.was_undone(), "seed {seed}");
        let world = replicas.settle(world);
        assert!(replicas.all_are_ready(&world), "seed {seed}");
        assert_eq!(replicas.served().len(), 1, "seed {seed}");
    }
    assert!(rotations >= 50, "only {rotations} CAs were rotated");
}

#[test]
fn no_untrusted_certificate_is_served_after_the_secret_is_damaged_or_deleted() {
    for seed in 200..204 {
        let (world, mut replicas) = run(seed, 100, &Weather { crashes: false, damage: true });
        assert!(world.damages > 10, "seed {seed}: only {} damages", world.damages);
        let world = replicas.settle(world);
        assert!(replicas.all_are_ready(&world), "seed {seed}");
        assert_eq!(replicas.served().len(), 1, "seed {seed}");
    }
}
