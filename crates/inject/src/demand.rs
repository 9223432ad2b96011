//! Requests and limits: of a container, of a pod, and the quality of service class that follows.
//!
//! The effective request of a pod for a resource is the maximum of
//! the sum of containers and native sidecars, and of each init
//! container with the native sidecars that started before it. Limits are computed in
//! the same way. The resources that `spec.resources` sets for the whole pod are used
//! instead. Containers have the defaults of LimitRanger.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{
    limits::{LimitType, Limits, PodScopes},
    pod::{self, Pod},
    text::Text,
};
use otel_webhook_api::quantity::Quantity;

/// The resources that decide on the quality of service class.
pub const CLASS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Request and limit of one resource.
pub type Pair = (Option<Quantity>, Option<Quantity>);

/// Quantities by the name of their resource. Invalid quantities are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts<'p>(BTreeMap<Text<'p>, Quantity>);

impl<'p> Amounts<'p> {
    /// Parses amounts. Unreadable ones are skipped.
    pub fn read(raw: Option<&'p RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The amounts of a JSON object.
    fn of(map: &'p Value) -> Self {
        let entries = map.as_object().into_iter().flatten();
        let read = |(name, value): (&'p String, _)| Some((Text(Cow::Borrowed(name)), quantity(value)?));
        Self(entries.filter_map(read).collect())
    }

    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        self.0.get(resource).copied()
    }

    /// The resources and their amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, quantity)| (&**name, *quantity))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the amount of a resource, or removes it.
    fn set(&mut self, resource: &str, quantity: Option<Quantity>) {
        match quantity {
            Some(quantity) => self.0.insert(Text(resource.to_owned().into()), quantity),
            None => self.0.remove(resource),
        };
    }

    /// Sets the amounts of resources that have none.
    fn set_defaults(&mut self, others: impl IntoIterator<Item = (Text<'p>, Quantity)>) {
        for (name, quantity) in others {
            self.0.entry(name).or_insert(quantity);
        }
    }

    /// Adds amounts.
    fn add(&mut self, other: &Self) {
        self.merge(other, Quantity::plus);
    }

    /// Raises each amount to at least the other's.
    fn raise_to(&mut self, other: &Self) {
        self.merge(other, Quantity::max);
    }

    fn raise_to_sum(&mut self, one: &Self, other: &Self) {
        let sum = |(name, own): (&Text<'p>, &Quantity)| {
            (name.clone(), own.plus(other.get(name).unwrap_or_default()))
        };
        self.raise_to(&Self(one.0.iter().map(sum).collect()));
    }

    fn merge(&mut self, other: &Self, both: impl Fn(Quantity, Quantity) -> Quantity) {
        for (name, quantity) in &other.0 {
            match self.0.entry(name.clone()) {
                Entry::Vacant(free) => {
                    free.insert(*quantity);
                }
                Entry::Occupied(mut known) => *known.get_mut() = both(*known.get(), *quantity),
            }
        }
    }

    /// Whether the other has the same resources, each with at least this amount.
    fn is_within(&self, other: &Self) -> bool {
        self.0.keys().eq(other.0.keys())
            && self.0.values().zip(other.0.values()).all(|(own, most)| own <= most)
    }

    /// As JSON. Quantities that `written` has keep their form.
    fn json(&self, written: &Value) -> Value {
        let form = |name: &str, amount: Quantity| {
            let same = written.get(name).filter(|value| quantity(value) == Some(amount));
            same.cloned().unwrap_or_else(|| amount.to_string().into())
        };
        self.iter().map(|(name, amount)| (name.to_owned(), form(name, amount))).collect()
    }
}

impl<'de: 'p, 'p> Deserialize<'de> for Amounts<'p> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The last of a repeated name is used, as by the API server.
        let read: Option<BTreeMap<Text<'p>, &'p RawValue>> = Option::deserialize(deserializer)?;
        let value = |raw: &RawValue| quantity(&serde_json::from_str(raw.get()).ok()?);
        let entries = read.into_iter().flatten().filter_map(|(name, raw)| Some((name, value(raw)?)));
        Ok(Self(entries.collect()))
    }
}

