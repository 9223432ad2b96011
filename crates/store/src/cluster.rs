//! Lookups of the API server during a review: the owner of a ReplicaSet or a Job, and a namespace that the watch
//! has not received yet. Concurrent reviews share a lookup, results are cached in bounded memory, and a lookup is cancelled
//! when no review waits for it any longer.

mod memory;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared, join_all},
};
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, batch::v1::Job, core::v1::Namespace},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource,
    api::{GetParams, Request},
};
use memory::Memory;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::Instant};

use crate::api_client::RequestBackoff;
use otel_webhook_inject::{
    catalogue, object,
    workload::{self, Lookup, Owner, OwnerKind, OwnerQuery, Owners},
};

/// How long a review waits for all lookups together. A name of an owner is not worth delaying a pod for longer.
const PATIENCE: Duration = Duration::from_millis(300);

/// The timeout of a lookup. Each review waits less; it prevents later ones from joining a lookup that never ends.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// How long lookups of a kind wait at most for the next one after one failed. Reviews go on without them meanwhile.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// How many lookups request something at the same time. The metadata of an object may have 1.5 MiB, so that more
/// would need more memory than the chart allows; with a usual API server, these suffice for thousands each second.
const AT_ONCE: usize = 16;

/// Returns the rules of a role for lookups.
pub fn rules() -> [Value; 3] {
    [
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}),
        json!({"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]}),
        json!({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}),
    ]
}

/// Returns the deadline of the lookups of a review that begins now.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Lookups in the cluster.
pub struct ClusterLookup(Arc<Inner>);

struct Inner {
    client: Client,
    owners: Mutex<Memory<OwnerKey, Vec<Owner>>>,
    asking: Mutex<Asking>,
    places: Semaphore,
    /// When lookups of a kind may be made again.
    backoffs: Mutex<HashMap<Kind, RequestBackoff>>,
}

/// What is looked up; none for namespaces.
type Kind = Option<OwnerKind>;

/// The lookups in progress, each with its number. They end with the last review that waits for them.
#[derive(Default)]
struct Asking {
    lookups: HashMap<Question, (u64, WeakShared<BoxFuture<'static, Answer>>)>,
    last: u64,
}

/// A lookup that several reviews may share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    Owner(OwnerKey),
    Namespace(Box<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnerKey {
    kind: OwnerKind,
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
}

/// The result of a lookup.
#[derive(Clone, Debug)]
enum Answer {
    Owners(Option<Vec<Owner>>),
    Namespace(Option<Arc<catalogue::Namespace>>),
    /// The request failed; the message is for the log.
    Nothing(Arc<str>),
}

/// The used part of an owner.
#[derive(Deserialize)]
struct Found {
    metadata: FoundMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundMetadata {
    uid: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
}

type Asked = Shared<BoxFuture<'static, Answer>>;

/// The owners that were looked up for one review.
#[derive(Debug)]
pub struct Learned(HashMap<OwnerKey, Lookup>);

impl ClusterLookup {
    /// Returns lookups with this client.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Inner {
            client,
            owners: Mutex::default(),
            asking: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
            backoffs: Mutex::default(),
        }))
    }

    /// Looks up the owners of owners: in the cache, else concurrently at the API server, until the deadline.
    pub async fn owners(&self, queries: &[OwnerQuery<'_>], deadline: Instant) -> Learned {
        let lookups = queries.iter().map(|query| async {
            let key = OwnerKey::of(query);
            let lookup = self.owner(&key, deadline).await;
            (key, lookup)
        });
        Learned(join_all(lookups).await.into_iter().collect())
    }

    /// Looks up a namespace until the deadline.
    pub async fn namespace(&self, name: &str, deadline: Instant) -> Option<Arc<catalogue::Namespace>> {
        match self.ask(Question::Namespace(name.into()), deadline).await {
            Some(Answer::Namespace(found)) => found,
            _ => None,
        }
    }

    async fn owner(&self, key: &OwnerKey, deadline: Instant) -> Lookup {
        if let Some(owners) = locked(&self.0.owners).get(key) {
            return Lookup::Known(owners);
        }
        match self.ask(Question::Owner(key.clone()), deadline).await {
            Some(Answer::Owners(Some(owners))) => Lookup::Known(owners),
            Some(Answer::Owners(None)) => Lookup::Absent,
            _ => Lookup::Unknown,
        }
    }

    /// Starts or joins a lookup.
    fn joined(&self, question: &Question) -> Asked {
        let mut asking = locked(&self.0.asking);
        let known = asking.lookups.get(question).and_then(|(_, asked)| asked.upgrade());
        known.unwrap_or_else(|| {
            asking.last += 1;
            let leaving = Leaving {
                inner: Arc::clone(&self.0),
                question: question.clone(),
                number: asking.last,
                begun: None,
            };
            let asked = leaving.answered().boxed().shared();
            let number = asking.last;
            asking.lookups.extend(asked.downgrade().map(|weak| (question.clone(), (number, weak))));
            asked
        })
    }

    /// Starts or joins a lookup, and waits for it. Returns none if it fails or times out.
    async fn ask(&self, question: Question, deadline: Instant) -> Option<Answer> {
        let asked = self.joined(&question);
        match tokio::time::timeout_at(deadline, asked).await {
            Ok(Answer::Nothing(problem)) => {
                tracing::warn!(lookup = ?question, %problem, "a lookup at the API server failed");
                None
            }
            Ok(answer) => Some(answer),
            Err(_) => {
                tracing::warn!(lookup = ?question, timeout = ?PATIENCE, "a lookup at the API server timed out");
                None
            }
        }
    }
}

