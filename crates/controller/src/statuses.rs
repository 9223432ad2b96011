//! Writes the status of Instrumentations: only what has changed, and each at most once in ten seconds.

use std::{collections::HashMap, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::time::Instant;

use super::status::{self, Input, MANAGER, Named, Restart};
use otel_webhook_api::Version;
use otel_webhook_fleet::{
    mistakes::MistakeRow,
    report::{InstrumentationRow, Report},
    restart::Progress,
};
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_store::{Snapshot, api_client::RequestBackoff, served};

/// The minimum interval of writes to one Instrumentation.
const INTERVAL: Duration = Duration::from_secs(10);

/// How many are written at the same time.
const AT_ONCE: usize = 8;

/// After how long a CRD that drops the status is tried again: it may have been replaced.
const AGAIN: Duration = Duration::from_secs(30);

/// A status to write.
struct Wanted {
    /// The version of the object with the conditions that others have written.
    version: String,
    status: Box<RawValue>,
}

/// The statuses to write.
pub struct Statuses {
    client: Client,
    /// Whether mistakes are reported.
    with_mistakes: bool,
    /// Whether workloads of other namespaces are named.
    names_all: bool,
    /// What differs from the last report, as text: a document needs ten times the memory.
    wanted: HashMap<ObjectName, Wanted>,
    /// The version in which the objects were read.
    version: Version,
    written: HashMap<ObjectName, Instant>,
    backoff: RequestBackoff,
    /// Until when nothing is written, since the CRD drops it.
    pruned_until: Option<Instant>,
}

impl Statuses {
    /// Returns statuses that are written with this client.
    pub fn new(client: Client, with_mistakes: bool, names_all: bool) -> Self {
        Self {
            client,
            with_mistakes,
            names_all,
            wanted: HashMap::new(),
            version: Version::default(),
            written: HashMap::new(),
            backoff: RequestBackoff::default(),
            pruned_until: None,
        }
    }

    /// Notes what differs from the report.
    /// `restarts` says how far those of each Instrumentation are, by its UID; none before they are planned.
    pub fn take(
        &mut self,
        report: &Report,
        snapshot: &Snapshot,
        restarts: Option<&HashMap<String, Progress>>,
    ) {
        let rows = report.instrumentations.iter().map(|row| {
            let name = ObjectName { namespace: (*row.namespace).into(), name: (*row.name).into() };
            (name, row)
        });
        let rows: HashMap<ObjectName, &InstrumentationRow> = rows.collect();
        let none = InstrumentationRow::default();
        let now = Timestamp::now();
        self.wanted.clear();
        self.version = snapshot.version;
        let mut mistakes: HashMap<&str, Vec<&MistakeRow>> = HashMap::new();
        for row in &report.mistakes {
            mistakes.entry(&row.object.namespace).or_default().push(row);
        }
        let heads = &snapshot.heads.instrumentations;
        self.written.retain(|name, _| heads.contains_key(name));
        for (name, head) in heads {
            let known = snapshot.catalogue.namespace(&name.namespace);
            let stored = known.and_then(|known| known.instrumentations.get(&name.name));
            let row = rows.get(name).copied().unwrap_or(&none);
            let restart = match restarts {
                None => Restart::Unplanned,
                Some(planned) => planned.get(&head.uid).map_or(Restart::None, Restart::Planned),
            };
            // Nothing is said of the selectors of others.
            let is_own =
                |one: &&MistakeRow| one.object.kind != "Instrumentation" || *one.object.name == *name.name;
            let of_namespace = mistakes.get(&*name.namespace).into_iter().flatten().copied();
            let mistakes: Vec<_> = of_namespace.filter(is_own).collect();
            let mistakes = self.with_mistakes.then_some(&*mistakes);
            let named = if self.names_all { Named::All } else { Named::Of(&name.namespace) };
            let input = Input { row, named, stored, restart, mistakes };
            if let Some(status) = status::of(input, head.generation, &head.status(), now) {
                let status = to_raw_value(&status).expect("a document is JSON");
                self.wanted.insert(name.clone(), Wanted { version: head.version.clone(), status });
            }
        }
    }

    /// Writes what is due.
    pub async fn write(&mut self) {
        let now = Instant::now();
        if !self.backoff.is_over() || self.pruned_until.is_some_and(|until| now < until) {
            return;
        }
        let is_due = |name: &&ObjectName| self.written.get(*name).is_none_or(|last| now >= *last + INTERVAL);
        // After a failure, one shows whether the others may follow.
        let most = if self.backoff.has_failed() || self.pruned_until.is_some() { 1 } else { usize::MAX };
        let due: Vec<ObjectName> = self.wanted.keys().filter(is_due).take(most).cloned().collect();
        for names in due.chunks(AT_ONCE) {
            // One of the last failed: the others are not tried.
            if !self.backoff.is_over() {
                return;
            }
            let wanted = names.iter().filter_map(|name| self.wanted.remove_entry(name));
            let writes = wanted.map(|(name, wanted)| {
                let (client, version) = (self.client.clone(), self.version);
                async move { (patch(client, version, &name, &wanted).await, name, wanted) }
            });
            let writes: Vec<_> = writes.collect();
            for (result, name, wanted) in join_all(writes).await {
                // It has changed, and maybe its conditions with it: the next count has the new version.
                if matches!(&result, Err(kube::Error::Api(status)) if status.code == 409) {
                    continue;
                }
                self.written.insert(name.clone(), now);
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
                    Ok(_) => self.backoff.succeed(),
                    // Deleted in the meantime.
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => {
                        tracing::warn!(instrumentation = name.to_string(), %error, "the status cannot be written; it is tried again");
                        self.backoff.fail(&error);
                        self.wanted.insert(name, wanted);
                    }
                }
            }
        }
        if self.pruned_until.is_some_and(|until| now >= until) && !self.written.is_empty() {
            self.pruned_until = None;
        }
    }
}

