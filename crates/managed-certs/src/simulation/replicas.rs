//! The simulated replicas, step by step.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::world::{KINDS, World, policy};
use super::{MINUTE, Random, SKEW};
use crate::configuration::Configuration;
use crate::plan::Plan;
use crate::replica::{Action, Replica};
use crate::secret::Stored;
use crate::x509::X509;

/// The maximum delay of a watch event.
const LATEST_NEWS: u32 = 2000;

pub struct Replicas {
    processes: Vec<Process>,
    told: [u64; 1 + KINDS],
}

/// One replica with the events that it will receive.
struct Process {
    replica: Replica,
    ahead: SignedDuration,
    busy: Busy,
    wakes: Duration,
    news: Vec<(Duration, News)>,
    /// The served certificate, and the CA that signed it.
    served: Option<(X509, X509)>,
    was_ready: bool,
}

enum News {
    Secret(Option<Box<Stored>>),
    Configuration(usize, Configuration),
}

impl News {
    fn object(&self) -> usize {
        match self {
            Self::Secret(_) => 0,
            Self::Configuration(index, _) => 1 + index,
        }
    }
}

/// The next request of the present action.
enum Busy {
    Idle,
    Write,
    ReadSecret(usize, Configuration),
    Patch(usize),
}

impl Process {
    /// A replica that starts now, and lists all objects.
    fn start(world: &World, random: &mut Random) -> Self {
        let skew = u32::try_from(SKEW.as_secs()).expect("a few");
        let ahead = SignedDuration::from_secs(i64::from(random.below(2 * skew)) - i64::from(skew));
        let mut process = Self {
            replica: Replica::new(policy(), KINDS),
            ahead,
            busy: Busy::Idle,
            wakes: Duration::MAX,
            news: Vec::new(),
            served: None,
            was_ready: false,
        };
        (0..=KINDS).for_each(|object| process.tell(world, object, random));
        process
    }

    /// Sends an event of an object, with a delay. Each object has its own watch, which keeps the order.
    fn tell(&mut self, world: &World, object: usize, random: &mut Random) {
        let soon = world.now + Duration::from_millis(random.below(LATEST_NEWS).into());
        let before = self.news.iter().rfind(|(_, news)| news.object() == object);
        let time = before.map_or(soon, |(time, _)| soon.max(*time));
        let news = match object {
            0 => News::Secret(world.secret().map(Box::new)),
            _ => News::Configuration(object - 1, world.configuration(object - 1)),
        };
        self.news.push((time, news));
        self.news.sort_by_key(|(time, _)| *time);
    }

    fn clock(&self, world: &World) -> Timestamp {
        world.time() + self.ahead
    }

    fn hear(&mut self, world: &World) {
        let due = self.news.iter().take_while(|(time, _)| *time <= world.now).count();
        for (_, news) in self.news.drain(..due) {
            match news {
                News::Secret(secret) => self.replica.hear_secret(secret.map(|secret| *secret)),
                News::Configuration(index, configuration) => {
                    self.replica.see_configuration(index, Some(configuration), world.instant());
                }
            }
        }
    }

    /// Makes one request, or decides on the next action.
    fn act(&mut self, world: &mut World) {
        match std::mem::replace(&mut self.busy, Busy::Idle) {
            Busy::Idle => self.begin(world),
            Busy::Write => {
                let plan = self.replica.plan(self.clock(world), world.instant()).expect("a plan");
                let Plan::Change(content, _) = plan else { return };
                let written = match self.replica.stored() {
                    None => world.create_secret(&content),
                    Some(stored) => world.update_secret(stored, &content),
                };
                if written.is_some() {
                    self.replica.take_secret(written);
                }
            }
            Busy::ReadSecret(index, configuration) => {
                self.replica.take_secret(world.secret());
                self.replica.see_configuration(index, Some(configuration), world.instant());
                self.busy = Busy::Patch(index);
            }
            Busy::Patch(index) => {
                let found = self.replica.registrations[index].there();
                let (Some(found), Some(content)) = (found, self.replica.whole()) else { return };
                if found.agrees(&content.bundle) {
                    return;
                }
                if let Some(mended) = world.patch(index, &found.patch(&content.bundle)) {
                    self.replica.mended(index, world.instant());
                    self.replica.see_configuration(index, Some(mended), world.instant());
                }
            }
        }
    }

