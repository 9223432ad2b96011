//! The cases: each begins good traffic, makes a fault, and says what came of both.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use otel_webhook_testkit::{
    load::{
        good::{Pace, Servers, Tally, Traffic},
        hostile, material,
    },
    until::poll,
};
use serde_json::{Value, json};

use crate::{
    api_server::{ApiServer, Objects},
    connections,
    process::{LIMIT, Memory, Process, Start},
};

/// How much of each fault is made.
pub struct Scale {
    /// How long traffic goes on without a fault, before and after.
    calm: Duration,
    /// How often each kind of hostile review is sent four times at once.
    rounds: usize,
    chunks: usize,
    idle: usize,
    /// How long what has no end by itself goes on.
    length: Duration,
    /// How long nobody reads the log.
    unread: Duration,
    /// How often the cost of a review is measured; the least counts.
    costs: usize,
    restarts: usize,
}

impl Scale {
    /// For `.ci/run`.
    pub const SHORT: Self = Self {
        calm: Duration::from_millis(500),
        rounds: 2,
        chunks: 500_000,
        idle: 5_000,
        length: Duration::from_secs(5),
        unread: Duration::from_secs(5),
        costs: 7,
        restarts: 4,
    };
    /// For the table.
    pub const LONG: Self = Self {
        calm: Duration::from_secs(2),
        rounds: 5,
        chunks: 8_000_000,
        idle: 10_000,
        length: Duration::from_secs(60),
        unread: Duration::from_secs(600),
        costs: 40,
        restarts: 100,
    };
}

/// What came of a case.
#[derive(Default)]
pub struct Row {
    tally: Tally,
    cpu: Duration,
    before: Memory,
    peak: Memory,
    after: Memory,
    /// How many probes may fail: the kubelet ends a container after three in a row.
    may_fail: usize,
    /// What else was not as it has to be.
    wrong: Vec<String>,
}

impl Row {
    /// A line of the table.
    pub fn line(&self, name: &str) -> String {
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        let Self { tally, .. } = self;
        format!(
            "| {name} | {} | {} | {} | {:.0} ms | {} | {} | {:.1} s | {} | {} | {} |",
            tally.answered,
            tally.lost.len(),
            tally.not_injected,
            tally.latency(990),
            tally.probes,
            tally.dead,
            self.cpu.as_secs_f64(),
            mib(self.before.resident),
            mib(self.peak.peak),
            mib(self.after.resident),
        )
    }

    /// What has to hold for every case, and does not.
    pub fn problems(&self) -> Vec<String> {
        let Self { tally, .. } = self;
        let mut problems = self.wrong.clone();
        let mut hold = |holds: bool, problem: String| problems.extend((!holds).then_some(problem));
        hold(tally.answered > 0, "no good review was answered".to_owned());
        let reasons: Vec<_> = tally.lost.iter().take(3).collect();
        hold(tally.lost.is_empty(), format!("{} good reviews were lost: {reasons:?}", tally.lost.len()));
        hold(tally.not_injected == 0, format!("{} good reviews were not injected", tally.not_injected));
        let Tally { dead, probes, .. } = tally;
        hold(*dead <= self.may_fail, format!("{dead} of {probes} probes were not answered by 200"));
        hold(self.peak.peak <= LIMIT, format!("{} bytes were resident, of {LIMIT}", self.peak.peak));
        problems
    }
}