/// Writes a status, unless the object has changed. Returns the one that is stored then.
///
/// Not by server-side apply, which fails as a whole for a field that an older CRD, or the operator's, does not have.
async fn patch(
    client: Client,
    version: Version,
    name: &ObjectName,
    wanted: &Wanted,
) -> Result<Value, kube::Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(client, &name.namespace, &served::resource(version));
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let Wanted { version, status } = wanted;
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "status": status}));
    let stored = api.patch_status(&name.name, &params, &patch).await?;
    Ok(stored.data.get("status").cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use hyper::{Request, Response};
    use kube::client::Body;

    use super::*;
    use otel_webhook_store::{Heads, InstrumentationHead};

    /// A client of an API server with Instrumentations of version 2, and what was sent to it.
    fn server() -> (Client, Arc<Mutex<Vec<Value>>>) {
        let sent = Arc::<Mutex<Vec<Value>>>::default();
        let own = Arc::clone(&sent);
        let answer = move |request: Request<Body>| {
            let own = Arc::clone(&own);
            async move {
                let body = request.into_body().collect_bytes().await.expect("a body");
                let patch: Value = serde_json::from_slice(&body).expect("JSON");
                let (code, answer) = if patch["metadata"]["resourceVersion"] == "2" {
                    (200, json!({"metadata": {"name": "default"}, "status": patch["status"]}))
                } else {
                    (
                        409,
                        json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "no"}),
                    )
                };
                own.lock().expect("not poisoned").push(patch);
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::io::Error>(Response::builder().status(code).body(body).expect("a response"))
            }
        };
        (Client::new(tower::service_fn(answer), "default"), sent)
    }

    fn snapshot(version: &str, conditions: &Value) -> Snapshot {
        let head = InstrumentationHead::of(&json!({
            "metadata": {"namespace": "shop", "name": "default", "uid": "i", "resourceVersion": version},
            "status": {"conditions": conditions},
        }));
        let name = ObjectName { namespace: "shop".into(), name: "default".into() };
        let heads = Heads { instrumentations: [(name, Arc::new(head))].into(), ..Heads::default() };
        Snapshot { heads: Arc::new(heads), ..Snapshot::default() }
    }

    #[tokio::test]
    async fn conditions_that_others_write_meanwhile_are_not_lost() {
        let (client, sent) = server();
        let mut statuses = Statuses::new(client, false, false);
        let none = HashMap::new();
        statuses.take(&Report::default(), &snapshot("1", &json!([])), Some(&none));
        statuses.write().await;
        assert!(statuses.backoff.is_over() && !statuses.backoff.has_failed(), "a conflict is no failure");
        let theirs = json!({"type": "Theirs", "status": "True"});
        statuses.take(&Report::default(), &snapshot("2", &json!([theirs])), Some(&none));
        statuses.write().await;
        let sent = sent.lock().expect("not poisoned");
        let [first, second] = &sent[..] else { panic!("each version is written once: {sent:?}") };
        assert_eq!(first["metadata"]["resourceVersion"], "1");
        let conditions = second["status"]["conditions"].as_array().expect("conditions");
        assert!(conditions.contains(&theirs) && conditions.len() == 3, "{conditions:?}");
    }
}
