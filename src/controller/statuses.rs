//! Writes the status of Instrumentations: only what has changed, and each at most once in ten seconds.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use tokio::time::Instant;

use super::{
    heads::Instrumentations,
    status::{self, MANAGER, Told},
};
use otel_webhook_api::Instrumentation;
use otel_webhook_fleet::{
    report::{InstrumentationRow, Report},
    restart::Progress,
};
use otel_webhook_inject::catalogue::{Catalogue, Stored};

/// The minimum interval of writes to one Instrumentation.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many are written at the same time.
const AT_ONCE: usize = 8;

/// After how long a CRD that drops the status is tried again: it may have been replaced.
const AGAIN: Duration = Duration::from_secs(600);

/// The statuses to write.
pub struct Statuses {
    client: Client,
    /// The rows of the last report, and whether the specification can be used.
    wanted: HashMap<String, Wanted>,
    written: HashMap<String, Instant>,
    /// Until when nothing is written, since the CRD drops it.
    pruned_until: Option<Instant>,
}

struct Wanted {
    namespace: String,
    name: String,
    /// As text: a document needs ten times the memory.
    status: Box<RawValue>,
}

impl Statuses {
    /// Returns statuses that are written with this client.
    pub fn new(client: Client) -> Self {
        Self { client, wanted: HashMap::new(), written: HashMap::new(), pruned_until: None }
    }

    /// Notes what differs from the report.
    /// `restarts` says how far those of each Instrumentation are, by its UID.
    pub fn take(
        &mut self,
        report: &Report,
        heads: &Instrumentations,
        catalogue: &Catalogue,
        restarts: &HashMap<String, Progress>,
    ) {
        let rows = report.instrumentations.iter().map(|row| (format!("{}/{}", row.namespace, row.name), row));
        let rows: HashMap<String, &InstrumentationRow> = rows.collect();
        let none = InstrumentationRow::default();
        let now = Timestamp::now();
        self.wanted.clear();
        self.written.retain(|name, _| heads.objects().contains_key(name));
        for (key, head) in heads.objects() {
            let Some((namespace, name)) = key.split_once('/') else { continue };
            let stored = catalogue.namespace(namespace).and_then(|known| known.instrumentations.get(name));
            if stored.is_some_and(|stored| is_another(stored, head.generation)) {
                continue;
            }
            let row = rows.get(key).copied().unwrap_or(&none);
            let told = Told { row, stored, restart: restarts.get(&head.uid) };
            if let Some(status) = status::of(told, head.generation, &head.status(), now) {
                let status = to_raw_value(&status).expect("a document is JSON");
                let wanted = Wanted { namespace: namespace.to_owned(), name: name.to_owned(), status };
                self.wanted.insert(key.clone(), wanted);
            }
        }
    }

    /// Writes what is due.
    pub async fn write(&mut self, heads: &mut Instrumentations) {
        let now = Instant::now();
        if self.pruned_until.is_some_and(|until| now < until) {
            return;
        }
        let is_due = |key: &&String| self.written.get(*key).is_none_or(|last| now >= *last + INTERVAL);
        let due: Vec<String> = self.wanted.keys().filter(is_due).cloned().collect();
        let due: Vec<_> = due.into_iter().filter_map(|key| Some((self.wanted.remove(&key)?, key))).collect();
        let client = self.client.clone();
        let write = |(wanted, key): (Wanted, String)| {
            let client = client.clone();
            async move { (patch(client, &wanted).await, wanted, key) }
        };
        let mut writes = stream::iter(due).map(write).buffer_unordered(AT_ONCE);
        while let Some((result, wanted, key)) = writes.next().await {
            self.written.insert(key.clone(), now);
            match result {
                Ok(stored) if stored["pods"].is_null() => {
                    if self.pruned_until.is_none() {
                        tracing::warn!(
                            "the CRD of Instrumentations drops the status, as the operator's does; metrics, Events and \
                             `otel-webhook status` go on; `otel-webhook crd | kubectl apply --server-side -f -` replaces it"
                        );
                    }
                    self.pruned_until = Some(now + AGAIN);
                    return;
                }
                Ok(stored) => heads.wrote(&key, &stored),
                // Deleted in the meantime.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    tracing::warn!(instrumentation = key, %error, "the status cannot be written; it is tried again");
                    self.wanted.insert(key, wanted);
                }
            }
        }
        if self.pruned_until.is_some_and(|until| now >= until) && !self.written.is_empty() {
            self.pruned_until = None;
        }
    }
}

/// Returns whether the store has another generation than the watch of statuses. Soon they have the same; what is written
/// before would be outdated at once, and the next write has to wait.
pub fn is_another(stored: &Stored, generation: i64) -> bool {
    matches!(stored, Stored::Ready(ready) if ready.generation.is_some_and(|known| known != generation))
}

/// Writes a status. Returns the one that is stored then.
async fn patch(client: Client, wanted: &Wanted) -> Result<Value, kube::Error> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client, &wanted.namespace, &ApiResource::erase::<Instrumentation>(&()));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(BTreeMap::from([("status", &wanted.status)]));
    let stored = api.patch_status(&wanted.name, &params, &patch).await?;
    Ok(stored.data.get("status").cloned().unwrap_or_default())
}