type Case = (&'static str, fn(&Scale) -> Row);

/// All cases.
pub const CASES: &[Case] = &[
    ("nothing", |scale| beside(scale, &Start::default(), |_| thread::sleep(scale.length / 5))),
    ("four of each hostile review at once", hostile_reviews),
    ("1,000 unfinished bodies", |scale| {
        beside(scale, &Start::default(), |server| {
            let kept = connections::unfinished(server.webhook, 1000, 100_000);
            thread::sleep(scale.length / 5);
            drop(kept);
        })
    }),
    ("500 bodies by single bytes", single_bytes),
    ("one-byte chunks", |scale| {
        beside(scale, &Start::default(), |server| {
            connections::one_byte_chunks(server.webhook, scale.chunks).expect("a connection");
        })
    }),
    ("idle connections to the webhook, one address", |scale| idle(scale, |server| server.webhook, 1)),
    ("idle connections to the webhook, 200 addresses", |scale| idle(scale, |server| server.webhook, 200)),
    ("idle connections to the admin port, one address", |scale| flooded(scale, 1)),
    ("idle connections to the admin port, 200 addresses", |scale| flooded(scale, 200)),
    ("a log that nobody reads", unread_log),
    ("200 namespaces of 50 hostile Instrumentations, 200 of an honest one", hostile_instrumentations),
    ("another certificate every 100 ms", certificates),
    ("rolling restarts of two servers, 500 reviews/s", restarts),
];

const GOOD: Pace = Pace { rate: 200, is_kept: true };

fn servers(process: &Process) -> Servers {
    Arc::new(Mutex::new(vec![process.webhook]))
}

/// Good traffic before, during and after a fault.
fn beside(scale: &Scale, start: &Start<'_>, fault: impl FnOnce(&mut Process)) -> Row {
    at_pace(scale, start, GOOD, fault)
}

fn at_pace(scale: &Scale, start: &Start<'_>, pace: Pace, fault: impl FnOnce(&mut Process)) -> Row {
    let mut process = Process::start(start);
    let traffic = Traffic::begin(&servers(&process), Some(process.admin), pace);
    thread::sleep(scale.calm);
    let (before, cpu) = (process.memory(), process.cpu());
    fault(&mut process);
    thread::sleep(scale.calm);
    let cpu = process.cpu().saturating_sub(cpu);
    let tally = traffic.end();
    let after = process.memory();
    let mut row = Row { tally, cpu, before, peak: after, after, ..Row::default() };
    if !process.runs() {
        row.wrong.push("the server ended".to_owned());
    }
    row
}

/// Each kind four times at once; and twice the input costs little more than twice as much.
fn hostile_reviews(scale: &Scale) -> Row {
    let mut unequal = Vec::new();
    let mut row = beside(scale, &Start::default(), |server| {
        for (name, make) in hostile::ALL {
            let review = make(100);
            for _ in 0..scale.rounds {
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| check_allowed(server, name, &review));
                    }
                });
            }
        }
    });
    // Alone, so that the CPU is that of the reviews.
    let server = Process::start(&Start::default());
    for (name, make) in hostile::ALL {
        let [half, whole] = [50, 100].map(|size| cost(&server, name, &make(size), scale.costs));
        println!("{name}: {:.1} ms, and {:.1} ms for half of it", whole * 1e3, half * 1e3);
        // Quadratic work would cost four times as much. It is more than twice as much where the
        // larger one does not fit into the caches.
        if whole > 3.3 * half {
            unequal.push(format!("{name}: twice the input costs {:.1} times as much", whole / half));
        }
    }
    row.wrong.extend(unequal);
    row
}

fn check_allowed(server: &Process, name: &str, review: &Value) {
    let answer = hostile::send(server.webhook, review).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"allowed\":true"), "{name}: {answer}");
}

/// The CPU time of one review, in seconds: the least of several.
fn cost(server: &Process, name: &str, review: &Value, times: usize) -> f64 {
    let once = || {
        let before = server.cpu();
        check_allowed(server, name, review);
        server.cpu().saturating_sub(before).as_secs_f64()
    };
    (0..times).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn single_bytes(scale: &Scale) -> Row {
    beside(scale, &Start::default(), |server| {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let sender = scope.spawn(|| connections::by_single_bytes(server.webhook, 500, &stop));
            thread::sleep(scale.length);
            stop.store(true, Ordering::Relaxed);
            assert!(sender.join().expect("no panic") > 0, "no byte was sent");
        });
    })
}

