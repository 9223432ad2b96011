//! Pods are created in every way, in turns.

use std::time::{Duration, Instant};

use futures::future::join_all;
use otel_webhook_testkit::load::{figures::Figures, process};

use crate::{
    client::Creator,
    cluster::{Cluster, pod},
    table,
    ways::{ANNOTATED, CONSTANT, HOOK, NONE, OURS, WAYS, Way, Webhook},
};

/// How pods are created.
#[derive(Clone, Copy)]
pub struct Mode {
    /// Clients at the same time.
    pub clients: usize,
    /// Whether the pods are not stored.
    pub dry_run: bool,
    /// Pods that each client creates in a turn.
    pods: usize,
}

const MODES: [Mode; 4] = [
    Mode { clients: 1, dry_run: false, pods: 25 },
    Mode { clients: 8, dry_run: false, pods: 10 },
    Mode { clients: 1, dry_run: true, pods: 25 },
    Mode { clients: 8, dry_run: true, pods: 10 },
];

/// Turns before those that count: connections are opened, and caches of the API server filled.
const WARM_UP: usize = 2;

/// One turn of a way.
pub struct Turn {
    /// How long each creation took, in order of length.
    pub latencies: Vec<Duration>,
    /// How long the turn took.
    pub elapsed: Duration,
    /// The CPU time of the API server, etcd and the webhook.
    pub cpu: [Duration; 3],
}

/// All turns of a way in one mode.
pub struct Measured {
    /// The way.
    pub way: &'static Way,
    /// Its turns.
    pub turns: Vec<Turn>,
    /// How often the API server called its webhook for each pod.
    pub reviews: f64,
}

/// Every mode: each prints its table.
pub async fn all(figures: &mut Figures, cluster: &Cluster, rounds: usize) {
    for mode in MODES {
        let measured = in_turns(cluster, mode, rounds).await;
        table::print(mode, &measured);
        add(figures, mode, &measured);
    }
}

async fn in_turns(cluster: &Cluster, mode: Mode, rounds: usize) -> Vec<Measured> {
    let mut clients = Vec::new();
    for _ in 0..mode.clients {
        clients.push(Creator::new(&cluster.plane).await);
    }
    for way in WAYS.iter().cycle().take(WARM_UP * WAYS.len()) {
        turn(cluster, way, mode, &clients).await;
    }
    let mut measured = Vec::new();
    for way in &WAYS {
        let reviews = clients[0].reviews(&way.webhook_name()).await;
        measured.push(Measured { way, turns: Vec::with_capacity(rounds), reviews });
    }
    for round in 0..rounds {
        // None always follows the same one.
        let step = if round % 2 == 0 { 1 } else { WAYS.len() - 1 };
        for number in 0..WAYS.len() {
            let one = &mut measured[(round + number * step) % WAYS.len()];
            one.turns.push(turn(cluster, one.way, mode, &clients).await);
        }
    }
    for one in &mut measured {
        let reviews = clients[0].reviews(&one.way.webhook_name()).await - one.reviews;
        one.reviews = reviews / count(one.turns.iter().map(|turn| turn.latencies.len()).sum());
    }
    measured
}

/// Creates the pods of a turn, and deletes them when all is measured.
async fn turn(cluster: &Cluster, way: &Way, mode: Mode, clients: &[Creator]) -> Turn {
    let (pod, namespaces) = (pod(way.pods), way.namespaces());
    let processes = processes(cluster, way);
    let before = processes.map(|process| process.map(process::cpu));
    let started = Instant::now();
    let (pod, names) = (&pod, &namespaces);
    let created = join_all(clients.iter().enumerate().map(|(number, client)| async move {
        let mut latencies = Vec::with_capacity(mode.pods);
        for index in 0..mode.pods {
            let namespace = &names[(number + index * clients.len()) % names.len()];
            latencies.push(client.create(namespace, pod, mode.dry_run).await.1);
        }
        latencies
    }));
    let mut latencies = created.await.concat();
    let elapsed = started.elapsed();
    let mut cpu = [Duration::ZERO; 3];
    for (index, process) in processes.into_iter().enumerate() {
        if let (Some(process), Some(before)) = (process, before[index]) {
            cpu[index] = process::cpu(process).saturating_sub(before);
        }
    }
    if !mode.dry_run {
        for namespace in names.iter().take(latencies.len()) {
            clients[0].delete_all(namespace).await;
        }
    }
    latencies.sort_unstable();
    Turn { latencies, elapsed, cpu }
}

