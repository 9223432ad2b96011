//! Numbers of pods, as every place reports them through a storm of changes, are those that the test counts by itself.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Instant,
};

use futures::StreamExt as _;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use otel_webhook_testkit::{
    cluster::{
        client::{Objects, block_on},
        created::{AGENT, Created},
    },
    objects::items,
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use super::status;
use crate::{
    cluster::{Cluster, java},
    controller::{Controller, deployment},
};

const NAMESPACE: &str = "counted";

/// How often each place is read during the storm: about once a second.
const ROUNDS: usize = 40;

const WORKLOADS: usize = 6;

/// The pod that is created last: nothing changes after it.
const LAST: &str = "last";

/// Numbers of pods that ask for Java.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    injected: u64,
    stale: u64,
    /// Those without an agent, also where the controller has not read why.
    missed: u64,
}

/// What one place said.
struct Sample {
    place: &'static str,
    taken: Instant,
    counts: Counts,
}

/// The endpoints that pods were injected with; none for those without an agent.
type Pods = BTreeMap<String, Option<String>>;

/// What the test has seen of the cluster by its own watch, in the order of changes, each with when it began.
#[derive(Default)]
struct History {
    pods: Mutex<Vec<(Instant, Pods)>>,
    /// The endpoints of the Instrumentation, which the test sets.
    endpoints: Mutex<Vec<(Instant, String)>>,
}

/// Pods come and go, the Instrumentation changes, the webhook stops now and then, and the controller is killed once. Status,
/// page, report, metrics and `status` say what was so at one moment, never go back to an earlier one, and end with what is.
pub fn through_a_storm(_: &Cluster) {
    let cluster = &Cluster::start();
    cluster.instrumented_namespace(NAMESPACE);
    status::after_the_second_of_the_instrumentation(cluster, NAMESPACE);
    let history = &History::default();
    history.set_endpoint(cluster, 0);
    for number in 0..WORKLOADS {
        cluster.apply(&deployment(NAMESPACE, &workload(number), 0));
    }
    let controller = Controller::new(cluster);
    controller.start();
    let mut samples = Vec::new();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| history.follow(cluster));
        let _end = SetOnDrop(is_over);
        scope.spawn(move || storm(cluster, history, is_over));
        for round in 0..ROUNDS {
            if round == ROUNDS / 2 {
                controller.kill();
                controller.start();
            }
            sample(cluster, &controller, &mut samples);
        }
    });
    let last = history.last();
    let total = last.injected + last.stale + last.missed;
    let expected =
        json!({"matched": total, "injected": last.injected, "stale": last.stale, "missed": last.missed});
    controller.expect(NAMESPACE, "default", &without_zeros(expected));
    sample(cluster, &controller, &mut samples);
    for place in ["the object's status", "report.json", "page", "metrics", "otel-webhook status"] {
        let of_place: Vec<_> = samples.iter().filter(|sample| sample.place == place).collect();
        assert_eq!(of_place.last().map(|sample| sample.counts), Some(last), "{place}, at the end");
        history.confirm(place, &of_place);
    }
    controller.stop();
}

fn workload(number: usize) -> String {
    format!("storm-{number}")
}

fn without_zeros(mut counts: Value) -> Value {
    counts.as_object_mut().expect("counts").retain(|_, count| *count != 0);
    counts
}

/// Changes something until it is over.
fn storm(cluster: &Cluster, history: &History, is_over: &AtomicBool) {
    block_on(async {
        let objects = Objects::connect(cluster.plane.kubeconfig()).await;
        let mut replicas = [0; WORKLOADS];
        for step in 0.. {
            if is_over.load(SeqCst) {
                break;
            }
            let number = step % WORKLOADS;
            // Up and down without a period that the others have.
            replicas[number] = (step * 7 + step / WORKLOADS) % 11;
            let scaled = deployment(NAMESPACE, &workload(number), replicas[number]);
            objects.merge(&scaled, &json!({"spec": scaled["spec"]})).await.expect("it is scaled");
            history.wait_for(&workload(number), replicas[number]);
            if step % 9 == 8 {
                history.set_endpoint(cluster, step);
            }
            if step % 40 == 39 {
                let _stopped = cluster.webhook.stop();
                objects
                    .merge(&scaled, &json!({"spec": {"replicas": replicas[number] + 3}}))
                    .await
                    .expect("it is scaled");
                history.wait_for(&workload(number), replicas[number] + 3);
            }
        }
    });
    cluster.create(NAMESPACE, &java(LAST));
}

