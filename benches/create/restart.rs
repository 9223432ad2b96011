//! The first pod after a restart of the product or of the API server.

use std::time::Duration;

use otel_webhook_testkit::load::figures::Figures;

use crate::{
    client::Creator,
    cluster::{Cluster, is_injected, pod},
    ways::{HOOK, NONE, OURS, Pods},
};

/// Restarts of each.
const RESTARTS: usize = 5;

/// The ways of the first pods after a restart of the API server, in their order.
const FIRST: [&str; 3] = [NONE, HOOK, OURS];

/// Both restarts.
pub async fn all(figures: &mut Figures, cluster: &mut Cluster) {
    let mut after_ours = Vec::new();
    for _ in 0..RESTARTS {
        let client = Creator::new(&cluster.plane).await;
        // The client's connection is open, and that of the API server to the product.
        created(&client, NONE).await;
        created(&client, OURS).await;
        cluster.restart_ours();
        after_ours.push(milliseconds(created(&client, OURS).await));
    }
    figures.add("first pod after a restart of ours", "ms", "", &after_ours);
    let mut firsts: [Vec<f64>; 3] = Default::default();
    for _ in 0..RESTARTS {
        cluster.plane.stop("kube-apiserver");
        cluster.plane.start_again("kube-apiserver");
        let client = Creator::new(&cluster.plane).await;
        wait_until_usable(&client).await;
        for (times, way) in firsts.iter_mut().zip(FIRST) {
            times.push(milliseconds(created(&client, way).await));
        }
    }
    for (times, way) in firsts.iter().zip(FIRST) {
        figures.add(format!("first pod after a restart of the API server, {way}"), "ms", "", times);
    }
}

/// Waits until the API server takes pods: it is ready a little earlier. No webhook is called.
async fn wait_until_usable(client: &Creator) {
    while client.try_create(&namespace(NONE), &pod(Pods::OptIn), true).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How long the creation of a pod takes, which has to be injected by the product.
async fn created(client: &Creator, way: &str) -> Duration {
    let (answer, took) = client.create(&namespace(way), &pod(Pods::OptIn), true).await;
    assert_eq!(is_injected(&answer), way == OURS, "{way}: {answer}");
    took
}

fn namespace(way: &str) -> String {
    format!("{way}-00")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