/// Idle connections, and a review on a new connection next to them.
fn idle(scale: &Scale, port: impl Fn(&Process) -> std::net::SocketAddr, sources: u8) -> Row {
    let mut wrong = Vec::new();
    let mut row = beside(scale, &Start::default(), |server| {
        let kept = connections::idle(port(server), scale.idle, sources);
        let started = Instant::now();
        let fresh = hostile::send(server.webhook, &material::usual());
        if !fresh.is_ok_and(|answer| answer.contains("JSONPatch")) {
            wrong.push("a fresh review was not answered".to_owned());
        }
        println!(
            "{} connections; a fresh review took {:.0} ms",
            kept.len(),
            started.elapsed().as_secs_f64() * 1e3
        );
        if kept.len() < scale.idle {
            wrong.push(format!("{} connections could be opened, of {}", kept.len(), scale.idle));
        }
        thread::sleep(scale.calm);
    });
    row.wrong.extend(wrong);
    row
}

/// The port that is probed is the one that is flooded: a probe may be among thousands of
/// connections that are opened at the same moment.
fn flooded(scale: &Scale, sources: u8) -> Row {
    Row { may_fail: 2, ..idle(scale, |server| server.admin, sources) }
}

fn unread_log(scale: &Scale) -> Row {
    let mut wrong = Vec::new();
    let start = Start { is_read: false, arguments: &["--log", "debug"], ..Start::default() };
    let pace = Pace { rate: 1000, is_kept: true };
    let mut row = at_pace(scale, &start, pace, |server| {
        // A pipe takes 64 KiB, and the queue some thousand lines.
        let dropped = || server.metric("otel_webhook_log_lines_dropped_total") > 0.0;
        if poll(|| dropped().then_some(())).is_none() {
            wrong.push("no line was dropped and counted".to_owned());
        }
        thread::sleep(scale.unread);
    });
    // Its own server, since traffic ends before.
    let mut server = Process::start(&start);
    for _ in 0..200 {
        check_allowed(&server, "usual", &material::usual());
    }
    match server.terminate() {
        Some(took) => println!("with an unread log SIGTERM ended it after {:.1} s", took.as_secs_f64()),
        None => wrong.push("SIGTERM did not end it".to_owned()),
    }
    row.wrong.extend(wrong);
    row
}

const HOSTILE: usize = 200;
const HOSTILE_EACH: usize = 50;
const HONEST: usize = 200;

/// The namespace of an honest Instrumentation; the first is that of the usual pod.
fn honest(number: usize) -> String {
    if number == 0 { material::NAMESPACE.to_owned() } else { format!("honest-{number}") }
}

fn namespace(number: usize) -> String {
    let name = if number < HOSTILE { format!("a-{number}") } else { honest(number - HOSTILE) };
    json!({"metadata": {"name": name, "resourceVersion": "1"}}).to_string()
}

/// What hostile Instrumentations have: what holds the most memory for its length, and nothing.
static HOSTILE_SPECS: LazyLock<[String; 3]> = LazyLock::new(|| {
    let variables = |count: usize| -> Value {
        (0..count).map(|number| json!({"name": format!("V{number}"), "value": "a"})).collect()
    };
    let agent = |number: usize| json!({"name": format!("a{number}"), "image": "own:1", "directory": "/a", "env": variables(64)});
    let [java, nodejs, python] = [(); 3].map(|()| json!({"env": variables(600)}));
    let specs = [
        json!({"agents": (0..16).map(agent).collect::<Vec<_>>()}),
        json!({"java": java, "nodejs": nodejs, "python": python}),
        json!({}),
    ];
    specs.map(|spec| spec.to_string())
});

