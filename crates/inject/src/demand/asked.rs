//! Requests and limits, with the defaults of the API server and LimitRanger.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::amounts::{Amounts, CLASS_RESOURCES};
use crate::limits::{LimitType, Limits};
use otel_webhook_api::quantity::Quantity;

/// Requests and limits.
#[derive(Clone, Debug, Default, Deserialize)]
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
    pub fn read(raw: Option<&'p RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Those of a container.
    pub fn of_container(raw: Option<&'p RawValue>) -> Self {
        let mut own = Self::read(raw);
        own.default_requests();
        own
    }

    /// Sets requests that are not set to the limits, as the API server does.
    pub fn default_requests(&mut self) {
        for (name, limit) in self.limits.iter() {
            if self.requests.get(name).is_none() {
                self.requests.set(name, limit);
            }
        }
    }

    /// Sets the defaults of LimitRanges. Of
    /// several, which have no defined order, the first is used.
    pub fn default_by(&mut self, limits: &'p Limits) {
        for (_, item) in limits.items(LimitType::Container) {
            item.default.iter().for_each(|(name, limit)| self.limits.set_default(name, limit));
            item.default_request.iter().for_each(|(name, request)| self.requests.set_default(name, request));
        }
    }

    /// The same, if the result does not depend on the order of LimitRanges.
    ///
    /// # Errors
    /// The name of a LimitRange with another default than an earlier one.
    pub fn default_unambiguously(&mut self, limits: &'p Limits) -> Result<(), &'p str> {
        let own = self.clone();
        self.default_by(limits);
        for (range, item) in limits.items(LimitType::Container) {
            let differs = |name: &str, default: Quantity, own: &Amounts<'_>, all: &Amounts<'_>| {
                own.get(name).is_none() && all.get(name) != Some(default)
            };
            let mut limits = item.default.iter();
            let mut requests = item.default_request.iter();
            if limits.any(|(name, default)| differs(name, default, &own.limits, &self.limits))
                || requests.any(|(name, default)| differs(name, default, &own.requests, &self.requests))
            {
                return Err(&range.name);
            }
        }
        Ok(())
    }

    /// Request and limit of a resource.
    pub fn pair(&self, resource: &str) -> (Option<Quantity>, Option<Quantity>) {
        (self.requests.get(resource), self.limits.get(resource))
    }

    /// The names of the resources; some are repeated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().chain(self.limits.iter()).map(|(name, _)| &**name)
    }

    /// Sets the requests of a whole pod that has only limits, as the API server
    /// does: to the sum of its containers' requests, or else to the limit. Their
    /// huge pages are limits of the pod as well. Returns those of CPU and memory
    /// for which it takes the limit.
    pub(super) fn default_whole(&mut self, together: &Self) -> Vec<&'static str> {
        if self.requests.is_empty() && self.limits.is_empty() {
            return Vec::new();
        }
        for (name, limit) in together.limits.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
            if self.pair(name) == (None, None) {
                self.limits.set(name, limit);
            }
        }
        if self.limits.is_empty() {
            return Vec::new();
        }
        let open = CLASS_RESOURCES.into_iter().filter(|name| self.requests.get(name).is_none());
        let open: Vec<_> = open.collect();
        for name in &open {
            if let Some(request) = together.requests.get(name) {
                self.requests.set_default(name, request);
            }
        }
        self.default_requests();
        let is_limit = |name: &&str| together.requests.get(name).is_none() && self.limits.get(name).is_some();
        open.into_iter().filter(is_limit).collect()
    }

    /// Adds requests to requests and limits to limits.
    pub fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        self.limits.add(&other.limits);
    }

    /// The sum.
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// Raises the amounts of one to at least the sum of both. Those that only the other has are not
    /// looked at: they were raised when they were added to it.
    pub fn raise_to_sum(&mut self, one: &Self, other: &Self) {
        self.requests.raise_to_sum(&one.requests, &other.requests);
        self.limits.raise_to_sum(&one.limits, &other.limits);
    }

    /// Raises everything to at least the other's amounts.
    pub fn raise_to(&mut self, other: &Self) {
        self.requests.raise_to(&other.requests);
        self.limits.raise_to(&other.limits);
    }
}