/// Reads what each place says.
fn sample(cluster: &Cluster, controller: &Controller<'_>, samples: &mut Vec<Sample>) {
    let mut add = |place, counts: Option<Counts>| {
        samples.extend(counts.map(|counts| Sample { place, taken: Instant::now(), counts }));
    };
    let object = cluster.get(NAMESPACE, &["otelinst", "default"]);
    add("the object's status", of_json(&object["status"]["pods"]));
    add("report.json", controller.report().and_then(|report| of_json(of_instrumentation(&report))));
    add("page", of_page(&controller.page()));
    let metrics = controller.java_pods(["injected", "stale", "missed", "unconfirmed"]);
    add(
        "metrics",
        match metrics {
            [Some(injected), Some(stale), Some(missed), Some(unread)] => {
                Some(Counts { injected, stale, missed: missed + unread })
            }
            _ => None,
        },
    );
    let found = status::of_namespace(cluster, NAMESPACE, &[]).found;
    add("otel-webhook status", of_json(of_instrumentation(&found[0])));
}

/// The numbers of the Instrumentation in a report.
fn of_instrumentation(report: &Value) -> &Value {
    let row = items(&report["instrumentations"]).find(|row| row["namespace"] == NAMESPACE);
    row.map_or(&Value::Null, |row| &row["pods"])
}

/// The numbers of a JSON object; none where nothing was counted yet.
fn of_json(pods: &Value) -> Option<Counts> {
    let count = |state: &str| pods[state].as_u64().unwrap_or_default();
    let matched = pods["matched"].as_u64()?;
    let counts = Counts {
        injected: count("injected"),
        stale: count("stale"),
        missed: count("missed") + count("unconfirmed"),
    };
    assert_eq!(matched, counts.injected + counts.stale + counts.missed, "{pods}");
    Some(counts)
}

/// The numbers in the table of the page.
fn of_page(page: &str) -> Option<Counts> {
    let (_, row) = page.split_once(&format!("<td>{NAMESPACE}</td><th scope=\"row\">default</th>"))?;
    let cells =
        row.split("<td class=\"number\">").skip(1).map_while(|cell| cell.split_once('<')?.0.parse().ok());
    let [_all, missed, stale, unconfirmed, _foreign, _skipped, injected]: [u64; 7] =
        cells.take(7).collect::<Vec<_>>().try_into().expect("a number for each state");
    Some(Counts { injected, stale, missed: missed + unconfirmed })
}

impl History {
    /// Changes the Instrumentation.
    fn set_endpoint(&self, cluster: &Cluster, number: usize) {
        let endpoint = format!("http://collector-{number}:4317");
        self.endpoints.lock().expect("no panic").push((Instant::now(), endpoint.clone()));
        cluster.instrumentation(NAMESPACE, "default", &json!({"exporter": {"endpoint": endpoint}}));
    }

    /// Waits until a workload has so many pods.
    fn wait_for(&self, workload: &str, count: usize) {
        let prefix = format!("{workload}-");
        until(&format!("{workload} has {count} pods"), || {
            let pods = self.pods.lock().expect("no panic");
            let (_, pods) = pods.last()?;
            (pods.keys().filter(|name| name.starts_with(&prefix)).count() == count).then_some(())
        });
    }

