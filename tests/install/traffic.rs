//! Pods that are created all the time, to see that none is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};

use crate::cluster::{Cluster, LIMIT, java};
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created},
    runner::note,
    until::until,
};

/// How many pods are on their way at the same time: with one connection each,
/// a pod is created every few milliseconds.
const SENDERS: usize = 4;

/// Counts of the pods so far.
#[derive(Default)]
pub struct Traffic {
    created: AtomicUsize,
    ended: AtomicBool,
}

impl Traffic {
    /// Creates pods in `namespace` while `act` runs, and panics if one of them was not injected.
    pub fn during(cluster: &Cluster, namespace: &str, act: impl FnOnce(&Self)) {
        let traffic = Self::default();
        thread::scope(|scope| {
            let send = |sender| {
                let traffic = &traffic;
                scope.spawn(move || traffic.run(cluster, namespace, sender))
            };
            let senders: Vec<_> = (0..SENDERS).map(send).collect();
            // Ends the traffic also when a step fails, or the scope would wait for ever.
            let end = EndOnDrop(&traffic);
            traffic.goes_on();
            act(&traffic);
            drop(end);
            let failed: Vec<_> =
                senders.into_iter().flat_map(|sender| sender.join().expect("no panic")).collect();
            let created = traffic.created.load(SeqCst);
            assert!(failed.is_empty(), "of {created} pods not injected: {failed:?}");
            note(&format!("{created} pods were created meanwhile, all of them injected"));
        });
    }

    /// Waits until some more pods were created from beginning to end.
    pub fn goes_on(&self) {
        let before = self.created.load(SeqCst);
        until("more pods are created", LIMIT, || {
            (self.created.load(SeqCst) > before + 10 * SENDERS).then_some(())
        });
    }

    /// Gives those that were not injected.
    fn run(&self, cluster: &Cluster, namespace: &str, sender: usize) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut failed = Vec::new();
        runtime.block_on(async {
            let pods = pods(&cluster.plane, namespace).await;
            for number in 0.. {
                if self.ended.load(SeqCst) {
                    break;
                }
                let name = format!("pod-{sender}-{number}");
                let pod = serde_json::from_value(java(&name)).expect("a pod");
                let pod = pods.create(&PostParams::default(), &pod).await.expect("a pod is never refused");
                let pod = Created::found(serde_json::to_value(pod).expect("JSON"));
                if !pod.is_injected() {
                    failed.push(format!("{name} ({})", pod.status()));
                }
                self.created.fetch_add(1, SeqCst);
            }
        });
        failed
    }
}

async fn pods(plane: &ControlPlane, namespace: &str) -> Api<DynamicObject> {
    // Where the first to ask installs one, it would be another than the product's.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = Kubeconfig::read_from(plane.kubeconfig()).expect("the administrator's kubeconfig");
    let config =
        Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.expect("a cluster");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    Api::namespaced_with(Client::try_from(config).expect("a client"), namespace, &resource)
}

struct EndOnDrop<'t>(&'t Traffic);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, SeqCst);
    }
}
