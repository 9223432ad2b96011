//! Watches of the whole cluster, or of some namespaces as one.

use std::{fmt::Debug, time::Duration};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use k8s_openapi::{Resource as _, api::core::v1::Namespace};
use kube::{
    Api, Client, Resource,
    api::ApiResource,
    core::DynamicResourceScope,
    runtime::{WatchStreamExt, utils::Backoff, watcher, watcher::Config, watcher::Event},
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

/// The events of a watch.
pub type Events<K> = BoxStream<'static, watcher::Result<Event<K>>>;

/// After how many seconds the API server ends a watch. Five seconds later, one that has told nothing is taken for one
/// that is no longer answered.
const LENGTH: u32 = 60;

/// Lists and watches, again and again.
pub fn follow<K>(api: Api<K>, config: Config) -> Events<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let begin = move || watcher(api.clone(), config.clone().timeout(LENGTH)).boxed();
    patiently(listing_again(begin)).boxed()
}

/// Whether the API server has forgotten the version from which it was to watch.
fn is_forgotten(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchError(status) | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            status.code == 410
        }
        _ => false,
    }
}

/// Begins with a list again when the version is forgotten. kube does so if a watch says it, but if the request for the
/// watch is refused, it would repeat that with the same version forever.
fn listing_again<T: Send + 'static>(
    begin: impl Fn() -> BoxStream<'static, watcher::Result<T>> + Send + 'static,
) -> impl Stream<Item = watcher::Result<T>> + Send {
    stream::unfold((begin(), begin), |(mut events, begin)| async {
        let event = events.next().await?;
        if event.as_ref().is_err_and(is_forgotten) {
            events = begin();
        }
        Some((event, (events, begin)))
    })
}

/// Waits after failures. If the API server has forgotten a version, it has answered, and a list follows at once: after the
/// failures of its restart, the wait would be a long one. One that forgets again within the length of a watch is waited
/// for as well.
fn patiently<T: Send + 'static>(
    events: impl Stream<Item = watcher::Result<T>> + Send + 'static,
) -> impl Stream<Item = watcher::Result<T>> + Send {
    let mut last: Option<Instant> = None;
    let events = events.map(move |event| match event {
        Err(error) if is_forgotten(&error) => {
            let is_rare = last.is_none_or(|last| last.elapsed() > Duration::from_secs(LENGTH.into()));
            last = Some(Instant::now());
            if is_rare { Ok(Err(error)) } else { Err(error) }
        }
        event => event.map(Ok),
    });
    events.backoff(Patient::default()).map(Result::flatten)
}

/// Where objects are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// In all namespaces.
    #[default]
    Cluster,
    /// In these.
    Namespaces(Vec<String>),
}

impl Scope {
    /// Returns the scope of these namespaces; of all, if there are none.
    pub fn of(namespaces: &[String]) -> Self {
        if namespaces.is_empty() { Self::Cluster } else { Self::Namespaces(namespaces.to_vec()) }
    }

    /// Returns whether objects of a namespace are watched.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::Cluster => true,
            Self::Namespaces(namespaces) => namespaces.iter().any(|known| known == namespace),
        }
    }

    /// Watches namespaced objects. `begin` begins the watch of one namespace, or of all.
    pub fn watch<K: Send + 'static>(
        &self,
        begin: impl Fn(Option<&str>) -> Events<K> + Send + 'static,
    ) -> Events<K> {
        match self {
            Self::Cluster => begin(None),
            Self::Namespaces(namespaces) => {
                let merged = Merged::new(namespaces.clone(), Box::new(begin));
                stream::unfold(merged, |mut merged| async {
                    let event = merged.next().await?;
                    Some((event, merged))
                })
                .boxed()
            }
        }
    }
}