/// The API server, etcd and the webhook, if there is one.
fn processes(cluster: &Cluster, way: &Way) -> [Option<u32>; 3] {
    let webhook = match way.webhook {
        Webhook::None => None,
        Webhook::Hook | Webhook::Constant | Webhook::Whole => Some(cluster.hook.id()),
        Webhook::Ours(_) => Some(cluster.ours().id()),
    };
    [Some(cluster.plane.process("kube-apiserver")), Some(cluster.plane.process("etcd")), webhook]
}

impl Turn {
    /// The latency that so many of a thousand pods did not exceed, in milliseconds.
    pub fn latency(&self, per_mille: usize) -> f64 {
        percentile(&self.latencies, per_mille)
    }
}

impl Measured {
    /// The latency that so many of a thousand pods of all turns did not exceed, in milliseconds.
    pub fn latency(&self, per_mille: usize) -> f64 {
        let mut all: Vec<_> = self.turns.iter().flat_map(|turn| turn.latencies.iter().copied()).collect();
        all.sort_unstable();
        percentile(&all, per_mille)
    }

    /// The same without that of the way without a webhook.
    pub fn added(&self, base: &Self, per_mille: usize) -> f64 {
        self.latency(per_mille) - base.latency(per_mille)
    }

    /// What each turn added at the median, in milliseconds.
    pub fn added_by_turn(&self, base: &Self) -> Vec<f64> {
        self.turns.iter().zip(&base.turns).map(|(one, base)| one.latency(500) - base.latency(500)).collect()
    }

    /// Pods a second.
    pub fn rate(&self) -> f64 {
        self.pods() / self.turns.iter().map(|turn| turn.elapsed.as_secs_f64()).sum::<f64>()
    }

    /// CPU time of a process for each pod, in microseconds.
    pub fn cpu(&self, process: usize) -> f64 {
        self.turns.iter().map(|turn| turn.cpu[process].as_secs_f64()).sum::<f64>() * 1e6 / self.pods()
    }

    fn pods(&self) -> f64 {
        count(self.turns.iter().map(|turn| turn.latencies.len()).sum())
    }
}

/// The way of a key.
pub fn of<'m>(measured: &'m [Measured], key: &str) -> &'m Measured {
    measured.iter().find(|one| one.way.key == key).expect("a way")
}

/// The figures with a goal, and those next to them.
fn add(figures: &mut Figures, mode: Mode, measured: &[Measured]) {
    let [none, hook, constant, ours, silent] =
        [NONE, HOOK, CONSTANT, OURS, ANNOTATED].map(|key| of(measured, key));
    let name = |what: &str| format!("{}: {what}", table::name(mode));
    let goal = |goal: &'static str| if mode.clients == 1 && !mode.dry_run { goal } else { "" };
    figures.add(name("p50 without a webhook"), "ms", "", &[none.latency(500)]);
    figures.add(name("hook that allows everything: added p50"), "ms", "", &hook.added_by_turn(none));
    figures.add(name("hook with a constant patch: added p50"), "ms", "", &constant.added_by_turn(none));
    figures.add(name("ours: added p50"), "ms", "", &ours.added_by_turn(none));
    let ratio = ours.added(none, 500) / hook.added(none, 500);
    figures.add(name("ours: added p50 against the hook's"), "times", goal("≤ 2.2"), &[ratio]);
    let ratio = ours.added(none, 500) / constant.added(none, 500);
    figures.add(name("ours: added p50 against the constant patch's"), "times", "", &[ratio]);
    let silent = silent.added_by_turn(none);
    figures.add(name("pod does not opt in, shape annotated: added p50"), "ms", goal("≤ 0.5"), &silent);
    figures.add(name("ours: pods"), "/s", "", &[ours.rate()]);
    figures.add(name("ours: reviews of each pod"), "", "1", &[ours.reviews]);
}

fn percentile(sorted: &[Duration], per_mille: usize) -> f64 {
    let at = (sorted.len() * per_mille).div_ceil(1000).saturating_sub(1);
    sorted.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
}

fn count(pods: usize) -> f64 {
    f64::from(u32::try_from(pods).expect("thousands"))
}
