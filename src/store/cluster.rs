//! Lookups of the API server during a review: the owner of a ReplicaSet or a Job, and a namespace that the watch
//! has not received yet. Concurrent reviews share a lookup, and results are cached in bounded memory.

mod memory;

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, join_all},
};
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, batch::v1::Job, core::v1::Namespace},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Client, Resource};
use memory::Memory;
use serde_json::{Value, json};
use tokio::time::Instant;

use otel_webhook_inject::{
    catalogue, object,
    workload::{Lookup, Owner, OwnerKind, OwnerQuery, Owners},
};

/// How long a review waits for all lookups together. A name of an owner is not worth delaying a pod for longer.
const PATIENCE: Duration = Duration::from_millis(300);

/// The timeout of a lookup. Reviews no longer wait then; it prevents later ones from joining a lookup that never
/// ends.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

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
    asking: Mutex<HashMap<Question, Asked>>,
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
enum Told {
    Owners(Option<Vec<Owner>>),
    Namespace(Option<Arc<catalogue::Namespace>>),
    /// The request failed; the message is for the log.
    Nothing(Arc<str>),
}

type Asked = Shared<BoxFuture<'static, Told>>;

/// The owners that were looked up for one review.
#[derive(Debug)]
pub struct Learned(HashMap<OwnerKey, Lookup>);

impl ClusterLookup {
    /// Returns lookups with this client.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Inner { client, owners: Mutex::default(), asking: Mutex::default() }))
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
            Some(Told::Namespace(found)) => found,
            _ => None,
        }
    }

    async fn owner(&self, key: &OwnerKey, deadline: Instant) -> Lookup {
        if let Some(owners) = locked(&self.0.owners).get(key) {
            return Lookup::Known(owners);
        }
        match self.ask(Question::Owner(key.clone()), deadline).await {
            Some(Told::Owners(Some(owners))) => Lookup::Known(owners),
            Some(Told::Owners(None)) => Lookup::Absent,
            _ => Lookup::Unknown,
        }
    }

    /// Starts or joins a lookup. Returns none if it fails or times out.
    async fn ask(&self, question: Question, deadline: Instant) -> Option<Told> {
        let asked = locked(&self.0.asking)
            .entry(question.clone())
            .or_insert_with(|| Arc::clone(&self.0).spawned(question.clone()))
            .clone();
        match tokio::time::timeout_at(deadline, asked).await {
            Ok(Told::Nothing(problem)) => {
                tracing::warn!(lookup = ?question, %problem, "a lookup at the API server failed");
                None
            }
            Ok(told) => Some(told),
            Err(_) => {
                tracing::warn!(lookup = ?question, timeout = ?PATIENCE, "a lookup at the API server timed out");
                None
            }
        }
    }
}

impl Inner {
    /// Runs a lookup in its own task, so that a late result is cached, too.
    fn spawned(self: Arc<Self>, question: Question) -> Asked {
        let task = tokio::spawn(async move {
            let answer = tokio::time::timeout(LONGEST_ANSWER, self.answer(&question)).await;
            let told = answer.unwrap_or_else(|elapsed| Told::Nothing(elapsed.to_string().into()));
            if let (Question::Owner(key), Told::Owners(Some(owners))) = (&question, &told) {
                locked(&self.owners).put(key.clone(), owners.clone());
            }
            locked(&self.asking).remove(&question);
            told
        });
        task.map(|ended| ended.unwrap_or_else(|error| Told::Nothing(error.to_string().into())))
            .boxed()
            .shared()
    }

    async fn answer(&self, question: &Question) -> Told {
        let told = match question {
            Question::Owner(key) => match key.kind {
                OwnerKind::ReplicaSet => self.owners::<ReplicaSet>(key).await,
                OwnerKind::Job => self.owners::<Job>(key).await,
            }
            .map(Told::Owners),
            Question::Namespace(name) => self.namespace(name).await.map(Told::Namespace),
        };
        told.unwrap_or_else(|error| Told::Nothing(error.to_string().into()))
    }

    /// Requests only metadata: the rest of the object is not used, and much larger.
    fn owners<K>(&self, key: &OwnerKey) -> impl Future<Output = kube::Result<Option<Vec<Owner>>>>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        async move {
            let found = api.get_metadata_opt(&key.name).await?;
            // Another object of the same name is not the pod's owner.
            let same = |uid: &Option<String>| key.uid.is_empty() || uid.as_deref() == Some(&key.uid);
            let own = found.filter(|found| same(&found.metadata.uid));
            let references =
                |own: kube::api::PartialObjectMeta<K>| own.metadata.owner_references.unwrap_or_default();
            Ok(own.map(|own| references(own).into_iter().map(owner).collect()))
        }
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