impl fmt::Display for Amounts<'_> {
    /// `cpu 50m, memory 64Mi`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, (name, amount)) in self.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{name} {amount}")?;
        }
        Ok(())
    }
}

/// A quantity, rounded up to the precision of the API server.
fn quantity(value: &Value) -> Option<Quantity> {
    Quantity::of(value).map(|quantity| quantity.rounded_up(Quantity::MILLI))
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Asked<'p> {
    /// The requests.
    #[serde(borrow)]
    pub requests: Amounts<'p>,
    /// The limits.
    pub limits: Amounts<'p>,
}

impl<'p> Asked<'p> {
    /// Parses requests and limits. Unreadable ones are treated
    /// as not set: the API server rejects such a pod.
    fn read(raw: Option<&'p RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Those of a container.
    pub fn of_container(raw: Option<&'p RawValue>) -> Self {
        let mut own = Self::read(raw);
        own.default_requests();
        own
    }

    /// Those of a container with these resources.
    pub fn of(resources: &'p Value) -> Self {
        let mut own =
            Self { requests: Amounts::of(&resources["requests"]), limits: Amounts::of(&resources["limits"]) };
        own.default_requests();
        own
    }

    /// Sets requests that are not set to the limits, as the API server does.
    fn default_requests(&mut self) {
        self.requests.set_defaults(self.limits.0.clone());
    }

    /// Sets the defaults of LimitRanges. Of
    /// several, which have no defined order, the first is used.
    pub fn default_by(&mut self, limits: &'p Limits) {
        let owned = |(name, amount): (&'p str, Quantity)| (Text(name.into()), amount);
        for (_, item) in limits.items(LimitType::Container) {
            self.limits.set_defaults(item.default.iter().map(owned));
            self.requests.set_defaults(item.default_request.iter().map(owned));
        }
    }

    /// Request and limit of a resource.
    pub fn pair(&self, resource: &str) -> Pair {
        (self.requests.get(resource), self.limits.get(resource))
    }

    /// Sets request and limit of a resource.
    pub fn set(&mut self, resource: &str, (request, limit): Pair) {
        self.requests.set(resource, request);
        self.limits.set(resource, limit);
    }

    /// The names of the resources, sorted; those with request and limit are repeated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().chain(self.limits.iter()).map(|(name, _)| name)
    }

    /// The same without the resources that `keep` does not keep.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.requests.0.retain(|name, _| keep(name));
        self.limits.0.retain(|name, _| keep(name));
        self
    }

    /// Whether the other has requests and limits for the same resources, each of at least this amount.
    pub fn is_within(&self, other: &Self) -> bool {
        self.requests.is_within(&other.requests) && self.limits.is_within(&other.limits)
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// Raises everything to at least the other's amounts.
    pub fn raise_to(&mut self, other: &Self) {
        self.requests.raise_to(&other.requests);
        self.limits.raise_to(&other.limits);
    }

    /// Raises the amounts of one to at least the sum of both. Those that only the other has are not
    /// looked at: they were raised when they were added to it.
    fn raise_to_sum(&mut self, one: &Self, other: &Self) {
        self.requests.raise_to_sum(&one.requests, &other.requests);
        self.limits.raise_to_sum(&one.limits, &other.limits);
    }

    fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        self.limits.add(&other.limits);
    }

    /// The resources of a container with these requests and limits. Its other members and equal quantities stay as
    /// they are written.
    pub fn put_into(&self, resources: &Value) -> Value {
        let mut members = resources.as_object().cloned().unwrap_or_default();
        for (key, amounts) in [("limits", &self.limits), ("requests", &self.requests)] {
            if members.contains_key(key) || !amounts.is_empty() {
                members.insert(key.to_owned(), amounts.json(&resources[key]));
            }
        }
        members.into()
    }

