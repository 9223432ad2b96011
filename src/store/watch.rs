//! A Kubernetes watch as the source: Instrumentations, LimitRanges and
//! ResourceQuotas in full, namespaces and ServiceAccounts by their metadata.
//!
//! Objects are watched untyped and read one by one, since a typed watch fails
//! as a whole on the first object that does not parse.

mod changes;
mod lists;
mod pace;
mod watched;

use futures::StreamExt;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Writer;
use changes::changes;
use lists::Lists;
use otel_webhook_inject::limits::LimitKind;
use pace::{News, Pace};

/// How many events are taken in before they are shown: a burst is published
/// once, a single event at once. Until then they are in memory as they came.
const BATCH: usize = 64;

/// What the watches need of the cluster, as rules of a role.
pub fn rules() -> [Value; 3] {
    let limits = LimitKind::ALL.map(LimitKind::resource);
    [
        json!({"apiGroups": ["opentelemetry.io"], "resources": ["instrumentations"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": limits, "verbs": ["list", "watch"]}),
    ]
}

/// Watches and publishes, for ever. `on_ready` is called once everything was
/// listed: a pod that is injected before the bounds of its namespace are known
/// might be rejected. Bounds that may not be listed are not waited for.
pub async fn follow(client: Client, mut writer: Writer, on_ready: impl FnOnce()) {
    let mut changes = changes(&client).ready_chunks(BATCH);
    let (mut lists, mut pace) = (Lists::default(), Pace::default());
    let mut on_ready = Some(on_ready);
    loop {
        let batch = match pace.until() {
            None => changes.next().await,
            Some(until) => match tokio::time::timeout_at(until, changes.next()).await {
                Ok(batch) => batch,
                Err(_) => Some(Vec::new()),
            },
        };
        let Some(batch) = batch else { return };
        let news = batch.into_iter().map(|change| lists.take(&mut writer, change)).max();
        if pace.is_due(news.unwrap_or(News::Nothing), Instant::now()) {
            writer.publish();
        }
        if lists.are_complete()
            && let Some(on_ready) = on_ready.take()
        {
            on_ready();
        }
    }
}
