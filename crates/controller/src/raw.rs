//! Pages of lists whose objects stay text until each is read on its own: read as documents, a page would need many
//! times the memory.

use futures::{SinkExt, Stream, StreamExt, channel::mpsc, stream};
use hyper::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use otel_webhook_store::reduced;

/// The number of objects on a page.
const PAGE: usize = 100;

#[derive(Deserialize)]
struct List {
    metadata: ListMetadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(default)]
    r#continue: String,
}

/// A pod with what its states depend on.
#[derive(Deserialize)]
struct WholePod {
    #[serde(deserialize_with = "reduced::metadata")]
    metadata: ObjectMeta,
    spec: Value,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Value,
    conditions: Value,
    init_container_statuses: Value,
    container_statuses: Value,
}

/// Reads the JSON of a pod.
///
/// # Errors
/// If it is not a pod.
pub fn pod(text: &str) -> Result<Value, serde_json::Error> {
    let WholePod { metadata, spec, status } = serde_json::from_str(text)?;
    Ok(json!({"metadata": metadata, "spec": spec, "status": status}))
}

/// Lists the running pods of a namespace, or of all, page by page.
pub fn pods(
    client: Client,
    namespace: Option<String>,
) -> impl Stream<Item = Result<Vec<Box<RawValue>>, kube::Error>> + Send {
    let path = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
        None => "/api/v1/pods".to_owned(),
    };
    let first = format!(
        "{path}?limit={PAGE}&fieldSelector={}",
        super::pods::RUNNING.replace('!', "%21").replace('=', "%3D").replace(',', "%2C")
    );
    let pages = stream::try_unfold(Some(first.clone()), move |next| {
        let (client, first) = (client.clone(), first.clone());
        async move {
            let Some(next) = next else { return Ok(None) };
            let request = Request::get(next).body(Vec::new()).map_err(kube::Error::HttpError)?;
            let list: List = client.request(request).await?;
            let token = list.metadata.r#continue;
            let next = (!token.is_empty()).then(|| format!("{first}&continue={token}"));
            Ok(Some((list.items, next)))
        }
    });
    ahead(pages)
}

/// Asks for the next page while the last one is read.
fn ahead<T: Send + 'static>(pages: impl Stream<Item = T> + Send + 'static) -> impl Stream<Item = T> + Send {
    let (mut sender, receiver) = mpsc::channel(0);
    tokio::spawn(async move {
        // It ends with an error when nobody reads the pages any more.
        drop(sender.send_all(&mut pages.map(Ok).boxed()).await);
    });
    receiver
}
