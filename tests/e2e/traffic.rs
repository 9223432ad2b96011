//! Pods that are created without a pause while something else happens.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, core::ApiResource};
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::LIMIT;

/// The lines of the API server's log after the first `before` that contain all of these.
pub fn complaints(plane: &ControlPlane, before: usize, parts: &[&str]) -> Vec<String> {
    let has_all = |line: &String| parts.iter().all(|part| line.contains(part));
    plane.api_server_log().into_iter().skip(before).filter(has_all).collect()
}

/// Pods, created one after the other and deleted again.
pub struct Traffic<'t> {
    plane: &'t ControlPlane,
    namespace: &'t str,
    pod: &'t (dyn Fn(usize) -> Value + Sync),
    created: AtomicUsize,
    ended: AtomicBool,
}

impl<'t> Traffic<'t> {
    /// Pods in `namespace`; `pod` makes each by its number.
    pub fn new(
        plane: &'t ControlPlane,
        namespace: &'t str,
        pod: &'t (dyn Fn(usize) -> Value + Sync),
    ) -> Self {
        Self { plane, namespace, pod, created: AtomicUsize::new(0), ended: AtomicBool::new(false) }
    }

    /// Creates pods while `meanwhile` runs, and a few more before and after it. Each has to be injected.
    /// Gives how many they were.
    pub fn during(&self, meanwhile: impl FnOnce()) -> usize {
        let before = self.plane.api_server_log().len();
        thread::scope(|scope| {
            let running = scope.spawn(|| self.run());
            // Ends the traffic also when a step fails, or the scope would wait for ever.
            let end = EndOnDrop(self);
            self.goes_on();
            meanwhile();
            self.goes_on();
            drop(end);
            let failed = running.join().expect("no panic");
            let created = self.created.load(SeqCst);
            assert!(
                failed.is_empty(),
                "of {created} pods {} were not injected: {failed:?}; the API server said {:#?}",
                failed.len(),
                complaints(self.plane, before, &["webhook"])
            );
            created
        })
    }

    /// Waits until a few more pods were created from beginning to end.
    pub fn goes_on(&self) {
        let before = self.created.load(SeqCst);
        until("more pods are created", LIMIT, || {
            let has_ended = self.ended.load(SeqCst);
            (has_ended || self.created.load(SeqCst) > before + 3).then_some(())
        });
    }

    /// Gives those that were not injected.
    fn run(&self) -> Vec<String> {
        let _end = EndOnDrop(self);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let pods = self.pods().await;
            let mut failed = Vec::new();
            while !self.ended.load(SeqCst) {
                let number = self.created.load(SeqCst);
                let pod: DynamicObject = serde_json::from_value((self.pod)(number)).expect("a pod");
                match pods.create(&PostParams::default(), &pod).await {
                    Ok(pod) => {
                        let created = Created::found(json!(pod));
                        if !created.is_injected() {
                            failed.push(format!("{}: {}", created.name(), created.status()));
                        }
                        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                        let _ = pods.delete(created.name(), &now).await;
                    }
                    Err(error) => failed.push(error.to_string()),
                }
                self.created.fetch_add(1, SeqCst);
            }
            failed
        })
    }

    /// As the administrator, without kubectl: it takes longer to start than a pod to be created.
    async fn pods(&self) -> Api<DynamicObject> {
        let kubeconfig = Kubeconfig::read_from(self.plane.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        Api::namespaced_with(client, self.namespace, &kind)
    }
}

struct EndOnDrop<'t>(&'t Traffic<'t>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, SeqCst);
    }
}
