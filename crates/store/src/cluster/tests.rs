//! Lookups at an API server in this process, which answers when the test lets it.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::{Request as HttpRequest, Response, body::Bytes};

use super::*;

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_open: bool,
    in_flight: usize,
    most: usize,
    paths: Vec<String>,
}

/// A request that the server has not answered yet. The client may cancel it.
struct InFlight(Server);

impl InFlight {
    fn of(server: Server, path: &str) -> Self {
        {
            let state = &mut locked(&server.0);
            state.paths.push(path.to_owned());
            state.in_flight += 1;
            state.most = state.most.max(state.in_flight);
        }
        Self(server)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        locked(&self.0.0).in_flight -= 1;
    }
}

impl Server {
    fn lookup(&self) -> ClusterLookup {
        let server = self.clone();
        let answer = move |request: HttpRequest<kube::client::Body>| {
            let in_flight = InFlight::of(server.clone(), request.uri().path());
            async move {
                until(|| locked(&in_flight.0.0).is_open).await;
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(job().to_string())))
            }
        };
        ClusterLookup::new(Client::new(tower::service_fn(answer), "default"))
    }

    fn open(&self) {
        locked(&self.0).is_open = true;
    }

    fn state<T>(&self, of: impl Fn(&State) -> T) -> T {
        of(&locked(&self.0))
    }
}

/// A Job with many owners, and with fields that are not read.
fn job() -> Value {
    let owner = |number: usize| json!({"apiVersion": "v1", "kind": "CronJob", "name": format!("c-{number}"), "uid": "c"});
    let mut owners: Vec<_> = (0..1_000).map(owner).collect();
    owners[500]["controller"] = true.into();
    json!({"metadata": {"uid": "u", "ownerReferences": owners, "labels": {"a": 1}, "managedFields": "unread"}})
}

async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.expect("it becomes so");
}

fn query(name: &str) -> OwnerQuery<'_> {
    OwnerQuery { kind: OwnerKind::Job, namespace: "shop", name, uid: "u" }
}

fn later() -> Instant {
    Instant::now() + LIMIT
}

fn asking(lookup: &ClusterLookup) -> usize {
    locked(&lookup.0.asking).lookups.len()
}

#[tokio::test]
async fn lookups_at_the_same_time_are_bounded_and_cancelled_with_their_reviews() {
    let (server, names) =
        (Server::default(), (0..100).map(|number| format!("job-{number}")).collect::<Vec<_>>());
    let lookup = Arc::new(server.lookup());
    let (mine, reviews) = (Arc::clone(&lookup), names.clone());
    let reviews = tokio::spawn(async move {
        let queries: Vec<_> = reviews.iter().map(|name| query(name)).collect();
        mine.owners(&queries, later()).await
    });
    until(|| server.state(|state| state.in_flight) == AT_ONCE).await;
    assert_eq!(asking(&lookup), names.len(), "the others wait");
    reviews.abort();
    until(|| server.state(|state| state.in_flight) == 0).await;
    until(|| asking(&lookup) == 0).await;
    assert_eq!(server.state(|state| (state.most, state.paths.len())), (AT_ONCE, AT_ONCE));

    server.open();
    let queries: Vec<_> = names.iter().map(|name| query(name)).collect();
    let learned = lookup.owners(&queries, later()).await;
    assert!(queries.iter().all(|query| matches!(learned.look_up(*query), Lookup::Known(_))), "{learned:?}");
    assert_eq!(server.state(|state| state.most), AT_ONCE);
    assert_eq!(asking(&lookup), 0);
}

#[tokio::test]
async fn a_lookup_ends_at_the_deadline_of_its_review() {
    let server = Server::default();
    let lookup = server.lookup();
    let learned = lookup.owners(&[query("job")], Instant::now() + Duration::from_millis(20)).await;
    assert_eq!(learned.look_up(query("job")), Lookup::Unknown);
    until(|| server.state(|state| state.in_flight) == 0).await;
    assert_eq!(server.state(|state| state.paths.len()), 1);
    assert_eq!(asking(&lookup), 0);
}

#[tokio::test]
async fn a_lookup_goes_on_for_the_reviews_that_still_wait() {
    let server = Server::default();
    let lookup = server.lookup();
    let queries = [query("job")];
    let first = async {
        let learned = lookup.owners(&queries, Instant::now() + Duration::from_millis(20)).await;
        server.open();
        learned
    };
    let (first, second) = tokio::join!(first, lookup.owners(&queries, later()));
    assert_eq!(first.look_up(queries[0]), Lookup::Unknown);
    assert!(matches!(second.look_up(queries[0]), Lookup::Known(_)), "{second:?}");
    let third = lookup.owners(&queries, later()).await;
    assert_eq!(server.state(|state| state.paths.clone()), ["/apis/batch/v1/namespaces/shop/jobs/job"]);
    let Lookup::Known(owners) = third.look_up(queries[0]) else { panic!("{third:?}") };
    let names: Vec<_> = owners.iter().map(|owner| &*owner.name).collect();
    assert_eq!(names, ["c-0", "c-1", "c-2", "c-500"], "few are cached, with the controller");
}
