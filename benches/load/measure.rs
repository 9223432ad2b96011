//! What is measured, in which order.

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use otel_webhook_testkit::load::{figures::Figures, limit_ranges, material, sender::Sender, server::Server};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::handshakes;
use crate::pinned::{empty_handler, of_program, product};
use crate::turns::{Loaded, Side, in_turns};

/// How often everything is measured; the figures tell the lowest and the highest.
const ROUNDS: usize = 5;

/// The length of one counting of handshakes.
const HANDSHAKES: Duration = Duration::from_millis(1500);
/// The length of one open loop.
const OPEN: Duration = Duration::from_secs(4);

const CONNECTIONS: [usize; 3] = [1, 16, 128];
/// More than an API server opens to one webhook for as many requests at once.
const MOST_CONNECTIONS: usize = 64;
const RATES: [u32; 3] = [500, 2_000, 10_000];

/// Reviews after which memory is looked at, once at half of them and once at the end.
const MEMORY_REVIEWS: usize = 100_000;

/// Everything, round by round.
pub fn all(figures: &mut Figures) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let one = product(&scratch.path().join("one"), &[material::instrumentation()]);
    let empty = empty_handler()?;
    let body = [bytes(&material::usual())];
    let answer = String::from_utf8_lossy(&Sender::new(one.address, 1, &body)?.ask()?).into_owned();
    assert!(answer.contains("\"patchType\":\"JSONPatch\""), "the review is injected: {answer}");

    start(figures, scratch.path(), &body)?;
    memory(figures, &one, &body)?;
    for connections in CONNECTIONS {
        closed(figures, &one, &empty, &body, connections)?;
    }
    for rate in RATES {
        open(figures, &one, &empty, &body, rate)?;
    }
    connect(figures, &one)?;
    let many = product(&scratch.path().join("many"), &many_instrumentations());
    compare(figures, "10,000 Instrumentations against 1", "≤ 1.1", [(&one, &body), (&many, &body)])?;
    opted_in(figures)?;
    limited(figures, scratch.path(), &body)?;
    let [half, whole] = [50, 100].map(|containers| [bytes(&material::of_containers(containers, containers))]);
    compare(figures, "100 injected containers against 50", "≤ 2.1", [(&one, &half), (&one, &whole)])?;
    let size = fs::metadata(PROGRAM)?.len();
    figures.add("size of the program", "MB", "≤ 20", &[f64::from(u32::try_from(size).expect("MB")) / 1e6]);
    Ok(())
}

/// This program against another one, such as that of an earlier commit, in turns.
pub fn against(figures: &mut Figures, other: &str) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let objects = [material::instrumentation()];
    let this = product(&scratch.path().join("this"), &objects);
    let other = of_program(Path::new(other), &scratch.path().join("other"), &objects);
    let empty = empty_handler()?;
    let body = [bytes(&material::usual())];
    for (name, first, second) in [
        ("this program against the other", &other, &this),
        ("the other against the empty handler", &empty, &other),
    ] {
        compare(figures, name, "", [(first, &body), (second, &body)])?;
    }
    for (server, name) in [(&this, "this program"), (&other, "the other")] {
        Sender::new(server.address, 16, &body)?.closed_of(MEMORY_REVIEWS)?;
        let name = format!("{name}: resident after 100,000 reviews");
        figures.add(name, "MB", "", &[server.memory().resident]);
    }
    compare(figures, "this program against the empty handler", "≤ 3.5", [(&empty, &body), (&this, &body)])
}

/// A pod that the selector of one Instrumentation opts in, and of a thousand others none.
pub fn opted_in(figures: &mut Figures) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let body = [bytes(&material::silent())];
    let one = product(&scratch.path().join("one"), &material::opting_in(1));
    let many = product(&scratch.path().join("many"), &material::opting_in(1_000));
    for server in [&one, &many] {
        let answer = String::from_utf8_lossy(&Sender::new(server.address, 1, &body)?.ask()?).into_owned();
        assert!(answer.contains("\"patchType\":\"JSONPatch\""), "the review is injected: {answer}");
    }
    let name = "1,000 Instrumentations that opt in against 1";
    compare(figures, name, "≤ 1.6", [(&one, &body), (&many, &body)])
}

/// From the start of the process to the answer of its first review, handshake included.
fn start(figures: &mut Figures, scratch: &Path, body: &[Vec<u8>]) -> io::Result<()> {
    let objects = [material::instrumentation()];
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let server = product(&scratch.join("start"), &objects);
        Sender::new(server.address, 1, body)?.ask()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    figures.add("start to the first answer", "ms", "≤ 50", &times);
    Ok(())
}

/// Resident memory before the first reviews, at half of them and at the end.
fn memory(figures: &mut Figures, server: &Server, body: &[Vec<u8>]) -> io::Result<()> {
    figures.add("resident before the first review", "MB", "", &[server.memory().resident]);
    let mut sender = Sender::new(server.address, 16, body)?;
    sender.closed_of(MEMORY_REVIEWS / 2)?;
    let half = server.memory().resident;
    sender.closed_of(MEMORY_REVIEWS / 2)?;
    let whole = server.memory().resident;
    figures.add("resident after 100,000 reviews", "MB", "≤ 25", &[whole]);
    figures.add("growth over the second half of them", "MB", "", &[whole - half]);
    figures.add("resident at most", "MB", "", &[server.memory().peak]);
    Ok(())
}

