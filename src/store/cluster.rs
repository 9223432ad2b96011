//! What only the API server can tell while a review waits: whom a ReplicaSet
//! or a Job belongs to, and what a namespace says that the watch has not
//! brought yet. Asked for once, shared by the reviews that wait for the same,
//! and remembered within bounds.

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

/// How long a review waits for answers, for all of them together. The name of an
/// owner is worth little compared to a pod that starts late.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long a question stays open. Reviews have gone on by then; it ends so that
/// later ones do not join a question that is never answered.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// What look-ups need of the cluster, as rules of a role.
pub fn rules() -> [Value; 3] {
    [
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}),
        json!({"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]}),
        json!({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}),
    ]
}

/// Until when a review waits that comes now.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Look-ups in the cluster.
pub struct ClusterLookup(Arc<Inner>);

struct Inner {
    client: Client,
    owners: Mutex<Memory<OwnerKey, Vec<Owner>>>,
    asking: Mutex<HashMap<Question, Asked>>,
}

/// A question that may be asked by several reviews at once.
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

/// What the API server said.
#[derive(Clone, Debug)]
enum Told {
    Owners(Option<Vec<Owner>>),
    Namespace(Option<Arc<catalogue::Namespace>>),
    /// It could not be asked; the sentence is for the log.
    Nothing(Arc<str>),
}

type Asked = Shared<BoxFuture<'static, Told>>;

/// What is known after asking, for one review.
#[derive(Debug)]
pub struct Learned(HashMap<OwnerKey, Lookup>);

impl ClusterLookup {
    /// Asks by this client.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Inner { client, owners: Mutex::default(), asking: Mutex::default() }))
    }

    /// Whom owners belong to: from memory, else from the API server, all at
    /// once and until the deadline.
    pub async fn owners(&self, queries: &[OwnerQuery<'_>], deadline: Instant) -> Learned {
        let lookups = queries.iter().map(|query| async {
            let key = OwnerKey::of(query);
            let lookup = self.owner(&key, deadline).await;
            (key, lookup)
        });
        Learned(join_all(lookups).await.into_iter().collect())
    }

    /// What a namespace says, if it is told before the deadline.
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

    /// Asks, or joins those who ask already. None when the answer takes too long.
    async fn ask(&self, question: Question, deadline: Instant) -> Option<Told> {
        let asked = locked(&self.0.asking)
            .entry(question.clone())
            .or_insert_with(|| Arc::clone(&self.0).spawned(question.clone()))
            .clone();
        match tokio::time::timeout_at(deadline, asked).await {
            Ok(Told::Nothing(problem)) => {
                tracing::warn!(?question, %problem, "the API server could not be asked");
                None
            }
            Ok(told) => Some(told),
            Err(_) => {
                tracing::warn!(?question, patience = ?PATIENCE, "the API server took too long to answer");
                None
            }
        }
    }
}

impl Inner {
    /// Asks in a task of its own, so that a late answer is remembered, too.
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

    /// Metadata alone: the rest of the object is of no use, and many times larger.
    fn owners<K>(&self, key: &OwnerKey) -> impl Future<Output = kube::Result<Option<Vec<Owner>>>>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &key.namespace);
        async move {
            let found = api.get_metadata_opt(&key.name).await?;
            // One of the same name that is not the pod's owner says nothing of it.
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
    /// What was not asked for is not known; a ReplicaSet's Deployment is then
    /// derived from its name.
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
