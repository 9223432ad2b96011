//! What is measured, in which order.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    admin,
    cluster::control_plane::ControlPlane,
    load::{figures::Figures, sender::Sender, server::Server},
};
use serde_json::Value;

use crate::{
    PROGRAM, bursts, growth,
    objects::{Population, Scale},
};

pub type Failed = Box<dyn std::error::Error>;

/// Starts of the product.
const STARTS: usize = 5;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(30);
/// Updates that come as fast as the API server takes them.
const BURST: usize = 5_000;
/// Changes that are waited for one by one.
const CHANGES: usize = 300;
/// Reviews after which memory is looked at, once at half of them and once at the end.
const MEMORY_REVIEWS: usize = 100_000;
/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// Everything, in the order of a process's life.
pub async fn all(
    figures: &mut Figures,
    plane: &mut ControlPlane,
    population: &Population,
) -> Result<(), Failed> {
    let server = start(figures, plane, population.scale)?;
    figures.add("resident when ready", "MB", "", &[server.memory().resident]);
    idle(figures, &server);
    bursts::node(figures, &server, population)?;
    let mut sender = Sender::new(server.address, 16, &population.reviews)?;
    reviews(figures, &server, &mut sender, population)?;
    changes(figures, &server, population).await?;
    growth::of_cpu(figures, &server, population)?;
    burst(figures, &server, population).await?;
    bursts::relist(figures, &server, plane, population).await?;
    figures.add("resident at most", "MB", "", &[server.memory().peak]);
    Ok(())
}

/// From the start of the process until it says that it is ready.
fn start(figures: &mut Figures, plane: &ControlPlane, scale: Scale) -> Result<Server, Failed> {
    let mut times = Vec::new();
    for _ in 0..STARTS - 1 {
        drop(ready(plane, &mut times)?);
    }
    let server = ready(plane, &mut times)?;
    figures.add("start to ready", "ms", scale.goals().ready, &times);
    Ok(server)
}

fn ready(plane: &ControlPlane, times: &mut Vec<f64>) -> Result<Server, Failed> {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--tls-self-signed", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.env("KUBECONFIG", plane.kubeconfig());
    let started = Instant::now();
    let server = Server::start(command);
    let admin_address = server.address_of("admin");
    while admin::body(admin_address, "/readyz").is_none() {
        if started.elapsed() > LIMIT {
            return Err("it does not get ready".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    times.push(started.elapsed().as_secs_f64() * 1e3);
    Ok(server)
}

/// CPU while nothing happens. The API server's own bookmarks come all the same.
fn idle(figures: &mut Figures, server: &Server) {
    let before = server.cpu();
    thread::sleep(IDLE);
    let used = server.cpu_since(before).as_secs_f64() / IDLE.as_secs_f64();
    figures.add("CPU while idle", "% of a core", "≤ 0.2", &[used * 100.0]);
}

/// Reviews whose owners have to be asked for: first all of them once, then again and again.
fn reviews(
    figures: &mut Figures,
    server: &Server,
    sender: &mut Sender,
    population: &Population,
) -> Result<(), Failed> {
    let answer = sender.ask()?;
    let patch = patch(&answer)?;
    assert!(patch.contains("k8s."), "the review is injected: {patch}");
    let first = sender.closed_of(population.reviews.len() - bursts::pods(population))?;
    figures.add("first reviews, with a look-up each: p50", "µs", "", &[first.latency(500)]);
    figures.add("first reviews, with a look-up each: p99", "µs", "", &[first.latency(990)]);
    let before = server.cpu();
    sender.closed_of(MEMORY_REVIEWS / 2)?;
    let half = server.memory().resident;
    let done = sender.closed_of(MEMORY_REVIEWS / 2)?;
    let whole = server.memory().resident;
    let cpu = server.cpu_since(before).as_secs_f64() * 1e6 / (2.0 * f64::from(done.answers));
    figures.add("CPU of a review, look-ups included", "µs", "", &[cpu]);
    figures.add("resident after 100,000 reviews", "MB", population.scale.goals().resident, &[whole]);
    figures.add("growth over the second half of them", "MB", "flat", &[whole - half]);
    Ok(())
}

/// From the sending of a change until a review uses it.
async fn changes(figures: &mut Figures, server: &Server, population: &Population) -> Result<(), Failed> {
    let mut sender = Sender::new(server.address, 1, std::slice::from_ref(&population.reviews[0]))?;
    let mut times = Vec::with_capacity(CHANGES);
    for number in 0..CHANGES {
        let marker = format!("change-{number}");
        let started = Instant::now();
        population.mark(0, &marker).await?;
        wait_for(&mut sender, &marker)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    figures.add("Instrumentation applied until used, p50", "ms", "", &[times[CHANGES / 2]]);
    let goal = population.scale.goals().used;
    figures.add("Instrumentation applied until used, p99", "ms", goal, &[times[CHANGES * 99 / 100]]);
    Ok(())
}

/// Updates of all Instrumentations in turn, as fast as they go.
async fn burst(figures: &mut Figures, server: &Server, population: &Population) -> Result<(), Failed> {
    let before = server.cpu();
    let started = Instant::now();
    population.burst(BURST).await?;
    population.mark(0, "after the burst").await?;
    // After the burst, which takes longer than the server waits for a first request.
    let mut sender = Sender::new(server.address, 1, std::slice::from_ref(&population.reviews[0]))?;
    wait_for(&mut sender, "after the burst")?;
    let count = f64::from(u32::try_from(BURST).expect("thousands"));
    let cpu = server.cpu_since(before).as_secs_f64() * 1e6;
    figures.add("burst of 5,000 updates: taken in", "/s", "", &[count / started.elapsed().as_secs_f64()]);
    figures.add("burst of 5,000 updates: CPU of an update", "µs", "", &[cpu / count]);
    Ok(())
}

/// Asks again and again until a pod gets the marker.
pub fn wait_for(sender: &mut Sender, marker: &str) -> Result<(), Failed> {
    let started = Instant::now();
    while !patch(&sender.ask()?)?.contains(&format!("\"{marker}\"")) {
        if started.elapsed() > LIMIT {
            return Err(format!("{marker} is not used").into());
        }
    }
    Ok(())
}

/// The patch of an answer, as text; empty where there is none.
pub fn patch(answer: &[u8]) -> Result<String, Failed> {
    let answer: Value = serde_json::from_slice(answer)?;
    let patch = answer["response"]["patch"].as_str().unwrap_or_default();
    Ok(String::from_utf8(BASE64_STANDARD.decode(patch)?)?)
}
