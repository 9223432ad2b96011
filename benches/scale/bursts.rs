//! What comes all at once: the pods of a failed node, and every object again after a 410 of the API server.

use std::time::Instant;

use otel_webhook_testkit::{
    cluster::control_plane::ControlPlane,
    load::{figures::Figures, sender::Sender, server::Server},
};

use crate::{
    measure::{Failed, patch, wait_for},
    objects::Population,
};

/// Pods that a failed node leaves to be created elsewhere.
const PODS: usize = 500;

/// Changes that an API server works on at the same time, as it is by default.
const AT_ONCE: usize = 200;

/// How many reviews are those of the node's pods: the last ones.
pub fn pods(population: &Population) -> usize {
    PODS.min(population.reviews.len() / 2)
}

/// The last of the reviews, as many at once as an API server sends. The owners of none are known yet; the
/// product looks them up, 16 at a time and for 300 ms at most.
pub fn node(figures: &mut Figures, server: &Server, population: &Population) -> Result<(), Failed> {
    let count = pods(population);
    let reviews = &population.reviews[population.reviews.len() - count..];
    let mut sender = Sender::new(server.address, count.min(AT_ONCE), reviews)?;
    let mut answers = Vec::with_capacity(count);
    let done = sender.closed_of_seen(count, |answer| answers.push(answer.to_vec()))?;
    let mut not_learned = 0_u32;
    for answer in &answers {
        let patch = patch(answer)?;
        assert!(patch.contains("k8s."), "the review is injected: {patch}");
        not_learned += u32::from(patch.contains("timed out"));
    }
    let name = |what: &str| format!("{count} pods at once, with a look-up each: {what}");
    figures.add(name("all answered"), "ms", "", &[done.elapsed.as_secs_f64() * 1e3]);
    figures.add(name("p50"), "ms", "", &[done.latency(500) / 1e3]);
    figures.add(name("p99"), "ms", "", &[done.latency(990) / 1e3]);
    figures.add(name("owners not learned in time"), "", "", &[f64::from(not_learned)]);
    Ok(())
}

/// The API server is started again and knows no version before that, so each watch begins with a list.
pub async fn relist(
    figures: &mut Figures,
    server: &Server,
    plane: &mut ControlPlane,
    population: &Population,
) -> Result<(), Failed> {
    // The versions that the product knows are older than that of the last change.
    plane.apply(r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "last-change"}}"#);
    plane.stop("kube-apiserver");
    plane.start_again("kube-apiserver");
    let started = Instant::now();
    population.mark(0, "after the lists").await?;
    // After the change, which a busy API server may take longer for than a connection may be idle.
    let mut sender = Sender::new(server.address, 1, std::slice::from_ref(&population.reviews[0]))?;
    wait_for(&mut sender, "after the lists")?;
    let took = started.elapsed().as_secs_f64() * 1e3;
    let pages = pages(plane);
    assert!(pages > 0.0, "the product went on from the version that it knew");
    let name = |what: &str| format!("lists after a 410: {what}");
    figures.add(name("pages of Instrumentations"), "", "", &[pages]);
    figures.add(name("API server ready until a change is used"), "ms", "", &[took]);
    figures.add(name("resident"), "MB", "", &[server.memory().resident]);
    Ok(())
}

/// How many pages of Instrumentations the API server has answered since its start. Only the product lists them.
fn pages(plane: &ControlPlane) -> f64 {
    let metrics = plane.kubectl(&["get", "--raw", "/metrics"]).stdout;
    let counts = metrics.lines().filter_map(|line| {
        let (labels, count) = line.strip_prefix("apiserver_request_total{")?.split_once("} ")?;
        let has = |label: &str| labels.contains(label);
        let is_list = has("verb=\"LIST\"") && has("resource=\"instrumentations\"");
        is_list.then(|| count.parse::<f64>().expect("a number"))
    });
    counts.sum()
}