    /// Sets the requests of a whole pod that has only limits, as the API server
    /// does: to the sum of its containers' requests, or else to the limit. Their
    /// huge pages are limits of the pod as well.
    fn default_whole(&mut self, together: &Self) {
        if self.is_empty() {
            return;
        }
        let of = |amounts: &Amounts<'p>, is_part: fn(&str) -> bool| {
            let entries = amounts.0.clone().into_iter();
            entries.filter(move |(name, _)| is_part(name))
        };
        let huge = of(&together.limits, |name| name.starts_with("hugepages-"));
        self.limits
            .set_defaults(huge.filter(|(name, _)| self.requests.get(name).is_none()).collect::<Vec<_>>());
        if !self.limits.is_empty() {
            self.requests.set_defaults(of(&together.requests, |name| CLASS_RESOURCES.contains(&name)));
            self.default_requests();
        }
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// The quality of service classes of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every container's requests equal its limits, for CPU and memory.
    Guaranteed,
    /// There is a request or a limit.
    Burstable,
    /// There is no request and no limit.
    BestEffort,
}

impl Class {
    /// Computes the class as `ComputePodQOS` of Kubernetes does: by CPU and memory, without zeros.
    pub fn of<'c, 'p: 'c>(containers: impl IntoIterator<Item = &'c Asked<'p>>) -> Self {
        type Sums = [Option<Quantity>; 2];
        let add = |sums: &mut Sums, own: Sums| {
            for (sum, own) in sums.iter_mut().zip(own) {
                *sum = own.map(|own| sum.unwrap_or_default().plus(own)).or(*sum);
            }
        };
        let (mut requests, mut limits, mut limited) = ([None; 2], [None; 2], true);
        for container in containers {
            let own = CLASS_RESOURCES.map(|name| container.limits.get(name).filter(|own| !own.is_zero()));
            limited &= own.iter().all(Option::is_some);
            add(&mut limits, own);
            let own = CLASS_RESOURCES.map(|name| container.requests.get(name).filter(|own| !own.is_zero()));
            add(&mut requests, own);
        }
        if requests == [None; 2] && limits == [None; 2] {
            Self::BestEffort
        } else if limited && requests == limits {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}

/// The effective resources of a pod.
#[derive(Debug)]
pub struct Demand<'p> {
    /// The quality of service class.
    pub class: Class,
    /// The resources of the whole pod (`spec.resources`).
    pub whole: Asked<'p>,
    /// The sum of regular containers and native sidecars.
    pub running: Asked<'p>,
    /// The maximum over the init containers, each with the native sidecars before it.
    pub starting: Asked<'p>,
    /// The overhead of the pod.
    pub overhead: Amounts<'p>,
    scopes: PodScopes<'p>,
    /// Whether `spec.resources` decides on the quality of service class.
    is_whole: bool,
    /// What an added container must not request: the whole pod has only a limit, to which the API server defaults
    /// the request unless a container has one. Pods from files alone lack it.
    left_to_whole: Vec<&'static str>,
    regular: Vec<Asked<'p>>,
    /// Init containers, and whether they are native sidecars.
    init: Vec<(Asked<'p>, bool)>,
}

impl<'p> Demand<'p> {
    /// Computes the resources of the original pod, in a namespace with these limits.
    pub fn of(pod: &'p Pod<'p>, limits: &'p Limits) -> Self {
        let spec = &pod.spec;
        let read = |one: &'p pod::Container<'p>| Asked::of_container(one.resources);
        let mut demand = Self {
            class: Class::BestEffort,
            whole: Asked::read(spec.resources),
            running: Asked::default(),
            starting: Asked::default(),
            overhead: Amounts::read(spec.overhead),
            scopes: PodScopes::of(pod),
            is_whole: spec.resources.is_some(),
            left_to_whole: Vec::new(),
            regular: spec.containers.iter().map(read).collect(),
            init: spec.init_containers.iter().map(|one| (read(one), one.is_sidecar())).collect(),
        };
        // In the order of the API server: its defaults, then those of LimitRanges.
        demand.add_up();
        let together = demand.together(&Asked::default());
        let is_open = |name: &&str| {
            let (request, limit) = demand.whole.pair(name);
            request.is_none() && limit.is_some() && together.requests.get(name).is_none()
        };
        demand.left_to_whole = CLASS_RESOURCES.into_iter().filter(is_open).collect();
        demand.whole.default_whole(&together);
        let all = demand.regular.iter_mut().chain(demand.init.iter_mut().map(|(own, _)| own));
        all.for_each(|own| own.default_by(limits));
        demand.add_up();
        demand.class = demand.class_with(None);
        demand
    }

