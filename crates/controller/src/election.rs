//! Which replica leads, by a Lease.
//!
//! As in client-go, no clock of another node counts: a Lease is over when this process has seen it unchanged for as long
//! as it is valid. A leader that could not renew it stops before that. Where a new connection is answered and the last one
//! was not, all connections of the process are replaced.

use std::{convert::Infallible, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::{utils::Backoff, watcher::DefaultBackoff},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

use super::status::MANAGER;
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_store::api_client::Connections;

/// How long a Lease is valid after it was renewed.
const VALIDITY: Duration = Duration::from_secs(15);

/// How long a leader goes on without having renewed it.
const DEADLINE: Duration = Duration::from_secs(10);

/// How often it is renewed, or read by the replicas that do not lead.
const PERIOD: Duration = Duration::from_secs(2);

/// How long a request may take. A second one on a new connection fits before the deadline.
const ANSWER: Duration = Duration::from_secs(4);

/// How often a write is tried again at once after another client changed the Lease, for example its annotations.
const ATTEMPTS: usize = 3;

/// The election as one replica sees it.
pub struct Election {
    /// The connections of the process.
    connections: Connections,
    /// Those for the Lease alone.
    own: Connections,
    api: Api<Lease>,
    place: ObjectName,
    identity: String,
    seen: Option<KnownLease>,
    backoff: DefaultBackoff,
    /// When the last request began that was answered.
    answered: Instant,
    /// Whether the last request was not answered in time.
    is_unanswered: bool,
    /// Why the last request failed.
    problem: Option<String>,
}

/// The Lease as it was last read or written.
struct KnownLease {
    version: Option<String>,
    spec: LeaseSpec,
    /// When it was first seen like this.
    since: Instant,
}

impl KnownLease {
    fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// Returns when another replica may take it.
    fn ends(&self) -> Instant {
        let seconds = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        self.since + seconds.map_or(VALIDITY, Duration::from_secs)
    }
}

impl Election {
    /// Returns the election by this Lease, which is made if it does not exist. `connections` are replaced when they are
    /// not answered any longer.
    ///
    /// # Errors
    /// If no client can be made.
    pub fn new(connections: &Connections, place: ObjectName, identity: String) -> kube::Result<Self> {
        let own = connections.another()?;
        Ok(Self {
            api: Api::namespaced(own.client(), &place.namespace),
            own,
            connections: connections.clone(),
            place,
            identity,
            seen: None,
            backoff: DefaultBackoff::default(),
            answered: Instant::now(),
            is_unanswered: false,
            problem: None,
        })
    }

    /// Takes and renews the Lease, and says in `holds` whether this replica has it. Calls `beat` before each request.
    pub async fn run(&mut self, holds: &watch::Sender<bool>, beat: impl Fn()) -> Infallible {
        self.answered = Instant::now();
        loop {
            beat();
            let next = self.step(holds).await;
            sleep_until(next).await;
        }
    }

    /// Makes one attempt. Returns when the next one is due.
    async fn step(&mut self, holds: &watch::Sender<bool>) -> Instant {
        let begun = Instant::now();
        let until = if *holds.borrow() { self.answered + DEADLINE } else { begun + ANSWER };
        let problem = match timeout_at(until.min(begun + ANSWER), self.attempt()).await {
            Ok(Ok(is_held)) => {
                self.answered = begun;
                self.backoff.reset();
                self.problem = None;
                // A server that is slow is no reason to begin its answers again.
                if std::mem::take(&mut self.is_unanswered) && begun.elapsed() < PERIOD {
                    tracing::warn!("the API server answers on new connections; the last ones are closed");
                    self.connections.replace();
                }
                holds.send_if_modified(|held| std::mem::replace(held, is_held) != is_held);
                let over = self.seen.as_ref().filter(|_| !is_held).map(KnownLease::ends);
                let next = begun + PERIOD;
                return over.filter(|over| *over > Instant::now()).map_or(next, |over| over.min(next));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                self.is_unanswered = true;
                self.own.replace();
                "the API server did not answer in time".to_owned()
            }
        };
        if self.problem.as_ref() != Some(&problem) {
            let lease = self.place.to_string();
            tracing::warn!(lease, %problem, "the Lease cannot be renewed or read; it is tried again");
            self.problem = Some(problem);
        }
        let now = Instant::now();
        if now >= self.answered + DEADLINE {
            holds.send_if_modified(std::mem::take);
        }
        let next = now + self.backoff.next().unwrap_or(PERIOD).min(PERIOD);
        if *holds.borrow() { next.min(self.answered + DEADLINE) } else { next }
    }

    /// Takes or renews the Lease, unless another replica has it. Returns whether this one has it.
    async fn attempt(&mut self) -> kube::Result<bool> {
        for attempt in 1.. {
            // What this replica wrote is renewed without reading it.
            if !self.is_held() {
                match self.api.get_opt(&self.place.name).await? {
                    Some(lease) => self.see(lease),
                    None => self.seen = None,
                }
            }
            if self.seen.as_ref().is_some_and(|seen| self.is_of_another(seen)) {
                return Ok(false);
            }
            let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let written = match &self.seen {
                None => {
                    let params = PostParams { field_manager: params.field_manager, ..PostParams::default() };
                    let metadata =
                        ObjectMeta { name: Some(self.place.name.to_string()), ..ObjectMeta::default() };
                    self.api.create(&params, &Lease { metadata, spec: Some(self.wanted()) }).await
                }
                Some(seen) => {
                    let patch = json!({"metadata": {"resourceVersion": seen.version}, "spec": self.wanted()});
                    self.api.patch(&self.place.name, &params, &Patch::Merge(patch)).await
                }
            };
            match written {
                Ok(lease) => {
                    self.see(lease);
                    return Ok(self.is_held());
                }
                Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) && attempt < ATTEMPTS => {
                    // It is read again.
                    self.seen = None;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn see(&mut self, Lease { metadata, spec }: Lease) {
        let (version, spec) = (metadata.resource_version, spec.unwrap_or_default());
        match &mut self.seen {
            Some(seen) if seen.spec == spec => seen.version = version,
            _ => self.seen = Some(KnownLease { version, spec, since: Instant::now() }),
        }
    }

    fn is_held(&self) -> bool {
        self.seen.as_ref().and_then(KnownLease::holder) == Some(&self.identity)
    }

    fn is_of_another(&self, seen: &KnownLease) -> bool {
        seen.holder().is_some_and(|holder| holder != self.identity) && Instant::now() < seen.ends()
    }

    /// Returns the Lease as this replica holds it.
    fn wanted(&self) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let before = self.seen.as_ref().map(|seen| seen.spec.clone()).unwrap_or_default();
        let is_held = self.is_held();
        LeaseSpec {
            acquire_time: if is_held { before.acquire_time } else { now.clone() },
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(VALIDITY.as_secs()).ok(),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0).saturating_add((!is_held).into())),
            renew_time: now,
            ..LeaseSpec::default()
        }
    }

    /// Gives the Lease up, so that another replica need not wait for its end.
    pub async fn release(&mut self) {
        let Some(seen) = self.seen.take().filter(|seen| seen.holder() == Some(&self.identity)) else {
            return;
        };
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = json!({"metadata": {"resourceVersion": seen.version}, "spec": {
            "acquireTime": null, "holderIdentity": null, "leaseDurationSeconds": null, "renewTime": null,
        }});
        let patch = Patch::Merge(patch);
        let released = self.api.patch(&self.place.name, &params, &patch);
        let problem = match timeout_at(Instant::now() + ANSWER, released).await {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(lease = self.place.to_string(), %problem, "the Lease cannot be given up");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Arc, Mutex,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
    };

    use hyper::{Method, Request, Response};
    use kube::{Client, client::Body};
    use serde_json::Value;

    use super::*;

    /// An API server with one Lease.
    #[derive(Clone, Default)]
    struct Server {
        lease: Arc<Mutex<Value>>,
        is_silent: Arc<AtomicBool>,
        opened: Arc<AtomicUsize>,
    }

    impl Server {
        fn holding(spec: &Value) -> Self {
            let server = Self::default();
            server.write(|lease| {
                *lease = json!({"metadata": {"name": "leader", "resourceVersion": "0"}, "spec": spec});
            });
            server
        }

        fn write(&self, change: impl FnOnce(&mut Value)) {
            let mut lease = self.lease.lock().expect("not poisoned");
            change(&mut lease);
            let version: u64 =
                lease["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("one");
            lease["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        }

        fn spec(&self) -> Value {
            self.lease.lock().expect("not poisoned")["spec"].clone()
        }

        async fn answer(self, request: Request<Body>) -> Result<Response<Body>, io::Error> {
            if self.is_silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let method = request.method().clone();
            let body = request.into_body().collect_bytes().await.expect("a body");
            let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
            let known = self.lease.lock().expect("not poisoned").clone();
            let status = |code: u16| {
                let reason = if code == 404 { "NotFound" } else { "Conflict" };
                (
                    code,
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"}),
                )
            };
            let (code, answer) = match method {
                Method::GET if known.is_null() => status(404),
                Method::GET => (200, known),
                Method::POST => {
                    let mut created = sent;
                    created["metadata"]["resourceVersion"] = "0".into();
                    self.write(|lease| *lease = created);
                    (201, self.lease.lock().expect("not poisoned").clone())
                }
                _ if sent["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"] => {
                    status(409)
                }
                _ => {
                    self.write(|lease| {
                        for (field, value) in sent["spec"].as_object().expect("a specification") {
                            lease["spec"][field] = value.clone();
                        }
                    });
                    (200, self.lease.lock().expect("not poisoned").clone())
                }
            };
            let body = Body::from(answer.to_string().into_bytes());
            Ok(Response::builder().status(code).body(body).expect("a response"))
        }

        fn election(&self, identity: &str) -> Election {
            let server = self.clone();
            let open = move || {
                server.opened.fetch_add(1, Ordering::Relaxed);
                let server = server.clone();
                Ok(Client::new(tower::service_fn(move |request| server.clone().answer(request)), "home"))
            };
            let connections = Connections::opened_by(open).expect("a client");
            let place = ObjectName { namespace: "home".into(), name: "leader".into() };
            Election::new(&connections, place, identity.to_owned()).expect("a client")
        }
    }

    fn earlier(by: Duration) -> Instant {
        Instant::now().checked_sub(by).expect("the machine runs for longer")
    }

    #[tokio::test]
    async fn a_lease_is_over_when_it_was_seen_unchanged_whatever_its_times_are() {
        for renewed in ["2020-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
            let server = Server::holding(&json!({"holderIdentity": "other", "leaseDurationSeconds": 15,
                "leaseTransitions": 3, "acquireTime": renewed, "renewTime": renewed}));
            let mut election = server.election("own");
            assert!(!election.attempt().await.expect("an answer"), "{renewed}: it was seen just now");
            election.seen.as_mut().expect("it was read").since = earlier(Duration::from_secs(14));
            assert!(!election.attempt().await.expect("an answer"), "{renewed}: it is valid for a second");
            // Its holder renews it.
            server.write(|lease| lease["spec"]["renewTime"] = "2026-11-24T12:00:00.000000Z".into());
            assert!(!election.attempt().await.expect("an answer"), "{renewed}: it was renewed");
            assert!(election.seen.as_ref().expect("it was read").since > earlier(Duration::from_secs(14)));
            election.seen.as_mut().expect("it was read").since = earlier(VALIDITY);
            assert!(election.attempt().await.expect("an answer"), "{renewed}: it is over");
            let spec = server.spec();
            assert_eq!([&spec["holderIdentity"], &spec["leaseTransitions"]], [&json!("own"), &json!(4)]);
        }
    }

    #[tokio::test]
    async fn one_of_two_makes_the_lease_and_the_other_follows_its_end() {
        let server = Server::default();
        let mut both = [server.election("one"), server.election("two")];
        assert!(both[0].attempt().await.expect("an answer"));
        assert!(!both[1].attempt().await.expect("an answer"));
        // An annotation is another version.
        server.write(|lease| lease["metadata"]["annotations"] = json!({"otel-webhook/paused": "true"}));
        assert!(both[0].attempt().await.expect("an answer"), "it is read again");
        assert!(!both[1].attempt().await.expect("an answer"));
        both[0].release().await;
        assert!(server.spec()["holderIdentity"].is_null());
        assert!(both[1].attempt().await.expect("an answer"), "without waiting");
        assert!(!both[0].attempt().await.expect("an answer"));
    }

    #[tokio::test]
    async fn a_leader_that_is_not_answered_stops_and_opens_new_connections() {
        let server = Server::default();
        let mut election = server.election("own");
        let (holds, held) = watch::channel(false);
        election.step(&holds).await;
        assert!(*held.borrow());
        let opened = || server.opened.load(Ordering::Relaxed);
        let before = opened();
        server.is_silent.store(true, Ordering::Relaxed);
        election.answered = earlier(DEADLINE);
        election.step(&holds).await;
        assert!(!*held.borrow());
        assert_eq!(opened(), before + 1, "for the Lease");
        let before = opened();
        server.is_silent.store(false, Ordering::Relaxed);
        server.write(|lease| lease["spec"]["holderIdentity"] = "other".into());
        election.step(&holds).await;
        assert!(!*held.borrow(), "another one leads");
        assert_eq!(opened(), before + 1, "for all else, since the new one is answered");
        election.step(&holds).await;
        assert_eq!(opened(), before + 1, "once");
    }
}