/// A lookup in progress. Removed when it has its result, and when no review waits for it any longer.
struct Leaving {
    inner: Arc<Inner>,
    question: Question,
    number: u64,
    /// When the request was made that is not answered yet.
    begun: Option<Instant>,
}

impl Leaving {
    async fn answered(mut self) -> Answer {
        let Self { inner, question, begun, .. } = &mut self;
        let answer = async {
            let place = inner.places.acquire().await;
            if place.is_err() || !inner.backoff(question, RequestBackoff::claim) {
                return Answer::Nothing("the last ones failed, so none is made now".into());
            }
            *begun = Some(Instant::now());
            let answered = inner.answer(question).await;
            *begun = None;
            inner.backoff(question, |backoff| match &answered {
                Err(error) => backoff.fail(error),
                Ok(_) => backoff.succeed(),
            });
            answered.unwrap_or_else(|error| Answer::Nothing(error.to_string().into()))
        };
        let answer = tokio::time::timeout(LONGEST_ANSWER, answer).await;
        let answer = answer.unwrap_or_else(|elapsed| Answer::Nothing(elapsed.to_string().into()));
        if let (Question::Owner(key), Answer::Owners(Some(owners))) = (question, &answer) {
            locked(&inner.owners).put(key.clone(), owners.clone());
        }
        answer
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // Reviews that had all their time for it: the API server is slow.
        if self.begun.is_some_and(|begun| begun.elapsed() >= PATIENCE) {
            self.inner.backoff(&self.question, RequestBackoff::rest);
        }
        let lookups = &mut locked(&self.inner.asking).lookups;
        // Another one may have begun since the last review left.
        if lookups.get(&self.question).is_some_and(|(number, _)| *number == self.number) {
            lookups.remove(&self.question);
        }
    }
}

impl Inner {
    async fn answer(&self, question: &Question) -> kube::Result<Answer> {
        match question {
            Question::Owner(key) => match key.kind {
                OwnerKind::ReplicaSet => self.owners::<ReplicaSet>(key).await,
                OwnerKind::Job => self.owners::<Job>(key).await,
            }
            .map(Answer::Owners),
            Question::Namespace(name) => self.namespace(name).await.map(Answer::Namespace),
        }
    }

    fn backoff<T>(&self, question: &Question, change: impl FnOnce(&mut RequestBackoff) -> T) -> T {
        let kind = match question {
            Question::Owner(key) => Some(key.kind),
            Question::Namespace(_) => None,
        };
        let mut all = locked(&self.backoffs);
        change(all.entry(kind).or_insert_with(|| RequestBackoff::up_to(LONGEST_REST)))
    }

    /// Requests only metadata, and reads only the used part of it: the rest may be large.
    async fn owners<K>(&self, key: &OwnerKey) -> kube::Result<Option<Vec<Owner>>>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        let request = Request::new(K::url_path(&(), Some(&key.namespace)));
        let mut request =
            request.get_metadata(&key.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("get_metadata");
        let found = match self.client.request::<Found>(request).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(None),
            found => found?.metadata,
        };
        // Another object of the same name is not the pod's owner.
        let is_same = key.uid.is_empty() || found.uid.as_deref() == Some(&key.uid);
        Ok(is_same.then(|| workload::kept(found.owner_references.unwrap_or_default().into_iter().map(owner))))
    }

    async fn namespace(&self, name: &str) -> kube::Result<Option<Arc<catalogue::Namespace>>> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let found = api.get_metadata_opt(name).await?;
        Ok(found.map(|found| Arc::new(object::namespace(&json!({"metadata": found.metadata})).1)))
    }
}

impl Owners for Learned {
    /// Returns unknown for failed lookups; the Deployment of a ReplicaSet is then derived from its name.
    fn look_up(&self, query: OwnerQuery<'_>) -> Lookup {
        self.0.get(&OwnerKey::of(&query)).cloned().unwrap_or(Lookup::Unknown)
    }
}

impl OwnerKey {
    fn of(query: &OwnerQuery<'_>) -> Self {
        Self {
            kind: query.kind,
            namespace: query.namespace.into(),
            name: query.name.into(),
            uid: query.uid.into(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn owner(reference: OwnerReference) -> Owner {
    Owner {
        kind: reference.kind.into(),
        name: reference.name.into(),
        uid: reference.uid.into(),
        controller: reference.controller.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