    fn add_up(&mut self) {
        let (mut starting, mut running) = (Asked::default(), Asked::default());
        for (own, is_sidecar) in &self.init {
            starting.raise_to_sum(own, &running);
            if *is_sidecar {
                running.add(own);
            }
        }
        self.regular.iter().for_each(|own| running.add(own));
        (self.starting, self.running) = (starting, running);
    }

    /// The requests and limits of every container.
    pub fn containers(&self) -> impl Iterator<Item = &Asked<'p>> {
        self.regular.iter().chain(self.init.iter().map(|(own, _)| own))
    }

    /// The largest request and limit of a regular container for a resource.
    pub fn of_container(&self, resource: &str) -> Pair {
        let pairs = self.regular.iter().map(|own| own.pair(resource));
        pairs.max_by_key(|(request, limit)| (*limit, *request)).unwrap_or_default()
    }

    /// The sum of the native sidecars before a position among the init containers.
    pub fn started(&self, place: usize) -> Asked<'p> {
        let mut started = Asked::default();
        let before = self.init.iter().take(place).filter(|(_, is_sidecar)| *is_sidecar);
        before.for_each(|(own, _)| started.add(own));
        started
    }

    /// What the containers need together, with one more that runs together with all of them.
    pub fn together(&self, added: &Asked<'p>) -> Asked<'p> {
        let mut together = self.running.plus(added);
        together.raise_to(&self.starting);
        together
    }

    /// The effective resources of a pod that has this pod's resources as a whole: those are used instead of what its
    /// containers need together, for CPU and memory.
    #[must_use]
    pub fn effective(&self, mut together: Asked<'p>) -> Asked<'p> {
        for name in CLASS_RESOURCES {
            let (request, limit) = together.pair(name);
            let whole = self.whole.pair(name);
            together.set(name, (whole.0.or(request), whole.1.or(limit)));
        }
        together
    }

    /// Lowers the resources of an added container to those of the whole pod, above which the API server would reject
    /// the pod. It runs together with the containers that have `others`.
    #[must_use]
    pub fn within_whole(&self, own: &Asked<'p>, others: &Asked<'p>) -> Asked<'p> {
        let least = |own: Option<Quantity>, most: Option<Quantity>| {
            own.map(|own| most.map_or(own, |most| own.min(most)))
        };
        let mut result = own.clone();
        for name in own.names() {
            let (request, limit) = own.pair(name);
            let other = others.requests.get(name).unwrap_or_default();
            let limit = least(limit, self.whole.limits.get(name));
            let request = least(request, self.whole.requests.get(name).map(|most| most.less(other)));
            result.set(name, (least(request, limit), limit));
        }
        result
    }

    /// Whether the whole pod is going to have the request that no container has yet.
    pub fn is_left_to_whole(&self, resource: &str) -> bool {
        self.left_to_whole.contains(&resource)
    }

    /// Whether quotas require nothing of containers because the whole pod has resources.
    pub fn has_whole(&self) -> bool {
        !self.whole.is_empty()
    }

    /// The class with one more container.
    pub fn class_with(&self, added: Option<&Asked<'p>>) -> Class {
        if self.is_whole { Class::of([&self.whole]) } else { Class::of(self.containers().chain(added)) }
    }

    /// The attributes of the pod that the scopes of quotas check, if it had a class.
    pub fn scopes(&self, class: Class) -> PodScopes<'p> {
        PodScopes { is_best_effort: class == Class::BestEffort, ..self.scopes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_quantities_are_skipped_and_the_last_of_a_key_is_used() {
        let text = r#"{"cpu":"1","memory":true,"a":[1],"b":{"c":1},"d":null,"e":2,"f":0.5,"g":-1,"cpu":"2","e2":"1","e2":null}"#;
        let amounts: Amounts<'_> = serde_json::from_str(text).expect("a map");
        assert_eq!(amounts.to_string(), "cpu 2, e 2, f 500m, g -1");
        assert_eq!(serde_json::from_str::<Amounts<'_>>("null").expect("none").to_string(), "none");
    }
}
