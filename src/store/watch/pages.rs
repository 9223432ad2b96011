//! Lists and watches of one kind. Lists come in pages of many objects, or of few if those are too long.
//!
//! The users of a namespace can create objects of 1.5 MiB, and the client needs some times the length of a page while
//! it receives it. Most objects are short: with few on a page, the lists of a large cluster would take seconds.

use std::error::Error;

use futures::{Stream, StreamExt, future};
use http_body_util::{Either, LengthLimitError, Limited};
use hyper::Request;
use kube::{
    Api, Client,
    api::ApiResource,
    client::Body,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};

use crate::{
    reduced::Whole,
    scope::{Patient, place},
};

/// How many objects a page has.
const PAGE: u32 = 500;

/// The same after a page that was too long.
const SMALL_PAGE: u32 = 4;

/// The maximum length of a page of many objects, in bytes. Four objects of the maximum size are shorter.
const LONGEST: usize = 8 * 1024 * 1024;

/// Returns the events of the objects of a kind, in a namespace or in all.
pub fn events(
    client: &Client,
    kind: &ApiResource,
    namespace: Option<&str>,
) -> impl Stream<Item = watcher::Result<Event<Whole>>> + Send + use<> {
    let plural = kind.plural.clone();
    let is_short = move |event: &watcher::Result<Event<Whole>>| {
        let is_too_long = event.as_ref().is_err_and(|error| is_caused_by_length(error));
        if is_too_long {
            tracing::info!(
                kind = plural,
                page = SMALL_PAGE,
                "objects are large; listing them in small pages"
            );
        }
        future::ready(!is_too_long)
    };
    let pages = |size| watcher::Config::default().page_size(size);
    let large = watch(place(&limited(client), kind, namespace, pages(PAGE))).take_while(is_short);
    large.chain(watch(place(client, kind, namespace, pages(SMALL_PAGE))))
}

/// Lists and watches.
fn watch(
    (api, config): (Api<Whole>, watcher::Config),
) -> impl Stream<Item = watcher::Result<Event<Whole>>> + Send {
    watcher(api, config).backoff(Patient::default())
}

/// Returns a client that does not read longer lists. Watches are not limited, since they have no end.
fn limited(client: &Client) -> Client {
    let (inner, namespace) = (client.clone(), client.default_namespace().to_owned());
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = inner.clone();
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.split('&').any(|pair| pair == "watch=true");
        async move {
            let response = client.send(request).await?;
            Ok::<_, kube::Error>(response.map(|body| {
                if is_watch { Either::Right(body) } else { Either::Left(Limited::new(body, LONGEST)) }
            }))
        }
    });
    Client::new(service, namespace)
}

fn is_caused_by_length(error: &(dyn Error + 'static)) -> bool {
    error.is::<LengthLimitError>() || error.source().is_some_and(is_caused_by_length)
}
