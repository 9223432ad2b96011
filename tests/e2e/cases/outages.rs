//! Failures of the control plane next to good reviews, which are counted: none is lost, none is answered without
//! injection, and what has changed meanwhile is known afterwards.
//!
//! The reviews come over their own connections, since an API server that is unavailable sends none.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use otel_webhook_testkit::{
    cluster::{
        control_plane::ControlPlane,
        created::Created,
        manifests::{instrumentation, java},
        proxy::Proxy,
    },
    load::{
        good::{Pace, Tally, Traffic},
        material,
    },
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::registration::{self, HOME};
use crate::webhook::Webhook;

const NAMESPACE: &str = material::NAMESPACE;

/// How long good reviews go on before and after each failure, and during one that has no end by itself.
const CALM: Duration = Duration::from_secs(1);
const LENGTH: Duration = Duration::from_secs(3);

const KNOWN: &str = "otel_webhook_instrumentations";

/// Fields are dropped in their order: the webhook goes before what it watches.
struct World {
    webhook: Webhook,
    proxy: Proxy,
    plane: ControlPlane,
    instrumentations: u64,
}

/// What is sent, and how often in a second.
struct Reviews {
    review: Value,
    rate: u32,
}

impl Reviews {
    fn usual() -> Self {
        Self { review: material::usual(), rate: 50 }
    }
}

/// In its own cluster, whose control plane can fail.
pub fn reviews(_: &Cluster) {
    let mut world = World::start();
    let usual = Reviews::usual();
    println!("   | failure | good reviews | lost | not injected | p99 | probes | dead |");
    world.beside("the API server is stopped and started", &usual, |world| {
        world.plane.stop("kube-apiserver");
        world.until_logged("a watch failed; retrying");
        thread::sleep(LENGTH);
        world.plane.start_again("kube-apiserver");
        world.one_more();
    });
    world.beside("etcd is stopped and started", &usual, |world| {
        world.plane.stop("etcd");
        thread::sleep(LENGTH);
        let ran = world.plane.kubectl(&["get", "namespaces", "--request-timeout=2s"]);
        assert!(!ran.ok, "the API server answers without etcd: {}", ran.stdout);
        world.plane.start_again("etcd");
        world.one_more();
    });
    world.beside("the watches are cut", &usual, |world| {
        world.proxy.cut();
        world.until_logged("a watch failed; retrying");
        world.create_one();
        thread::sleep(LENGTH);
        world.proxy.open();
        world.until_known();
    });
    world.beside("410 Gone: the API server has forgotten the version", &usual, gone);
    // Owners of these have to be looked up, and each review waits for that.
    let of_jobs = Reviews { review: material::captured("job-pod-create"), rate: 10 };
    world.beside("answers of the API server are 2 s late", &of_jobs, |world| {
        world.proxy.slow(Duration::from_secs(2));
        // Watches are slow, too.
        world.one_more();
        world.proxy.open();
    });
    recreated(&mut world);
}

/// After a new start, an API server knows no version before it: watches begin with a list again.
fn gone(world: &mut World) {
    world.proxy.cut();
    world.until_logged("a watch failed; retrying");
    world.create_one();
    world.delete_one();
    world.create_one();
    world.plane.stop("kube-apiserver");
    world.plane.start_again("kube-apiserver");
    world.proxy.open();
    world.until_known();
    world.until_logged("too old resource version");
}

/// All Instrumentations go with their CRD, so reviews are answered without injection until they are back.
fn recreated(world: &mut World) {
    let traffic = world.begin(&Reviews::usual());
    let crd = ["delete", "customresourcedefinition", "instrumentations.opentelemetry.io"];
    world.plane.run_kubectl(&crd);
    world.instrumentations = 0;
    world.until_known();
    world.until_logged("is the CRD installed?");
    world.plane.apply_server_side(registration::CRD);
    world.install_instrumentation();
    world.until_known();
    let tally = traffic.end();
    tell("the CRD is deleted and created", &tally);
    assert!(tally.lost.is_empty() && tally.dead == 0, "{:?}", tally.lost);
    assert!(tally.not_injected > 0 && tally.not_injected < tally.answered, "{}", tally.not_injected);
    world.beside("afterwards", &Reviews::usual(), |_| ());
}

