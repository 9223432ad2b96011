//! A client of an API server: a request takes less time than the start of kubectl.

use std::path::Path;

use futures::{Stream, StreamExt as _, stream};
use kube::{
    Api, Client, Config,
    api::{DynamicObject, Patch, PatchParams, PostParams, TypeMeta},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

/// More requests at once only wait for each other on two cores.
const AT_ONCE: usize = 8;

/// Runs requests in a runtime of the calling thread.
pub fn block_on<T>(requests: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(requests)
}

/// Results of requests of which some are made at once, in the order in which they end.
pub fn at_once<R: Future>(requests: impl IntoIterator<Item = R>) -> impl Stream<Item = R::Output> {
    stream::iter(requests).buffer_unordered(AT_ONCE)
}

/// Connects as the user of a kubeconfig with the first request.
pub async fn client(kubeconfig: &Path) -> Client {
    // kube would take another provider than the product, were none chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

/// A connection to an API server.
#[derive(Clone)]
pub struct Objects(Client);

impl Objects {
    /// As [`client`].
    pub async fn connect(kubeconfig: &Path) -> Self {
        Self(client(kubeconfig).await)
    }

    /// Creates an object in the namespace that it names, or without one. Returns what the API server made of it.
    ///
    /// # Errors
    /// The message of the API server that rejects it.
    pub async fn create(&self, object: &Value) -> Result<Value, String> {
        self.create_by(object, false).await
    }

    /// What the API server would make of an object.
    ///
    /// # Errors
    /// The message of the API server that would reject it.
    pub async fn dry_run(&self, object: &Value) -> Result<Value, String> {
        self.create_by(object, true).await
    }

    /// Creates objects, some at once, all of which have to be accepted. Returns them in the same order.
    pub async fn create_all(&self, objects: impl IntoIterator<Item = Value>) -> Vec<Value> {
        let create = |object: Value| async move { self.create(&object).await.expect("it is accepted") };
        stream::iter(objects).map(create).buffered(AT_ONCE).collect().await
    }

    /// Merges a patch into the object with the kind, the namespace and the name of `of`.
    ///
    /// # Errors
    /// As requests fail.
    pub async fn merge(&self, of: &Value, patch: &Value) -> kube::Result<()> {
        let name = of["metadata"]["name"].as_str().expect("a name");
        self.api(of).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    /// The collection of an object.
    pub fn api(&self, object: &Value) -> Api<DynamicObject> {
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("a version and a kind");
        let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.0.clone(), namespace, &kind),
            None => Api::all_with(self.0.clone(), &kind),
        }
    }

    async fn create_by(&self, object: &Value, dry_run: bool) -> Result<Value, String> {
        let sent: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        match self.api(object).create(&PostParams { dry_run, ..PostParams::default() }, &sent).await {
            Ok(made) => Ok(json!(made)),
            Err(kube::Error::Api(status)) => Err(status.message),
            Err(error) => panic!("the API server did not respond: {error}"),
        }
    }
}