    /// Watches pods until the last one is there.
    fn follow(&self, cluster: &Cluster) {
        block_on(async {
            let objects = Objects::connect(cluster.plane.kubeconfig()).await;
            let mut of_namespace = java(LAST);
            of_namespace["metadata"]["namespace"] = NAMESPACE.into();
            let api = objects.api(&of_namespace);
            let listed = api.list(&ListParams::default()).await.expect("a list");
            let mut pods = Pods::new();
            self.pods.lock().expect("no panic").push((Instant::now(), pods.clone()));
            let from = listed.metadata.resource_version.expect("a version");
            let mut events = api.watch(&WatchParams::default(), &from).await.expect("a watch").boxed();
            while !pods.contains_key(LAST) {
                match events.next().await.expect("the watch lasts").expect("an event") {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        pods.insert(name(&pod), endpoint(&pod));
                    }
                    WatchEvent::Deleted(pod) => {
                        pods.remove(&name(&pod));
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(status) => panic!("{status:?}"),
                }
                self.pods.lock().expect("no panic").push((Instant::now(), pods.clone()));
            }
        });
    }

    /// What is to be counted after all changes.
    fn last(&self) -> Counts {
        let (pods, endpoints) =
            (self.pods.lock().expect("no panic"), self.endpoints.lock().expect("no panic"));
        counted(&pods.last().expect("a state").1, &endpoints.last().expect("one").1)
    }

    /// Each number was right at a moment that is not before that of the number before it.
    fn confirm(&self, place: &str, samples: &[&Sample]) {
        let (pods, endpoints) =
            (self.pods.lock().expect("no panic"), self.endpoints.lock().expect("no panic"));
        // For each state of the Instrumentation, the first state of pods that all readings up to now allow.
        let mut allowed: Vec<Option<usize>> = vec![Some(0); endpoints.len()];
        let mut ages = Vec::new();
        for sample in samples {
            let mut first = None;
            let mut newest = None;
            for (at, (_, endpoint)) in endpoints.iter().enumerate() {
                first = [first, allowed[at]].into_iter().flatten().min();
                let is_right = |index: &usize| counted(&pods[*index].1, endpoint) == sample.counts;
                let right: Vec<_> =
                    first.into_iter().flat_map(|first| first..pods.len()).filter(is_right).collect();
                allowed[at] = right.first().copied();
                let Some(last) = right.last() else { continue };
                let ends =
                    [pods.get(last + 1).map(|state| state.0), endpoints.get(at + 1).map(|state| state.0)];
                newest = newest.max(Some(ends.into_iter().flatten().min().unwrap_or(sample.taken)));
            }
            let Some(newest) = newest else {
                panic!("{place}: {:?} was never so, or only before an earlier reading", sample.counts)
            };
            ages.push(sample.taken.saturating_duration_since(newest).as_secs_f64());
        }
        ages.sort_by(f64::total_cmp);
        note(&format!(
            "{place}: {} readings, each true at one of {} moments; half are younger than {:.1} s, all than {:.1} s",
            samples.len(),
            pods.len(),
            ages[ages.len() / 2],
            ages[ages.len() - 1],
        ));
    }
}

/// Counts pods by what is in them.
fn counted(pods: &Pods, current: &str) -> Counts {
    let count = |is: &dyn Fn(&Option<String>) -> bool| pods.values().filter(|pod| is(pod)).count() as u64;
    let injected = count(&|pod| pod.as_deref() == Some(current));
    let missed = count(&|pod| pod.is_none());
    Counts { injected, stale: pods.len() as u64 - injected - missed, missed }
}

fn name(pod: &DynamicObject) -> String {
    pod.metadata.name.clone().expect("a name")
}

/// The endpoint that a pod was injected with.
fn endpoint(pod: &DynamicObject) -> Option<String> {
    let pod = Created::found(json!(pod));
    let has_agent = pod.init_containers().contains(&AGENT);
    has_agent.then(|| pod.variable("app", "OTEL_EXPORTER_OTLP_ENDPOINT").to_owned())
}

/// The storm also ends when a step fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