impl World {
    fn start() -> Self {
        let plane = ControlPlane::without_controllers();
        let kubeconfig = registration::install(&plane);
        let (proxy, kubeconfig) = Proxy::before(&kubeconfig);
        plane.namespace(NAMESPACE, json!({}));
        let webhook = Webhook::start(&kubeconfig, plane.dir());
        registration::register(&plane, &webhook.url_of("/mutate-v1-pod"), &[&webhook.first_authority], 1);
        let mut world = Self { webhook, proxy, plane, instrumentations: 0 };
        world.install_instrumentation();
        world.until_known();
        world
    }

    /// The one that good reviews use by name.
    fn install_instrumentation(&mut self) {
        let object = material::instrumentation();
        let name = object["metadata"]["name"].as_str().expect("a name");
        self.create(&instrumentation(NAMESPACE, name, &object["spec"]));
    }

    fn create(&mut self, object: &Value) {
        let args = ["create", "--filename", "-"];
        until("an Instrumentation is stored", || {
            self.plane.kubectl_in(&args, &object.to_string()).ok.then_some(())
        });
        self.instrumentations += 1;
    }

    /// Creates an Instrumentation that no pod uses.
    fn create_one(&mut self) {
        let name = format!("more-{}", self.instrumentations);
        self.create(&instrumentation(HOME, &name, &json!({})));
    }

    /// Deletes the one that was created last.
    fn delete_one(&mut self) {
        self.instrumentations -= 1;
        let name = format!("more-{}", self.instrumentations);
        self.plane.run_kubectl(&["delete", "instrumentations.opentelemetry.io", &name, "--namespace", HOME]);
    }

    /// Creates one, and waits until the webhook knows it.
    fn one_more(&mut self) {
        self.create_one();
        self.until_known();
    }

    /// Waits until the webhook knows all that was created and deleted.
    fn until_known(&self) {
        until("the webhook knows all Instrumentations", || {
            (self.webhook.metric(KNOWN) == self.instrumentations).then_some(())
        });
    }

    fn until_logged(&self, part: &str) {
        until(&format!("the log has {part:?}"), || {
            self.webhook.log().iter().any(|line| line.to_string().contains(part)).then_some(())
        });
    }

    /// Good reviews before, during and after a failure.
    fn beside(&mut self, name: &str, reviews: &Reviews, fail: impl FnOnce(&mut Self)) {
        let traffic = self.begin(reviews);
        fail(self);
        thread::sleep(CALM);
        let tally = traffic.end();
        tell(name, &tally);
        let Tally { lost, not_injected, dead, answered, .. } = &tally;
        assert!(lost.is_empty(), "{name}: {} reviews were lost: {:?}", lost.len(), lost[0]);
        assert!(*answered > 0 && *not_injected == 0 && *dead == 0, "{name}: {tally:?}");
        // The API server sends reviews again, and waits less after failures if the webhook is new.
        until("the API server calls the webhook", || {
            // An API server that has just started may reject pods.
            let args = ["create", "--namespace", NAMESPACE, "--dry-run=server", "-o", "json", "-f", "-"];
            let ran = self.plane.kubectl_in(&args, &java("probe").to_string());
            let pod = serde_json::from_str(&ran.stdout).unwrap_or_default();
            Created::found(pod).is_injected().then_some(())
        });
        drop(self.webhook.stop());
    }

    fn begin(&self, reviews: &Reviews) -> Traffic {
        let [webhook, admin] = self.webhook.addresses();
        let servers = Arc::new(Mutex::new(vec![webhook]));
        let pace = Pace { rate: reviews.rate, is_kept: true };
        let traffic = Traffic::begin_with(&reviews.review, &servers, Some(admin), pace);
        thread::sleep(CALM);
        traffic
    }
}

fn tell(name: &str, tally: &Tally) {
    let Tally { answered, lost, not_injected, probes, dead, .. } = tally;
    let (lost, p99) = (lost.len(), tally.latency(990));
    note(&format!("| {name} | {answered} | {lost} | {not_injected} | {p99:.0} ms | {probes} | {dead} |"));
}
