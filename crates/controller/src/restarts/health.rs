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
    restart::{Health, Rollout, RolloutProgress, Unwell},
    workload::Workload,
};

/// How often the pods of a workload are read while its rollout is in progress.
const PERIOD: Duration = Duration::from_secs(5);

/// Likewise while it waits for a restart.
const SLOW_PERIOD: Duration = Duration::from_secs(60);

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
    unwell: Unwell,
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
        let unwell = watched.map(|watched| watched.unwell.clone()).unwrap_or_default();
        rollout.health(watched.map_or(now, |watched| watched.since), unwell)
    }

    /// Looks after these workloads and no others: those that are restarted, and those that wait for that. Reads the pods
    /// of those that are not healthy.
    pub async fn follow(
        &mut self,
        restarted: &[(&Workload, &Rollout)],
        waiting: &[(&Workload, &Rollout)],
        now: Timestamp,
    ) {
        let periods = restarted.iter().map(|one| (one, PERIOD));
        let followed: Vec<_> = periods.chain(waiting.iter().map(|one| (one, SLOW_PERIOD))).collect();
        let known: HashSet<_> = followed.iter().map(|((workload, _), _)| *workload).collect();
        self.watched.retain(|workload, _| known.contains(workload));
        for ((workload, rollout), period) in followed {
            let progress = rollout.progress;
            let first = || Watched { progress, since: now, unwell: Unwell::default(), due: Instant::now() };
            let watched = self.watched.entry((*workload).clone()).or_insert_with(first);
            if watched.progress != progress {
                (watched.progress, watched.since) = (progress, now);
            }
            if rollout.is_healthy() {
                watched.unwell = Unwell::default();
            } else if Instant::now() >= watched.due {
                watched.due = Instant::now() + period;
                match read(&self.client, workload, rollout, now).await {
                    Ok(found) => watched.unwell = found,
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
    now: Timestamp,
) -> Result<Unwell, kube::Error> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::namespaced_with(client.clone(), &workload.namespace, &kind);
    let mut page = ListParams::default().labels(&rollout.selector).limit(PAGE);
    let mut found = Unwell::default();
    loop {
        let list = pods.list(&page).await?;
        let items: Vec<_> = list.items.into_iter().filter_map(|pod| serde_json::to_value(pod).ok()).collect();
        found.add(workload, items.iter(), now);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