/// Returns what to watch of a kind for one namespace, or for all. Of Namespaces themselves, it is the one of that name.
pub fn place<K>(
    client: &Client,
    kind: &ApiResource,
    namespace: Option<&str>,
    config: Config,
) -> (Api<K>, Config)
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let all = || Api::all_with(client.clone(), kind);
    match namespace {
        None => (all(), config),
        Some(name) if kind.kind == Namespace::KIND => {
            (all(), config.fields(&format!("metadata.name={name}")))
        }
        Some(namespace) => (Api::namespaced_with(client.clone(), namespace, kind), config),
    }
}

/// Waits longer after each failed list. Each attempt begins with an event, which would reset the usual backoff; this
/// one is reset after two minutes without an error.
#[derive(Default)]
struct Patient(watcher::DefaultBackoff);

impl Iterator for Patient {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Patient {
    fn reset(&mut self) {}
}

type Begin<K> = Box<dyn Fn(Option<&str>) -> Events<K> + Send>;

/// The watches of several namespaces as one: its list begins with the first of theirs, and is complete with the last.
///
/// A list that begins again, as after the API server has forgotten a version, would show what the other namespaces have
/// as gone. Then all begin again.
struct Merged<K> {
    namespaces: Vec<String>,
    begin: Begin<K>,
    events: SelectAll<BoxStream<'static, (usize, watcher::Result<Event<K>>)>>,
    /// How far the list of each namespace is.
    lists: Vec<List>,
    is_begun: bool,
    backoff: Patient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Empty,
    /// Objects of it were passed on.
    Begun,
    Complete,
}

impl<K: Send + 'static> Merged<K> {
    fn new(namespaces: Vec<String>, begin: Begin<K>) -> Self {
        let mut merged = Self {
            namespaces,
            begin,
            events: SelectAll::new(),
            lists: Vec::new(),
            is_begun: false,
            backoff: Patient::default(),
        };
        merged.begin();
        merged
    }

    /// Lists all again after a while: each list may be the answer to a failure that lasts.
    async fn begin_again(&mut self) {
        self.events = SelectAll::new();
        sleep(self.backoff.next().unwrap_or_default()).await;
        self.begin();
    }

    fn begin(&mut self) {
        self.lists = vec![List::Empty; self.namespaces.len()];
        self.is_begun = false;
        let one = |(index, namespace): (usize, &String)| {
            (self.begin)(Some(namespace)).map(move |event| (index, event)).boxed()
        };
        self.events = stream::select_all(self.namespaces.iter().enumerate().map(one));
    }

    async fn next(&mut self) -> Option<watcher::Result<Event<K>>> {
        loop {
            let (index, event) = self.events.next().await?;
            let told = match event {
                Ok(event) => self.take(index, event).await.map(Ok),
                Err(error) => Some(Err(error)),
            };
            if told.is_some() {
                return told;
            }
        }
    }