/// The hostile ones are listed before the honest ones and were created before them.
fn stored_instrumentation(number: usize) -> String {
    let Some(honest_number) = number.checked_sub(HOSTILE * HOSTILE_EACH) else {
        let metadata = json!({
            "namespace": format!("a-{}", number / HOSTILE_EACH), "name": format!("i-{number}"), "resourceVersion": "1",
            "uid": format!("{number}"), "creationTimestamp": "2025-01-01T00:00:00Z",
        });
        return format!(r#"{{"metadata":{metadata},"spec":{}}}"#, HOSTILE_SPECS[number % 3]);
    };
    let mut object = material::instrumentation();
    let metadata = &mut object["metadata"];
    metadata["namespace"] = honest(honest_number).into();
    metadata["resourceVersion"] = "1".into();
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    object.to_string()
}

/// Each honest one is used, and what all hold is bounded.
fn hostile_instrumentations(scale: &Scale) -> Row {
    /// Of the limit, what is left is for bodies.
    const MOST: u64 = 110 << 20;
    let api_server = ApiServer::start(
        Objects { count: HOSTILE + HONEST, make: namespace },
        Objects { count: HOSTILE * HOSTILE_EACH + HONEST, make: stored_instrumentation },
    );
    let start = Start { kubeconfig: Some(&api_server.kubeconfig), ..Start::default() };
    let mut wrong = Vec::new();
    let mut row = beside(scale, &start, |server| {
        for namespace in (0..HONEST).map(honest) {
            let mut review = material::usual();
            review["request"]["namespace"] = namespace.as_str().into();
            review["request"]["object"]["metadata"]["namespace"] = namespace.as_str().into();
            let answer = hostile::send(server.webhook, &review);
            if !answer.is_ok_and(|answer| answer.contains("JSONPatch")) {
                wrong.push(format!("the Instrumentation of {namespace} is not used"));
            }
        }
        let not_used = server.metric("otel_webhook_instrumentations_too_large");
        println!("{not_used} of {} hostile Instrumentations are not used", HOSTILE * HOSTILE_EACH);
        if not_used == 0.0 {
            wrong.push("all hostile Instrumentations are used".to_owned());
        }
    });
    if row.peak.peak > MOST {
        wrong.push(format!("{} bytes were resident, of {MOST}", row.peak.peak));
    }
    row.wrong.extend(wrong);
    row
}

fn certificates(scale: &Scale) -> Row {
    let folder = tempfile::tempdir().expect("a folder");
    put_certificate(folder.path());
    let [certificate, key] =
        ["tls.crt", "tls.key"].map(|name| folder.path().join(name).display().to_string());
    let arguments = ["--tls-cert", &certificate, "--tls-key", &key];
    let start = Start { arguments: &arguments, ..Start::default() };
    // A new connection for each review, so that every certificate is seen.
    at_pace(scale, &start, Pace { rate: 100, is_kept: false }, |_| {
        let started = Instant::now();
        while started.elapsed() < scale.length {
            put_certificate(folder.path());
            thread::sleep(Duration::from_millis(100));
        }
    })
}

/// Replaces key and certificate, one after the other: what is there between the two must not be used.
fn put_certificate(folder: &Path) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    for (name, text) in [("tls.key", pair.signing_key.serialize_pem()), ("tls.crt", pair.cert.pem())] {
        let new = folder.join(format!("{name}.new"));
        fs::write(&new, text).expect("a file");
        fs::rename(new, folder.join(name)).expect("a file");
    }
}

fn restarts(scale: &Scale) -> Row {
    let arguments = ["--shutdown-delay", "1"];
    let start = || Process::start(&Start { arguments: &arguments, ..Start::default() });
    let mut running = vec![start(), start()];
    let addresses = |running: &[Process]| running.iter().map(|one| one.webhook).collect::<Vec<_>>();
    let servers: Servers = Arc::new(Mutex::new(addresses(&running)));
    let before = running[0].memory();
    let traffic = Traffic::begin(&servers, None, Pace { rate: 500, is_kept: true });
    let mut wrong = Vec::new();
    for restart in 0..scale.restarts {
        running.push(start());
        let mut old = running.remove(0);
        // The endpoint leaves the Service as the signal is sent.
        *servers.lock().expect("no panic") = addresses(&running);
        if old.terminate().is_none() {
            wrong.push(format!("server {restart} did not end"));
        }
    }
    let tally = traffic.end();
    let after = running[0].memory();
    Row { tally, before, peak: after, after, wrong, ..Row::default() }
}
