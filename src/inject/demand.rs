//! What a pod asks for, and its class of service, as Kubernetes reckons them.
//!
//! The effective request of a pod for a resource is the larger of what runs
//! together (containers and native sidecars) and of each init container with
//! the native sidecars that started before it. What `spec.resources` sets for
//! the pod as a whole counts instead.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::pod::Pod;
use crate::api::quantity::Quantity;

/// Kubernetes' classes of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every container's requests equal its limits, for CPU and memory.
    Guaranteed,
    /// Something is asked for.
    Burstable,
    /// Nothing is asked for.
    BestEffort,
}

/// Quantities by the name of their resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The resources that decide about the class.
pub const CLASS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// What a pod asks for.
#[derive(Debug)]
pub struct Demand {
    /// The class of service.
    pub class: Class,
    /// Limits of the pod as a whole.
    pub limits: Amounts,
    effective: Amounts,
    whole: Amounts,
    running: Amounts,
    sidecars: Vec<(usize, Amounts)>,
}

/// Requests and limits of one container, requests filled in from the limits.
#[derive(Debug, Default)]
struct Container {
    requests: Amounts,
    limits: Amounts,
}

impl Demand {
    /// Reads a pod as it came.
    pub fn of(pod: &Pod<'_>) -> Self {
        let read = |one: &super::pod::Container<'_>| Container::read(one.resources);
        let regular: Vec<Container> = pod.spec.containers.iter().map(read).collect();
        let init: Vec<Container> = pod.spec.init_containers.iter().map(read).collect();
        let whole = Container::read(pod.spec.resources);
        let is_set = !whole.requests.is_empty() || !whole.limits.is_empty();
        let class = if is_set { class(std::iter::once(&whole)) } else { class(regular.iter().chain(&init)) };
        let (mut effective, mut started, mut sidecars) = (Amounts::new(), Amounts::new(), Vec::new());
        for (index, own) in init.into_iter().enumerate() {
            raise(&mut effective, &sum(&started, &own.requests));
            if pod.spec.init_containers[index].is_sidecar() {
                started = sum(&started, &own.requests);
                sidecars.push((index, own.requests));
            }
        }
        let running = regular.iter().fold(started, |running, own| sum(&running, &own.requests));
        raise(&mut effective, &running);
        effective.extend(whole.requests.clone());
        Self { class, limits: whole.limits, effective, whole: whole.requests, running, sidecars }
    }

    /// What the pod asks for of a resource.
    pub fn effective(&self, resource: &str) -> Quantity {
        get(&self.effective, resource)
    }

    /// What the pod as a whole is set to ask for.
    pub fn whole(&self, resource: &str) -> Option<Quantity> {
        self.whole.get(resource).copied()
    }

    /// What regular containers and native sidecars ask for together.
    pub fn running(&self, resource: &str) -> Quantity {
        get(&self.running, resource)
    }

    /// What the native sidecars before a place among the init containers ask for.
    pub fn started(&self, resource: &str, place: usize) -> Quantity {
        let before = self.sidecars.iter().filter(|(index, _)| *index < place);
        before.fold(Quantity::ZERO, |sum, (_, requests)| sum.plus(get(requests, resource)))
    }
}

/// The amount of a resource in a map of quantities as they are written.
pub fn amount(quantities: &Map<String, Value>, resource: &str) -> Option<Quantity> {
    quantities.get(resource).and_then(Quantity::of)
}

impl Container {
    fn read(raw: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Requirements {
            requests: Option<Map<String, Value>>,
            limits: Option<Map<String, Value>>,
        }
        let said: Requirements = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let amounts = |map: Option<Map<String, Value>>| -> Amounts {
            let entries = map.into_iter().flatten();
            entries.filter_map(|(name, value)| Some((name, Quantity::of(&value)?))).collect()
        };
        let limits = amounts(said.limits);
        let mut requests = limits.clone();
        requests.extend(amounts(said.requests));
        Self { requests, limits }
    }
}

/// The class, as `ComputePodQOS` of Kubernetes has it: by CPU and memory, zeros left out.
fn class<'c>(containers: impl Iterator<Item = &'c Container>) -> Class {
    let (mut requests, mut limits, mut limited) = (Amounts::new(), Amounts::new(), true);
    let decisive = |amounts: &Amounts| -> Amounts {
        let kept = amounts
            .iter()
            .filter(|(name, amount)| CLASS_RESOURCES.contains(&name.as_str()) && !amount.is_zero());
        kept.map(|(name, amount)| (name.clone(), *amount)).collect()
    };
    for container in containers {
        let own = decisive(&container.limits);
        limited &= own.len() == CLASS_RESOURCES.len();
        limits = sum(&limits, &own);
        requests = sum(&requests, &decisive(&container.requests));
    }
    if requests.is_empty() && limits.is_empty() {
        Class::BestEffort
    } else if limited && requests == limits {
        Class::Guaranteed
    } else {
        Class::Burstable
    }
}

fn get(amounts: &Amounts, resource: &str) -> Quantity {
    amounts.get(resource).copied().unwrap_or_default()
}

fn sum(one: &Amounts, other: &Amounts) -> Amounts {
    let mut sum = one.clone();
    for (name, amount) in other {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.plus(*amount);
    }
    sum
}

fn raise(peak: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        let entry = peak.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}
