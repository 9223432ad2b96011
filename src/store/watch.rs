//! Kubernetes watches as the source: Instrumentations, LimitRanges and ResourceQuotas completely, namespaces and
//! ServiceAccounts by their metadata.
//!
//! Objects are watched untyped and parsed one by one, since a typed watch fails as a whole on the first object that
//! cannot be parsed, and since a parsed object is many times as large as its text.

mod changes;
mod lists;
mod pace;
mod pages;
mod seen;
mod watched;

use futures::StreamExt;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Writer;
use crate::scope::Scope;
use changes::changes;
use lists::Lists;
use otel_webhook_inject::limits::LimitKind;
use pace::{News, Pace};

/// How many events are processed before a snapshot: a burst is published once, a single event immediately. Until
/// then, the text of the objects is in memory.
const BATCH: usize = 64;

/// Returns the rules of a role for the watches.
pub fn rules() -> [Value; 3] {
    let limits = LimitKind::ALL.map(LimitKind::resource);
    [
        json!({"apiGroups": ["opentelemetry.io"], "resources": ["instrumentations"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}),
        json!({"apiGroups": [""], "resources": limits, "verbs": ["list", "watch"]}),
    ]
}

/// Watches and publishes, forever, in the namespaces of the scope. Calls `on_ready` once everything is listed: a pod that is injected before its
/// LimitRanges and ResourceQuotas are known might be rejected. It does not wait for those that may not be listed.
/// See docs/adr/0010-limits-are-watched.md.
pub async fn follow(client: Client, scope: Scope, mut writer: Writer, on_ready: impl FnOnce()) {
    let mut changes = changes(&client, &scope).ready_chunks(BATCH);
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
