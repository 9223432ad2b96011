//! Pods, created while everything moves: each is to be injected once, by one of the two.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::world::{NAMESPACES, dry_run};
use crate::cluster::LIMIT;
use otel_webhook_testkit::{
    cluster::{
        control_plane::ControlPlane,
        created::{Created, name},
    },
    objects::items,
    until::until,
};

/// How many pods one kubectl creates: that it starts takes longer than all of them.
const AT_ONCE: usize = 20;

/// Who injected a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Operator,
    Us,
}

/// Who injected a pod, if it was injected, as a whole and once.
pub fn by(pod: &Created) -> Option<By> {
    let options = pod.variable("app", "JAVA_TOOL_OPTIONS").matches("-javaagent:").count();
    let names = items(&pod.container("app")["env"]).filter(|one| name(one) == "OTEL_SERVICE_NAME").count();
    let is_once = pod.is_injected() && options == 1 && names == 1;
    let stamped = if pod.status().is_empty() { By::Operator } else { By::Us };
    is_once.then_some(stamped)
}

pub struct Traffic<'p> {
    plane: &'p ControlPlane,
    created: AtomicUsize,
    ended: AtomicBool,
}

impl<'p> Traffic<'p> {
    pub fn new(plane: &'p ControlPlane) -> Self {
        Self { plane, created: AtomicUsize::default(), ended: AtomicBool::default() }
    }

    /// Creates pods in each namespace until it is told to end. Gives those that
    /// were left without, or injected twice.
    pub fn run(&self) -> Vec<String> {
        let mut strays = Vec::new();
        while !self.ended.load(SeqCst) {
            for namespace in NAMESPACES {
                for pod in dry_run(self.plane, namespace, AT_ONCE) {
                    if by(&pod).is_none() {
                        strays.push(format!("{namespace}: {}", pod.pod["spec"]));
                    }
                    self.created.fetch_add(1, SeqCst);
                }
            }
        }
        strays
    }

    pub fn count(&self) -> usize {
        self.created.load(SeqCst)
    }

    /// Waits until more pods were created in each namespace from beginning to end.
    pub fn goes_on(&self) {
        let before = self.count();
        let rounds = 2 * AT_ONCE * NAMESPACES.len();
        until("more pods are created", LIMIT, || (self.count() > before + rounds).then_some(()));
    }

    /// Ends the traffic also when a step fails, or its thread would go on for ever.
    pub fn ends_on_drop(&self) -> EndOnDrop<'_> {
        EndOnDrop(&self.ended)
    }
}

pub struct EndOnDrop<'t>(&'t AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
