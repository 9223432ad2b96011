//! Pages of lists whose objects stay text until each is read on its own: read as documents, a page would need many
//! times the memory.

use futures::{SinkExt, Stream, StreamExt, channel::mpsc, stream};
use hyper::Request;
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;

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
