//! The resources of added containers, fitted to the pod and its namespace (D23, D32).
//!
//! Init containers change neither the pod's effective requests and limits, of
//! any resource, nor its quality of service class. LimitRanges of type `Pod` and quotas
//! check those, so they accept the pod as without injection. LimitRanges of type
//! `Container` accept the resources of a regular
//! container of the pod: they are used if nothing nearer to the
//! Instrumentation is accepted, so an init container always fits.
//!
//! Go's sidecar runs next to the other containers, adds to the resources of the pod, and may
//! be rejected. As the last of the init containers (D42) it adds the same.

mod choice;
mod claims;
mod common;
mod pair;
mod refusal;
mod resources;
mod rules;
mod sidecar;

use std::borrow::Cow;

use choice::Room;
pub use claims::check as check_claims;
pub use common::Fitted;
use common::{accompany_huge_pages, is_whole, of_container, unit};
pub use refusal::Refusal;
use resources::Resources;
use rules::Rules;
use serde_json::Value;
pub use sidecar::sidecar;

use super::{
    demand::{Asked, CLASS_RESOURCES, Demand, of_whole},
    limits::Limits,
    note::{LEAST_MEMORY, Note},
    settings::InitResources,
};
use otel_webhook_api::quantity::Quantity;

/// The position of an init container.
#[derive(Clone, Copy, Debug)]
pub struct Site<'s, 'p> {
    /// The resources of the pod.
    pub demand: &'s Demand<'p>,
    /// The limits of the namespace.
    pub limits: &'p Limits,
    /// The index of the pod's init container that follows it.
    pub place: usize,
}

/// The adjusted resources of an init container; `None` if they need no adjustment.
pub fn init_container(said: &Value, site: Site<'_, '_>, way: InitResources) -> Option<Fitted> {
    let own = Resources::of(said);
    let refusal = match way {
        InitResources::Neutral => None,
        InitResources::Exact => {
            let mut exact = own.clone();
            site.cap(&mut exact);
            match site.check(&exact) {
                Ok(()) => return exact.is_changed().then(|| fitted(&exact, said, Vec::new())),
                Err(refusal) => Some(refusal),
            }
        }
    };
    let result = site.neutral(&own);
    if !result.is_changed() {
        return None;
    }
    let due_to = refusal.map_or_else(|| site.causes(&own, &result), |refusal| vec![refusal.object]);
    let mut fitted = fitted(&result, said, due_to);
    let memory = |resources: &Resources<'_>| resources.limits.get("memory");
    let starved = memory(&result).filter(|memory| *memory < LEAST_MEMORY && memory_is_less(&own, *memory));
    fitted.notes.extend(starved.map(|allowed| Note::MemoryTooLittle { allowed: allowed.to_string() }));
    Some(fitted)
}

fn memory_is_less(own: &Resources<'_>, memory: Quantity) -> bool {
    own.limits.get("memory").is_none_or(|said| memory < said)
}

fn fitted(result: &Resources<'_>, said: &Value, due_to: Vec<String>) -> Fitted {
    let note = Note::ResourcesLowered {
        requests: result.requests.to_string(),
        limits: result.limits.to_string(),
        due_to,
    };
    Fitted { resources: result.put_into(said), notes: vec![note] }
}

impl<'p> Site<'_, 'p> {
    fn rules(&self) -> Rules<'_, 'p> {
        Rules { limits: self.limits, demand: self.demand }
    }

    /// The resources that do not change those of the pod, and that LimitRanges accept.
    fn neutral<'s>(&self, own: &Resources<'s>) -> Resources<'s> {
        let (class, started) = (self.demand.class, self.demand.started(self.place));
        let mut names = own.names();
        names.extend(self.rules().resources(class).map(|name| Cow::Owned(name.to_owned())));
        if self.demand.is_guaranteed_by_containers() {
            names.extend(CLASS_RESOURCES.map(Cow::Borrowed));
        }
        names.sort();
        names.dedup();
        let mut result = own.clone();
        for name in names {
            let wish = own.pair(&name);
            let pair = match self.room(&name, &started) {
                _ if self.demand.is_left_to_whole(&name) => (None, None),
                room if is_whole(&name) => room.nearest_whole(wish),
                room => room.nearest(wish, unit(&name)),
            };
            result.set(name, pair);
        }
        accompany_huge_pages(&mut result, self.demand);
        result
    }

    fn room(&self, name: &str, started: &Asked<'p>) -> Room {
        let demand = self.demand;
        let left = |most: Option<Quantity>, started: Option<Quantity>| {
            most.map(|most| most.less(started.unwrap_or_default()))
        };
        // If the whole pod has a limit, those of its containers are not added up.
        let whole = of_whole(&demand.whole.limits, name);
        let decides = CLASS_RESOURCES.contains(&name);
        Room {
            bounds: self.rules().bounds(name, demand.class),
            request: left(demand.request(name), started.requests.get(name)),
            limit: whole.or_else(|| left(demand.limit(name), started.limits.get(name))),
            of_container: of_container(demand, name),
            as_one: is_whole(name) || decides && demand.is_guaranteed_by_containers(),
            is_open: whole.is_none() && demand.regular().iter().any(|own| own.limits.get(name).is_none()),
        }
    }

    /// Lowers them to the limits and requests of the whole pod, above
    /// which the API server would reject the pod.
    fn cap(&self, own: &mut Resources<'_>) {
        let (whole, started) = (&self.demand.whole, self.demand.started(self.place));
        for name in own.names() {
            let (request, limit) = own.pair(&name);
            let least = |own: Option<Quantity>, most: Option<Quantity>| {
                own.map(|own| most.map_or(own, |most| own.min(most)))
            };
            let started = started.requests.get(&name).unwrap_or_default();
            let limit = least(limit, whole.limits.get(&name));
            let request = least(request, whole.requests.get(&name).map(|most| most.less(started)));
            own.set(name, (least(request, limit), limit));
        }
    }

    /// Whether the namespace accepts the pod with such an init container.
    fn check(&self, own: &Resources<'_>) -> Result<(), Refusal> {
        self.rules().check_all(own.asked(), |added| {
            let mut together = self.demand.together.clone();
            together.raise_to(&self.demand.started(self.place).plus(added));
            together
        })
    }

    /// The objects that caused the adjustment.
    fn causes(&self, own: &Resources<'_>, result: &Resources<'_>) -> Vec<String> {
        if self.limits.is_empty() {
            return Vec::new();
        }
        let unbounded = Limits::default();
        let free = Site { limits: &unbounded, ..*self }.neutral(own);
        let mut names = [free.names(), result.names()].concat();
        names.sort();
        names.dedup();
        let differing = names.iter().filter(|name| free.pair(name) != result.pair(name));
        let mut causes: Vec<_> = differing.flat_map(|name| self.rules().objects(name)).collect();
        causes.sort();
        causes.dedup();
        causes
    }
}

#[cfg(test)]
mod tests;