fn closed(
    figures: &mut Figures,
    product: &Server,
    empty: &Server,
    body: &[Vec<u8>],
    connections: usize,
) -> io::Result<()> {
    let (mut rate, mut cpu, mut empty_rate, mut empty_cpu, mut ratio) = Default::default();
    let into = |list: &mut Vec<f64>, figure: f64| list.push(figure);
    let mut product = Side::new(product, connections, body)?;
    let mut empty = Side::new(empty, connections, body)?;
    for _ in 0..ROUNDS {
        let (one, other) = in_turns(&mut product, &mut empty)?;
        into(&mut rate, one.rate());
        into(&mut cpu, one.cpu_each());
        into(&mut empty_rate, other.rate());
        into(&mut empty_cpu, other.cpu_each());
        into(&mut ratio, one.cpu_each() / other.cpu_each());
    }
    let name = |what: &str| format!("closed loop, {connections} connections: {what}");
    figures.add(name("reviews"), "/s", "", &rate);
    figures.add(name("empty handler"), "/s", "", &empty_rate);
    figures.add(name("CPU of a review"), "µs", "", &cpu);
    figures.add(name("CPU of the empty handler"), "µs", "", &empty_cpu);
    figures.add(name("CPU of a review against the empty handler's"), "times", "≤ 3.5", &ratio);
    Ok(())
}

/// The empty handler tells how much of a latency is the machine's.
fn open(
    figures: &mut Figures,
    product: &Server,
    empty: &Server,
    body: &[Vec<u8>],
    rate: u32,
) -> io::Result<()> {
    let mut to_product = Sender::new(product.address, MOST_CONNECTIONS, body)?;
    let mut to_empty = Sender::new(empty.address, MOST_CONNECTIONS, body)?;
    let (mut reached, mut cpu, mut of_empty) = (Vec::new(), Vec::new(), Vec::new());
    let mut latencies = [500, 900, 990, 999].map(|per_mille| (per_mille, Vec::new()));
    for _ in 0..ROUNDS {
        let loaded = Loaded::by(product, || to_product.at_rate(rate, OPEN))?;
        reached.push(loaded.done.rate());
        cpu.push(loaded.cpu_each());
        for (per_mille, list) in &mut latencies {
            list.push(loaded.done.latency(*per_mille));
        }
        of_empty.push(to_empty.at_rate(rate, OPEN)?.latency(990));
    }
    let name = |what: &str| format!("open loop, {rate}/s: {what}");
    figures.add(name("reached"), "/s", "", &reached);
    figures.add(name("CPU of a review"), "µs", "", &cpu);
    for (per_mille, list) in &latencies {
        let name = name(&format!("p{}", f64::from(u32::try_from(*per_mille).expect("below 1000")) / 10.0));
        let goal = if (rate, *per_mille) == (500, 990) { "≤ 1000" } else { "" };
        figures.add(name, "µs", goal, list);
    }
    figures.add(name("p99 of the empty handler"), "µs", "", &of_empty);
    Ok(())
}

fn connect(figures: &mut Figures, server: &Server) -> io::Result<()> {
    for (name, resume) in [("full", false), ("resumed", true)] {
        let (mut rate, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let loaded = Loaded::by(server, || handshakes::run(server.address, resume, HANDSHAKES))?;
            rate.push(loaded.done.rate());
            cpu.push(loaded.cpu_each());
        }
        figures.add(format!("{name} handshakes"), "/s", "", &rate);
        figures.add(format!("{name} handshakes: CPU"), "µs", "", &cpu);
    }
    Ok(())
}

/// How many times as much CPU the second costs.
fn compare(
    figures: &mut Figures,
    name: &str,
    goal: &str,
    [first, second]: [(&Server, &[Vec<u8>; 1]); 2],
) -> io::Result<()> {
    let mut first = Side::new(first.0, 16, first.1)?;
    let mut second = Side::new(second.0, 16, second.1)?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (one, other) = in_turns(&mut first, &mut second)?;
        ratios.push(other.cpu_each() / one.cpu_each());
    }
    figures.add(format!("{name}: CPU of a review"), "times", goal, &ratios);
    Ok(())
}

/// What LimitRanges cost, one in each of so many namespaces, the pod's among them: against the same
/// namespaces without. The directory source also keeps the files' text and documents, which a watch does not.
fn limited(figures: &mut Figures, scratch: &Path, body: &[Vec<u8>; 1]) -> io::Result<()> {
    let count = limit_ranges::count(2_000);
    let names = (1..count).map(|index| format!("team-{index:05}"));
    let names: Vec<_> = [material::NAMESPACE.to_owned()].into_iter().chain(names).collect();
    let namespace =
        |name: &String| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut objects: Vec<_> = names.iter().map(namespace).chain([material::instrumentation()]).collect();
    let without = product(&scratch.join("without"), &objects);
    objects.extend(names.iter().map(|name| limit_ranges::of(name)));
    let with = product(&scratch.join("with"), &objects);
    compare(figures, &format!("{count} LimitRanges against none"), "", [(&without, body), (&with, body)])?;
    for (server, what) in [(&without, "without LimitRanges"), (&with, "with LimitRanges")] {
        Sender::new(server.address, 16, body)?.closed_of(MEMORY_REVIEWS)?;
        let name = format!("{count} namespaces {what}: resident after 100,000 reviews");
        figures.add(name, "MB", "", &[server.memory().resident]);
    }
    Ok(())
}

/// The one of the pod's namespace, and others of it for other pods.
fn many_instrumentations() -> Vec<Value> {
    let others = (1..10_000).map(|index| {
        let app = format!("app-{index:05}");
        material::instrumentation_of(material::NAMESPACE, &format!("inst-{index:05}"), Some(("app", &app)))
    });
    [material::instrumentation()].into_iter().chain(others).collect()
}

fn bytes(review: &Value) -> Vec<u8> {
    serde_json::to_vec(review).expect("JSON")
}
