//! What a pod asks for, and its class of service, as Kubernetes reckons them.
//!
//! The effective request of a pod for a resource is the larger of what runs
//! together (containers and native sidecars) and of each init container with
//! the native sidecars that started before it. What `spec.resources` sets for
//! the pod as a whole counts instead.

mod amounts;

use serde::Deserialize;

pub use amounts::Amounts;

use super::{
    pod::{self, Pod},
    text::{self, RawJson},
};
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

/// The resources that decide about the class.
pub const CLASS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// What a pod asks for.
#[derive(Debug)]
pub struct Demand<'p> {
    /// The class of service.
    pub class: Class,
    /// Limits of the pod as a whole.
    pub limits: Amounts<'p>,
    effective: Amounts<'p>,
    whole: Amounts<'p>,
    running: Amounts<'p>,
    sidecars: Vec<(usize, Amounts<'p>)>,
}

/// Requests and limits of one container, requests filled in from the limits.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container<'p> {
    #[serde(borrow)]
    requests: Amounts<'p>,
    limits: Amounts<'p>,
}

impl<'p> Demand<'p> {
    /// Reads a pod as it came.
    pub fn of(pod: &Pod<'p>) -> Self {
        let read = |one: &pod::Container<'p>| Container::read(one.resources);
        let regular: Vec<Container<'p>> = pod.spec.containers.iter().map(read).collect();
        let init: Vec<Container<'p>> = pod.spec.init_containers.iter().map(read).collect();
        let whole = Container::read(pod.spec.resources);
        let is_set = !whole.requests.is_empty() || !whole.limits.is_empty();
        let class = if is_set { class(std::iter::once(&whole)) } else { class(regular.iter().chain(&init)) };
        let (mut effective, mut started, mut sidecars) = (Amounts::default(), Amounts::default(), Vec::new());
        for (index, own) in init.into_iter().enumerate() {
            effective.raise_to(&started.plus(&own.requests));
            if pod.spec.init_containers[index].is_sidecar() {
                started.add(&own.requests);
                sidecars.push((index, own.requests));
            }
        }
        let mut running = started;
        for own in &regular {
            running.add(&own.requests);
        }
        effective.raise_to(&running);
        for (name, quantity) in whole.requests.iter() {
            effective.set(name, quantity);
        }
        Self { class, limits: whole.limits, effective, whole: whole.requests, running, sidecars }
    }

    /// What the pod asks for of a resource.
    pub fn effective(&self, resource: &str) -> Quantity {
        self.effective.get(resource).unwrap_or_default()
    }

    /// What the pod as a whole is set to ask for.
    pub fn whole(&self, resource: &str) -> Option<Quantity> {
        self.whole.get(resource)
    }

    /// What regular containers and native sidecars ask for together.
    pub fn running(&self, resource: &str) -> Quantity {
        self.running.get(resource).unwrap_or_default()
    }

    /// What the native sidecars before a place among the init containers ask for.
    pub fn started(&self, resource: &str, place: usize) -> Quantity {
        let before = self.sidecars.iter().filter(|(index, _)| *index < place);
        before.fold(Quantity::ZERO, |sum, (_, requests)| sum.plus(requests.get(resource).unwrap_or_default()))
    }
}

impl<'p> Container<'p> {
    /// What cannot be read asks for nothing: the API server refuses such a pod.
    fn read(raw: Option<RawJson<'p>>) -> Self {
        let Self { mut requests, limits } =
            raw.and_then(|raw| text::from_str(raw.get()).ok()).unwrap_or_default();
        for (name, limit) in limits.iter() {
            if requests.get(name).is_none() {
                requests.set(name, limit);
            }
        }
        Self { requests, limits }
    }
}

/// The limits of a container. What cannot be read is none.
pub fn limits_of(resources: RawJson<'_>) -> Amounts<'_> {
    Container::read(Some(resources)).limits
}

/// The class, as `ComputePodQOS` of Kubernetes has it: by CPU and memory, zeros left out.
fn class<'c, 'p: 'c>(containers: impl Iterator<Item = &'c Container<'p>>) -> Class {
    let decisive =
        |amounts: &Amounts<'p>| CLASS_RESOURCES.map(|name| amounts.get(name).filter(|own| !own.is_zero()));
    let add = |sum: &mut [Option<Quantity>; 2], own: [Option<Quantity>; 2]| {
        for (sum, own) in sum.iter_mut().zip(own) {
            *sum = own.map(|own| sum.unwrap_or_default().plus(own)).or(*sum);
        }
    };
    let (mut requests, mut limits, mut limited) = ([None; 2], [None; 2], true);
    for container in containers {
        let own = decisive(&container.limits);
        limited &= own.iter().all(Option::is_some);
        add(&mut limits, own);
        add(&mut requests, decisive(&container.requests));
    }
    if requests == [None; 2] && limits == [None; 2] {
        Class::BestEffort
    } else if limited && requests == limits {
        Class::Guaranteed
    } else {
        Class::Burstable
    }
}
