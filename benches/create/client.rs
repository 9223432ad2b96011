//! Clients of the API server that send text and read none, so that they cost as little as can be.

use std::time::{Duration, Instant};

use axum::http::Request;
use kube::Client;
use otel_webhook_testkit::cluster::{client::client, control_plane::ControlPlane};

/// A client with its own connection.
pub struct Creator(Client);

impl Creator {
    /// Connects with the first request.
    pub async fn new(plane: &ControlPlane) -> Self {
        Self(client(plane.kubeconfig()).await)
    }

    /// Creates a pod. Gives what the API server answers, and how long that took.
    pub async fn create(&self, namespace: &str, pod: &[u8], dry_run: bool) -> (String, Duration) {
        self.try_create(namespace, pod, dry_run).await.expect("the pod is created")
    }

    /// The same, where it may fail.
    pub async fn try_create(
        &self,
        namespace: &str,
        pod: &[u8],
        dry_run: bool,
    ) -> kube::Result<(String, Duration)> {
        let query = if dry_run { "?dryRun=All" } else { "" };
        let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods{query}"))
            .header("content-type", "application/json")
            .body(pod.to_vec())
            .expect("a request");
        let started = Instant::now();
        let answer = self.0.request_text(request).await?;
        Ok((answer, started.elapsed()))
    }

    /// Deletes all pods of a namespace. Without a node they are gone at once.
    pub async fn delete_all(&self, namespace: &str) {
        let uri = format!("/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0");
        let request = Request::delete(uri).body(Vec::new()).expect("a request");
        self.0.request_text(request).await.expect("pods can be deleted");
    }

    /// How often the API server called a webhook.
    pub async fn reviews(&self, webhook: &str) -> f64 {
        let request = Request::get("/metrics").body(Vec::new()).expect("a request");
        let metrics = self.0.request_text(request).await.expect("the API server's metrics");
        let name = format!("name=\"{webhook}\"");
        let counts = metrics.lines().filter_map(|line| {
            let labels = line.strip_prefix("apiserver_admission_webhook_request_total{")?;
            let (labels, count) = labels.split_once("} ")?;
            labels.contains(&name).then(|| count.parse::<f64>().expect("a number"))
        });
        counts.sum()
    }
}
