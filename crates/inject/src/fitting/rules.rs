//! The rules of a namespace's LimitRanges and quotas for a container that is
//! added to a pod.

use super::{
    pair::Pair,
    refusal::{Of, Refusal},
};
use crate::{
    demand::{Asked, Class, Demand, of_whole},
    limits::{LimitItem, LimitType, Limits, PODS, ResourceQuota},
};
use otel_webhook_api::quantity::Quantity;

/// The rules for one pod.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r, 'p> {
    /// The limits of the namespace.
    pub limits: &'p Limits,
    /// The resources of the pod.
    pub demand: &'r Demand<'p>,
}

/// The bounds of a container for one resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// The minimum of request and limit.
    pub min: Quantity,
    /// The maximum of request and limit.
    pub max: Option<Quantity>,
    /// The maximum ratio of limit to request.
    pub ratio: Option<Quantity>,
    /// Whether a request has to be set, or would be set by LimitRanger.
    pub needs_request: bool,
    /// Whether a limit has to be set, or would be set by LimitRanger.
    pub needs_limit: bool,
}

impl<'p> Rules<'_, 'p> {
    /// The bounds of a container for a resource, in a pod of a class.
    pub fn bounds(&self, resource: &str, class: Class) -> Bounds {
        let mut bounds = Bounds::default();
        for (_, item) in self.limits.items(LimitType::Container) {
            bounds.take(item, resource);
        }
        for quota in self.obliging(class) {
            bounds.needs_request |= quota.requires_request(resource);
            bounds.needs_limit |= quota.requires_limit(resource);
        }
        bounds
    }

    /// The resources with a bound or default for containers in any LimitRange, or
    /// that a quota requires containers of a class to set.
    pub fn resources(&self, class: Class) -> impl Iterator<Item = &'p str> {
        let of_item = |item: &'p LimitItem| {
            let lists =
                [&item.min, &item.max, &item.default, &item.default_request, &item.max_limit_request_ratio];
            lists.into_iter().flat_map(|list| list.iter().map(|(name, _)| name))
        };
        let limits = self.limits;
        let of_ranges = limits.items(LimitType::Container).flat_map(move |(_, item)| of_item(item));
        let obliged = ["cpu", "memory"].into_iter().filter(move |name| {
            self.obliging(class).any(|quota| quota.requires_request(name) || quota.requires_limit(name))
        });
        of_ranges.chain(obliged.collect::<Vec<_>>())
    }

    /// The objects with a rule for a resource of containers.
    pub fn objects(&self, resource: &str) -> Vec<String> {
        let ranges = self.limits.items(LimitType::Container).filter(|(_, item)| {
            let mut bounds = Bounds::default();
            bounds.take(item, resource);
            bounds.needs_request || bounds.needs_limit
        });
        let obliges =
            |quota: &&ResourceQuota| quota.requires_request(resource) || quota.requires_limit(resource);
        let quotas = self.obliging(self.demand.class).filter(obliges);
        let quotas = quotas.map(|quota| format!("ResourceQuota \"{}\"", quota.name));
        ranges.map(|(range, _)| format!("LimitRange \"{}\"", range.name)).chain(quotas).collect()
    }

    /// The objects that bound a resource for containers or for the pod.
    pub fn objects_for_pods(&self, resource: &str) -> Vec<String> {
        let has = |item: &LimitItem| {
            let lists = [&item.min, &item.max, &item.max_limit_request_ratio];
            lists.iter().any(|list| list.get(resource).is_some())
        };
        let ranges = self.limits.items(LimitType::Pod).filter(|(_, item)| has(item));
        let ranges = ranges.map(|(range, _)| format!("LimitRange \"{}\"", range.name));
        let bounds = |quota: &&ResourceQuota| {
            quota.left_of_requests(resource).or(quota.left_of_limits(resource)).is_some()
        };
        let quotas = self.quotas(self.demand.class).filter(bounds);
        let quotas = quotas.map(|quota| format!("ResourceQuota \"{}\"", quota.name));
        self.objects(resource).into_iter().chain(ranges).chain(quotas).collect()
    }

    /// Checks that the namespace accepts an added container, and
    /// the pod, which then has the resources `together`.
    ///
    /// # Errors
    /// The LimitRange or quota that rejects it.
    pub fn check_all<'a>(
        &self,
        mut added: Asked<'a>,
        together: impl FnOnce(&Asked<'a>) -> Asked<'a>,
    ) -> Result<(), Refusal>
    where
        'p: 'a,
    {
        if self.limits.is_empty() {
            return Ok(());
        }
        if let Some(name) = added.names().find(|name| self.demand.is_left_to_whole(name)) {
            return Err(Refusal::by_open_request(name));
        }
        added.default_unambiguously(self.limits).map_err(Refusal::by_default)?;
        for item in self.limits.items(LimitType::Container) {
            Refusal::by_order(item, &added)?;
        }
        let together = together(&added);
        Refusal::of_whole(&self.demand.whole, &added, &together)?;
        let class = self.demand.class_with(&added);
        self.check_count(class)?;
        let mut names: Vec<&str> = added.names().chain(self.resources(class)).collect();
        if class != self.demand.class {
            // Other quotas count the pod now, with all of its resources.
            names.extend(together.names());
        }
        names.sort_unstable();
        names.dedup();
        names.into_iter().try_for_each(|name| self.check(name, added.pair(name), together.pair(name), class))
    }

    /// The same for one resource of a pod that then has a class.
    ///
    /// # Errors
    /// The LimitRange or quota that rejects it.
    pub fn check(&self, resource: &str, added: Pair, together: Pair, class: Class) -> Result<(), Refusal> {
        let mut items = self.limits.items(LimitType::Container);
        items.try_for_each(|(range, item)| Refusal::by_item(range, item, resource, added))?;
        let whole = &self.demand.whole;
        let request = of_whole(&whole.requests, resource).or(together.0);
        let limit = of_whole(&whole.limits, resource).or(together.1);
        let mut items = self.limits.items(LimitType::Pod);
        items.try_for_each(|(range, item)| Refusal::by_item(range, item, resource, (request, limit)))?;
        for quota in self.quotas(class) {
            self.check_obligation(quota, resource, added, class)?;
            self.check_amount(quota, resource, Of::Requests, request)?;
            self.check_amount(quota, resource, Of::Limits, limit)?;
        }
        Ok(())
    }

    /// Checks that quotas that count pods by their class accept one more, if the class changes.
    ///
    /// # Errors
    /// The quota that rejects it.
    pub fn check_count(&self, class: Class) -> Result<(), Refusal> {
        if class == self.demand.class {
            return Ok(());
        }
        for quota in self.quotas(class) {
            for name in PODS {
                if let Some(left) = quota.left(name).filter(|left| *left < Quantity::ONE) {
                    return Err(Refusal::by_quota(quota, name, Quantity::ONE, left));
                }
            }
        }
        Ok(())
    }

    /// The quotas that would count the pod if it had a class.
    pub fn quotas(&self, class: Class) -> impl Iterator<Item = &'p ResourceQuota> {
        let scopes = self.demand.scopes(class);
        let all = self.limits.quotas().iter().map(|quota| &**quota);
        all.filter(move |quota| quota.counts_pod(&scopes))
    }

    /// Those of them that require containers to set resources.
    fn obliging(&self, class: Class) -> impl Iterator<Item = &'p ResourceQuota> {
        let obliges = !self.demand.has_whole();
        self.quotas(class).filter(move |_| obliges)
    }

    fn check_obligation(
        &self,
        quota: &ResourceQuota,
        resource: &str,
        added: Pair,
        class: Class,
    ) -> Result<(), Refusal> {
        if self.demand.has_whole() {
            return Ok(());
        }
        // A quota that counts the pod only with its new class requires it of all of its containers.
        let others = self.demand.containers().filter(|_| class != self.demand.class);
        for (request, limit) in others.map(|own| own.pair(resource)).chain([added]) {
            if quota.requires_request(resource) && request.is_none() {
                return Err(Refusal::by_obligation(quota, resource, Of::Requests));
            }
            if quota.requires_limit(resource) && limit.is_none() {
                return Err(Refusal::by_obligation(quota, resource, Of::Limits));
            }
        }
        Ok(())
    }

    fn check_amount(
        &self,
        quota: &ResourceQuota,
        resource: &str,
        of: Of,
        amount: Option<Quantity>,
    ) -> Result<(), Refusal> {
        let (Some(left), Some(amount)) = (of.left(quota, resource), amount) else {
            return Ok(());
        };
        // A resource that is not used is not counted, and has no overhead.
        let needed = self.with_overhead(resource, amount);
        if needed > left && !amount.is_zero() {
            return Err(Refusal::by_quota(quota, &of.name(resource), needed, left));
        }
        Ok(())
    }

    /// The amount that quotas count for the pod.
    pub fn with_overhead(&self, resource: &str, amount: Quantity) -> Quantity {
        amount.plus(self.demand.overhead.get(resource).unwrap_or_default())
    }
}

impl Bounds {
    fn take(&mut self, item: &LimitItem, resource: &str) {
        let least = |one: Option<Quantity>, other: Option<Quantity>| one.into_iter().chain(other).min();
        let min = item.min.get(resource);
        let max = item.max.get(resource);
        let ratio = item.max_limit_request_ratio.get(resource);
        self.min = self.min.max(min.unwrap_or_default());
        self.max = least(self.max, max);
        self.ratio = least(self.ratio, ratio);
        self.needs_request |=
            min.is_some() || ratio.is_some() || item.default_request.get(resource).is_some();
        self.needs_limit |= max.is_some() || ratio.is_some() || item.default.get(resource).is_some();
    }
}
