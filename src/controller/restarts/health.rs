//! The health of workloads that are restarted: since when nothing has changed, and which pods cannot start.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use tokio::time::Instant;

use otel_webhook_fleet::{
    restart::{FailingPod, Health, Rollout, RolloutProgress, failing},
    workload::Workload,
};

/// How often the pods of a workload are read while its rollout is in progress.
const PERIOD: Duration = Duration::from_secs(5);

/// The number of pods on a page.
const PAGE: u32 = 100;

/// What is known of workloads that are restarted.
pub struct Healths {
    client: Client,
    watched: HashMap<Workload, Watched>,
}

struct Watched {
    progress: RolloutProgress,
    /// When it last changed.
    since: Timestamp,
    failing: Option<FailingPod>,
    /// When the pods are to be read.
    due: Instant,
}

impl Healths {
    /// Returns an empty one.
    pub fn new(client: Client) -> Self {
        Self { client, watched: HashMap::new() }
    }

    /// Returns the health of a workload.
    pub fn of(&self, workload: &Workload, rollout: &Rollout, now: Timestamp) -> Health {
        let watched = self.watched.get(workload);
        let failing = watched.and_then(|watched| watched.failing.clone());
        rollout.health(watched.map_or(now, |watched| watched.since), failing)
    }

    /// Looks after these workloads and no others. Reads the pods of those that are not healthy.
    pub async fn follow(&mut self, restarted: &[(&Workload, &Rollout)], now: Timestamp) {
        let known: HashSet<_> = restarted.iter().map(|(workload, _)| *workload).collect();
        self.watched.retain(|workload, _| known.contains(workload));
        for (workload, rollout) in restarted {
            let progress = rollout.progress;
            let first = || Watched { progress, since: now, failing: None, due: Instant::now() };
            let watched = self.watched.entry((*workload).clone()).or_insert_with(first);
            if watched.progress != progress {
                (watched.progress, watched.since) = (progress, now);
            }
            if rollout.is_healthy() {
                watched.failing = None;
            } else if Instant::now() >= watched.due {
                watched.due = Instant::now() + PERIOD;
                match read(&self.client, workload, rollout).await {
                    Ok(found) => watched.failing = found,
                    Err(error) => {
                        tracing::warn!(workload = workload.to_string(), %error, "the pods cannot be listed");
                    }
                }
            }
        }
    }
}

async fn read(
    client: &Client,
    workload: &Workload,
    rollout: &Rollout,
) -> Result<Option<FailingPod>, kube::Error> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::namespaced_with(client.clone(), &workload.namespace, &kind);
    let mut page = ListParams::default().labels(&rollout.selector).limit(PAGE);
    let mut found = None;
    loop {
        let list = pods.list(&page).await?;
        let items: Vec<_> = list.items.into_iter().filter_map(|pod| serde_json::to_value(pod).ok()).collect();
        let youngest = failing(workload, items.iter()).into_iter().chain(found);
        found = youngest.max_by_key(|pod| pod.created);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
