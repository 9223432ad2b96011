//! The effective requests and limits of a pod, and its quality of service class.
//!
//! The effective request of a pod for a resource is the maximum of
//! the sum of containers and native sidecars, and of each init
//! container with the native sidecars that started before it. Limits are computed in
//! the same way. The resources that `spec.resources` sets for the whole pod are used
//! instead. Containers have the defaults of LimitRanger.

mod amounts;
mod asked;
mod class;
mod scopes;

pub use amounts::{Amounts, CLASS_RESOURCES};
pub use asked::Asked;
pub use class::Class;

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{
    limits::{Limits, PodScopes},
    pod::{self, Pod},
    text::Text,
};
use otel_webhook_api::quantity::Quantity;

/// The effective resources of a pod.
#[derive(Debug)]
pub struct Demand<'p> {
    /// The quality of service class.
    pub class: Class,
    /// The resources of the whole pod (`spec.resources`).
    pub whole: Asked<'p>,
    /// The effective resources of the containers, without those of the whole pod.
    pub together: Asked<'p>,
    /// The sum of regular containers and native sidecars.
    pub running: Asked<'p>,
    /// The maximum over the init containers, each with the native sidecars before it.
    pub starting: Asked<'p>,
    /// The overhead of the pod.
    pub overhead: Amounts<'p>,
    scopes: PodScopes<'p>,
    /// Whether `spec.resources` decides on the quality of service class.
    is_whole: bool,
    left_to_whole: HashSet<Text<'p>>,
    regular: Vec<Asked<'p>>,
    /// Init containers, and whether they are native sidecars.
    init: Vec<(Asked<'p>, bool)>,
}

impl<'p> Demand<'p> {
    /// Computes the resources of the original pod, in a namespace with these limits.
    pub fn of(pod: &'p Pod<'p>, limits: &'p Limits) -> Self {
        let spec = &pod.spec;
        let read = |one: &'p pod::Container<'p>| Asked::of_container(one.resources);
        let mut regular: Vec<Asked<'p>> = spec.containers.iter().map(read).collect();
        let mut init: Vec<_> = spec.init_containers.iter().map(|one| (read(one), one.is_sidecar())).collect();
        let mut whole = Asked::read(spec.resources);
        // In the order of the API server: its defaults, then those of LimitRanges.
        let mut left_to_whole = HashSet::new();
        if spec.resources.is_some() {
            let from_limits = whole.default_whole(&Steps::of(&regular, &init).together());
            left_to_whole.extend(from_limits.into_iter().map(|name| Text(name.into())));
        }
        let all = regular.iter_mut().chain(init.iter_mut().map(|(own, _)| own));
        all.for_each(|own| own.default_by(limits));
        let containers = || regular.iter().chain(init.iter().map(|(own, _)| own));
        if has_any(&whole) {
            let huge = containers().flat_map(|own| own.limits.iter().map(|(name, _)| name));
            let huge = huge.filter(|name| name.starts_with("hugepages-") && whole.pair(name) == (None, None));
            left_to_whole.extend(huge.cloned());
        }
        let is_whole = spec.resources.is_some();
        let class = if is_whole { Class::of([&whole]) } else { Class::of(containers()) };
        let steps = Steps::of(&regular, &init);
        Self {
            class,
            together: steps.together(),
            whole,
            running: steps.running,
            starting: steps.starting,
            overhead: Amounts::read(spec.overhead),
            scopes: scopes::of(pod),
            is_whole,
            left_to_whole,
            regular,
            init,
        }
    }

    /// The requests and limits of every container.
    pub fn containers(&self) -> impl Iterator<Item = &Asked<'p>> {
        self.regular.iter().chain(self.init.iter().map(|(own, _)| own))
    }

    /// The requests and limits of every regular container.
    pub fn regular(&self) -> &[Asked<'p>] {
        &self.regular
    }

    /// The sum of the native sidecars before a position among the init containers.
    pub fn started(&self, place: usize) -> Asked<'p> {
        let mut started = Asked::default();
        let before = self.init.iter().take(place).filter(|(_, is_sidecar)| *is_sidecar);
        before.for_each(|(own, _)| started.add(own));
        started
    }

    /// The pod's request for a resource, if it has one.
    pub fn request(&self, resource: &str) -> Option<Quantity> {
        of_whole(&self.whole.requests, resource).or_else(|| self.together.requests.get(resource))
    }

    /// The pod's limit for a resource, if it has one.
    pub fn limit(&self, resource: &str) -> Option<Quantity> {
        of_whole(&self.whole.limits, resource).or_else(|| self.together.limits.get(resource))
    }

    /// Whether an added container must not set a resource because of `spec.resources`: there is its limit
    /// only, and the API server defaults the request to it unless a container has a request; or it
    /// is huge pages that only a LimitRange sets, and the API server would limit the whole pod
    /// to what the added container sets. Both concern pods from files.
    pub fn is_left_to_whole(&self, resource: &str) -> bool {
        self.left_to_whole.contains(resource)
    }

    /// Whether the requests of every container of the pod have to equal its limits.
    pub fn is_guaranteed_by_containers(&self) -> bool {
        self.class == Class::Guaranteed && !self.is_whole
    }

    /// Whether quotas require nothing of containers because the whole pod has resources.
    pub fn has_whole(&self) -> bool {
        has_any(&self.whole)
    }

    /// The class with one more container.
    pub fn class_with(&self, added: &Asked<'p>) -> Class {
        if self.is_whole { self.class } else { Class::of(self.containers().chain([added])) }
    }

    /// The attributes of the pod that the scopes of quotas check, if it had a class.
    pub fn scopes(&self, class: Class) -> PodScopes<'p> {
        PodScopes { is_best_effort: class == Class::BestEffort, ..self.scopes }
    }
}

fn has_any(whole: &Asked<'_>) -> bool {
    !whole.requests.is_empty() || !whole.limits.is_empty()
}

/// The resources that `spec.resources` sets instead of the containers: CPU and memory only.
pub fn of_whole(whole: &Amounts<'_>, resource: &str) -> Option<Quantity> {
    whole.get(resource).filter(|_| CLASS_RESOURCES.contains(&resource))
}

/// The resources of the init containers, and then of all containers together.
struct Steps<'p> {
    starting: Asked<'p>,
    running: Asked<'p>,
}

impl<'p> Steps<'p> {
    fn of(regular: &[Asked<'p>], init: &[(Asked<'p>, bool)]) -> Self {
        let (mut starting, mut running) = (Asked::default(), Asked::default());
        for (own, is_sidecar) in init {
            starting.raise_to_sum(own, &running);
            if *is_sidecar {
                running.add(own);
            }
        }
        for own in regular {
            running.add(own);
        }
        Self { starting, running }
    }

    fn together(&self) -> Asked<'p> {
        let mut together = self.running.clone();
        together.raise_to(&self.starting);
        together
    }
}

/// The limits of a container. Unreadable limits are treated as not set.
pub fn limits_of(resources: &RawValue) -> Amounts<'_> {
    Asked::of_container(Some(resources)).limits
}
