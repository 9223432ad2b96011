//! Pods that are created without a pause while something else happens.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
};

use kube::api::DeleteParams;
use serde_json::Value;

use super::{
    client::{Objects, block_on},
    control_plane::ControlPlane,
    created::Created,
};
use crate::until::until;

/// Pods, created one after the other by each sender, and deleted again.
pub struct Traffic<'t> {
    plane: &'t ControlPlane,
    pod: &'t (dyn Fn(usize) -> Value + Sync),
    is_right: fn(&Created) -> bool,
    senders: usize,
    /// Whether pods are not stored.
    dry_run: bool,
    begun: AtomicUsize,
    created: AtomicUsize,
    ended: AtomicBool,
}

impl<'t> Traffic<'t> {
    /// `pod` makes each pod by its number; `is_right` says whether it came back as it has to.
    pub fn new(
        plane: &'t ControlPlane,
        senders: usize,
        pod: &'t (dyn Fn(usize) -> Value + Sync),
        is_right: fn(&Created) -> bool,
    ) -> Self {
        let (begun, created) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { plane, pod, is_right, senders, dry_run: false, begun, created, ended: AtomicBool::new(false) }
    }

    /// The same by dry runs: nothing else in the cluster sees the pods.
    #[must_use]
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    /// Creates pods while `meanwhile` runs, and a few more before and after it. Returns how many they were.
    ///
    /// # Panics
    /// If one is not right.
    pub fn during(&self, meanwhile: impl FnOnce()) -> usize {
        let before = self.plane.api_server_log().len();
        thread::scope(|scope| {
            let running: Vec<_> = (0..self.senders).map(|_| scope.spawn(|| self.run())).collect();
            // Ends the traffic also when a step fails, or the scope would wait forever.
            let end = EndOnDrop(self);
            self.goes_on();
            meanwhile();
            self.goes_on();
            drop(end);
            let wrong: Vec<_> = running.into_iter().flat_map(|one| one.join().expect("no panic")).collect();
            let created = self.created.load(SeqCst);
            assert!(
                wrong.is_empty(),
                "of {created} pods {} are wrong: {wrong:?}; the API server logged {:#?}",
                wrong.len(),
                self.plane.logged_since(before, &["webhook"])
            );
            created
        })
    }

    /// Waits until a few more pods were created from beginning to end.
    pub fn goes_on(&self) {
        let before = self.created.load(SeqCst);
        until("more pods are created", || {
            let has_ended = self.ended.load(SeqCst);
            (has_ended || self.created.load(SeqCst) > before + 4 * self.senders).then_some(())
        });
    }

    /// Returns those that are wrong.
    fn run(&self) -> Vec<String> {
        let _end = EndOnDrop(self);
        block_on(async {
            // Without kubectl: it takes longer to start than a pod to be created.
            let objects = Objects::connect(self.plane.kubeconfig()).await;
            let mut wrong = Vec::new();
            while !self.ended.load(SeqCst) {
                let pod = (self.pod)(self.begun.fetch_add(1, SeqCst));
                let created =
                    if self.dry_run { objects.dry_run(&pod).await } else { objects.create(&pod).await };
                match created {
                    Ok(created) => {
                        let created = Created::found(created);
                        if !(self.is_right)(&created) {
                            wrong.push(format!("{}: {}", created.name(), created.status()));
                        }
                        if !self.dry_run {
                            let now = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
                            let _ = objects.api(&pod).delete(created.name(), &now).await;
                        }
                    }
                    Err(message) => wrong.push(message),
                }
                self.created.fetch_add(1, SeqCst);
            }
            wrong
        })
    }
}

struct EndOnDrop<'t>(&'t Traffic<'t>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, SeqCst);
    }
}