    async fn take(&mut self, index: usize, event: Event<K>) -> Option<Event<K>> {
        let are_complete = self.lists.iter().all(|list| *list == List::Complete);
        match event {
            Event::Init if self.lists[index] != List::Empty => {
                self.begin_again().await;
                None
            }
            Event::Init => (!std::mem::replace(&mut self.is_begun, true)).then_some(Event::Init),
            Event::InitApply(object) => {
                self.lists[index] = List::Begun;
                Some(Event::InitApply(object))
            }
            Event::InitDone => {
                self.lists[index] = List::Complete;
                self.lists.iter().all(|list| *list == List::Complete).then_some(Event::InitDone)
            }
            Event::Apply(object) if are_complete => Some(Event::Apply(object)),
            // Other namespaces are still being listed.
            Event::Apply(object) => Some(Event::InitApply(object)),
            Event::Delete(object) if are_complete => Some(Event::Delete(object)),
            Event::Delete(_) => {
                self.begin_again().await;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::channel::mpsc;

    use super::*;

    fn failed(code: u16) -> watcher::Error {
        let status = kube::core::Status { code, ..kube::core::Status::default() };
        watcher::Error::WatchError(Box::new(status))
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_follows_a_forgotten_version_at_once_and_other_failures_later() {
        for (code, expected) in [(410, true), (500, false)] {
            let events = stream::iter([Err(failed(500)), Ok(1), Err(failed(code)), Ok(2)]);
            let mut events = Box::pin(patiently(events));
            assert!(events.next().await.is_some_and(|event| event.is_err()));
            assert!(matches!(events.next().await, Some(Ok(1))));
            let begun = Instant::now();
            assert!(events.next().await.is_some_and(|event| event.is_err()), "it is reported");
            assert!(matches!(events.next().await, Some(Ok(2))));
            assert_eq!(begun.elapsed().is_zero(), expected, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_forgets_every_version_is_not_asked_all_the_time() {
        let begun = Instant::now();
        let events = patiently(stream::iter((0..5).map(|_| Err::<(), _>(failed(410)))));
        assert_eq!(events.count().await, 5);
        assert!(begun.elapsed() > Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    /// The watches that were begun, by namespace.
    type Begun = Arc<Mutex<Vec<(String, Sender)>>>;

    type Sender = mpsc::UnboundedSender<watcher::Result<Event<&'static str>>>;

    /// Two namespaces whose watches are told what to say. Returns the senders of the watches that were begun.
    fn watched() -> (Events<&'static str>, Begun) {
        let begun = Begun::default();
        let own = Arc::clone(&begun);
        let scope = Scope::of(&["a".to_owned(), "b".to_owned()]);
        let events = scope.watch(move |namespace| {
            let (sender, events) = mpsc::unbounded();
            own.lock().expect("not poisoned").push((namespace.expect("one").to_owned(), sender));
            events.boxed()
        });
        (events, begun)
    }

    fn say(begun: &Mutex<Vec<(String, Sender)>>, namespace: &str, events: Vec<Event<&'static str>>) {
        let begun = begun.lock().expect("not poisoned");
        let (_, sender) = begun.iter().rev().find(|(name, _)| name == namespace).expect("it is watched");
        for event in events {
            sender.unbounded_send(Ok(event)).expect("it is read");
        }
    }

    async fn told(events: &mut Events<&'static str>, count: usize) -> Vec<String> {
        let told = events.take(count).map(|event| format!("{:?}", event.expect("an event")));
        told.collect().await
    }

    #[tokio::test]
    async fn a_list_is_complete_with_that_of_the_last_namespace() {
        let (mut events, begun) = watched();
        say(&begun, "a", vec![Event::Init, Event::InitApply("a1"), Event::InitDone, Event::Apply("a2")]);
        assert_eq!(told(&mut events, 3).await, ["Init", "InitApply(\"a1\")", "InitApply(\"a2\")"]);
        // A list that failed before it told anything is tried again.
        say(&begun, "b", vec![Event::Init, Event::Init, Event::InitApply("b1"), Event::InitDone]);
        assert_eq!(told(&mut events, 2).await, ["InitApply(\"b1\")", "InitDone"]);
        say(&begun, "a", vec![Event::Delete("a1")]);
        assert_eq!(told(&mut events, 1).await, ["Delete(\"a1\")"]);
    }

    #[tokio::test]
    async fn a_list_that_begins_again_begins_all_again() {
        let (mut events, begun) = watched();
        say(&begun, "a", vec![Event::Init, Event::InitApply("a1"), Event::InitDone]);
        say(&begun, "b", vec![Event::Init, Event::InitDone]);
        assert_eq!(told(&mut events, 3).await, ["Init", "InitApply(\"a1\")", "InitDone"]);
        say(&begun, "b", vec![Event::Init]);
        let listener = tokio::spawn(async move { told(&mut events, 4).await });
        while begun.lock().expect("not poisoned").len() < 4 {
            tokio::task::yield_now().await;
        }
        say(&begun, "a", vec![Event::Init, Event::InitApply("a1"), Event::InitDone]);
        say(&begun, "b", vec![Event::Init, Event::InitApply("b1"), Event::InitDone]);
        let mut told = listener.await.expect("no panic");
        told[1..3].sort();
        assert_eq!(told, ["Init", "InitApply(\"a1\")", "InitApply(\"b1\")", "InitDone"]);
    }
}
