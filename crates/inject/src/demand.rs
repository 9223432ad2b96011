//! What a pod asks for, and its class of service, as Kubernetes counts them.
//!
//! The effective requests of a pod are, resource by resource, the larger of
//! what runs together (containers and native sidecars) and of each init
//! container with the native sidecars that started before it. Limits count in
//! the same way. What `spec.resources` sets for the pod as a whole counts
//! instead. Containers count as LimitRanger leaves them.

mod amounts;
mod asked;
mod class;
mod scopes;

pub use amounts::{Amounts, CLASS_RESOURCES};
pub use asked::Asked;
pub use class::Class;

use serde_json::value::RawValue;

use super::{
    limits::{Limits, PodScopes},
    pod::{self, Pod},
};
use otel_webhook_api::quantity::Quantity;

/// What a pod asks for.
#[derive(Debug)]
pub struct Demand<'p> {
    /// The class of service.
    pub class: Class,
    /// What is set for the pod as a whole.
    pub whole: Asked<'p>,
    /// What the containers ask for together, without what is set for the pod as a whole.
    pub together: Asked<'p>,
    /// What regular containers and native sidecars ask for together.
    pub running: Asked<'p>,
    /// What each step of the init containers asks for at most.
    pub starting: Asked<'p>,
    /// What running the pod costs beside its containers.
    pub overhead: Amounts<'p>,
    scopes: PodScopes<'p>,
    /// Whether the pod as a whole decides about the class of service.
    is_whole: bool,
    from_limits: Vec<&'static str>,
    regular: Vec<Asked<'p>>,
    /// Init containers, and whether they are native sidecars.
    init: Vec<(Asked<'p>, bool)>,
}

impl<'p> Demand<'p> {
    /// Reads a pod as it came, in a namespace with these limits.
    pub fn of(pod: &'p Pod<'p>, limits: &'p Limits) -> Self {
        let spec = &pod.spec;
        let read = |one: &'p pod::Container<'p>| Asked::of_container(one.resources);
        let mut regular: Vec<Asked<'p>> = spec.containers.iter().map(read).collect();
        let mut init: Vec<_> = spec.init_containers.iter().map(|one| (read(one), one.is_sidecar())).collect();
        let mut whole = Asked::read(spec.resources);
        // In the order of the API server: its own defaults, then those of LimitRanges.
        let from_limits = whole.default_whole(&Steps::of(&regular, &init).together());
        let all = regular.iter_mut().chain(init.iter_mut().map(|(own, _)| own));
        all.for_each(|own| own.default_by(limits));
        let is_whole = spec.resources.is_some();
        let containers = || regular.iter().chain(init.iter().map(|(own, _)| own));
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
            from_limits,
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

    /// What the native sidecars before a place among the init containers ask for.
    pub fn started(&self, place: usize) -> Asked<'p> {
        let mut started = Asked::default();
        let before = self.init.iter().take(place).filter(|(_, is_sidecar)| *is_sidecar);
        before.for_each(|(own, _)| started.add(own));
        started
    }

    /// What the pod requests of a resource, if it names it.
    pub fn request(&self, resource: &str) -> Option<Quantity> {
        of_whole(&self.whole.requests, resource).or_else(|| self.together.requests.get(resource))
    }

    /// The pod's limit of a resource, if it has one.
    pub fn limit(&self, resource: &str) -> Option<Quantity> {
        of_whole(&self.whole.limits, resource).or_else(|| self.together.limits.get(resource))
    }

    /// Whether containers have to leave a resource to what is set for the pod as
    /// a whole. Its request is still to be defaulted to its limit, as in a file,
    /// which a single container's request would keep the API server from.
    pub fn is_left_to_whole(&self, resource: &str) -> bool {
        self.from_limits.contains(&resource)
    }

    /// Whether every container of the pod has to have requests that equal its limits.
    pub fn is_guaranteed_by_containers(&self) -> bool {
        self.class == Class::Guaranteed && !self.is_whole
    }

    /// Whether quotas ask nothing of single containers: the pod as a whole has resources.
    pub fn has_whole(&self) -> bool {
        !self.whole.requests.is_empty() || !self.whole.limits.is_empty()
    }

    /// The class with a container more.
    pub fn class_with(&self, added: &Asked<'p>) -> Class {
        if self.is_whole { self.class } else { Class::of(self.containers().chain([added])) }
    }

    /// What quotas go by, if the pod were of a class.
    pub fn scopes(&self, class: Class) -> PodScopes<'p> {
        PodScopes { is_best_effort: class == Class::BestEffort, ..self.scopes }
    }
}

/// What the pod as a whole sets instead of its containers: CPU and memory alone.
pub fn of_whole(whole: &Amounts<'_>, resource: &str) -> Option<Quantity> {
    whole.get(resource).filter(|_| CLASS_RESOURCES.contains(&resource))
}

/// What the containers ask for while they start, and then together.
struct Steps<'p> {
    starting: Asked<'p>,
    running: Asked<'p>,
}

impl<'p> Steps<'p> {
    fn of(regular: &[Asked<'p>], init: &[(Asked<'p>, bool)]) -> Self {
        let (mut starting, mut running) = (Asked::default(), Asked::default());
        for (own, is_sidecar) in init {
            starting.raise_to(&running.plus(own));
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

/// The limits of a container. What cannot be read is none.
pub fn limits_of(resources: &RawValue) -> Amounts<'_> {
    Asked::of_container(Some(resources)).limits
}