    fn begin(&mut self, world: &World) {
        match self.replica.next(self.clock(world), world.instant()) {
            Action::ChangeSecret => {
                self.replica.take_secret(world.secret());
                self.busy = Busy::Write;
            }
            Action::Serve(certificate) => {
                let served = X509::read(certificate.chain()[0].clone()).expect("a certificate");
                let signer = self.replica.whole().and_then(|content| content.signer().cloned());
                self.served = Some((served, signer.expect("the Secret is complete")));
            }
            Action::Mend(index) => self.busy = Busy::ReadSecret(index, world.configuration(index)),
            Action::Wait(wait) => self.wakes = world.now + wait,
        }
    }

    fn next_event(&self) -> Duration {
        self.news.first().map_or(self.wakes, |(time, _)| self.wakes.min(*time))
    }
}

impl Replicas {
    pub fn start(count: usize, world: &World, random: &mut Random) -> Self {
        Self { processes: (0..count).map(|_| Process::start(world, random)).collect(), told: world.changes }
    }

    /// Runs the next step of any replica.
    pub fn step(&mut self, world: &mut World, random: &mut Random) {
        world.now = world.now.max(self.next_event());
        let mut able: Vec<&mut Process> =
            self.processes.iter_mut().filter(|process| process.next_event() <= world.now).collect();
        let chosen = random.below(u32::try_from(able.len()).expect("few")) as usize;
        let process = &mut *able[chosen];
        process.hear(world);
        // A request takes some time, while other replicas continue; some take long.
        let longest = if random.below(4) == 0 { 5000 } else { 40 };
        process.wakes = world.now + Duration::from_millis(u64::from(1 + random.below(longest)));
        process.act(world);
        self.tell(world, random);
    }

    /// Sends events of all changes since the last call.
    pub fn tell(&mut self, world: &World, random: &mut Random) {
        for object in (0..=KINDS).filter(|object| world.changes[*object] != self.told[*object]) {
            self.processes.iter_mut().for_each(|process| process.tell(world, object, random));
        }
        self.told = world.changes;
    }

    fn next_event(&self) -> Duration {
        self.processes.iter().map(Process::next_event).min().expect("a replica")
    }

    /// Ends one replica between two steps, and starts another one instead.
    pub fn crash(&mut self, world: &World, random: &mut Random) {
        let index = random.below(u32::try_from(self.processes.len()).expect("few")) as usize;
        self.processes[index] = Process::start(world, random);
    }

    /// Checks that every ready replica serves a certificate that all API servers accept.
    pub fn check(&mut self, world: &World, seed: u64) {
        for (index, process) in self.processes.iter_mut().enumerate() {
            process.was_ready |= process.replica.is_ready(world.instant());
            let Some((served, signer)) = process.served.as_ref().filter(|_| process.was_ready) else {
                continue;
            };
            let at = format!("seed {seed}, replica {index}, {:?} after the beginning", world.now);
            assert!(!served.is_over(world.time()), "it has expired: {at}");
            assert!(served.not_before <= world.time(), "it is not valid yet: {at}");
            for trusted in world.believed() {
                assert!(trusted.contains(signer), "not trusted: {at}");
            }
        }
    }

    pub fn all_are_ready(&self, world: &World) -> bool {
        self.processes.iter().all(|process| process.replica.is_ready(world.instant()))
    }

    /// The serial numbers of the served certificates.
    pub fn served(&self) -> BTreeSet<&str> {
        let served = self.processes.iter().filter_map(|process| process.served.as_ref());
        served.map(|(served, _)| served.serial.as_str()).collect()
    }

    /// Runs ten minutes without disturbances.
    pub fn settle(&mut self, mut world: World) -> World {
        let (end, mut random) = (world.now + 10 * MINUTE, Random(1));
        while self.next_event() < end {
            self.step(&mut world, &mut random);
        }
        world.now = end;
        world
    }
}
