//! Whether LimitRanges and ResourceQuotas accept a pod with what is added to it.

use std::fmt;

use crate::{
    demand::{Asked, CLASS_RESOURCES, Class, Demand, Pair},
    limits::{LimitItem, LimitRange, LimitType, Limits, PODS, ResourceQuota},
};
use otel_webhook_api::quantity::Quantity;

/// The LimitRange or quota that rejects, and its figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind and name of the object.
    pub object: String,
    /// The bound, and the amount beyond it.
    pub problem: String,
    /// The resource, if it is about one.
    pub resource: Option<String>,
}

/// The name of the whole pod's resources in messages.
const OF_WHOLE: &str = "spec.resources of the pod";

/// The part of a resource that a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Requests.
    Requests,
    /// Limits.
    Limits,
}

impl Of {
    /// What remains of a quota; `None` if it has no such bound.
    pub fn left(self, quota: &ResourceQuota, resource: &str) -> Option<Quantity> {
        match self {
            Self::Requests => quota.left_of_requests(resource),
            Self::Limits => quota.left_of_limits(resource),
        }
    }
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "request",
            Self::Limits => "limit",
        })
    }
}

/// The rules of a namespace for one pod.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'r, 'p> {
    /// The limits of the namespace.
    pub limits: &'r Limits,
    /// The resources of the pod.
    pub demand: &'r Demand<'p>,
}

impl<'r, 'p> Admission<'r, 'p> {
    /// Checks that the namespace accepts an added container, and
    /// the pod, the containers of which then need `together`.
    ///
    /// # Errors
    /// The LimitRange or quota that rejects it.
    pub fn check<'a>(
        &self,
        mut added: Asked<'a>,
        together: impl FnOnce(&Asked<'a>) -> Asked<'a>,
    ) -> Result<(), Refusal>
    where
        'r: 'a,
        'p: 'a,
    {
        if self.limits.is_empty() {
            return Ok(());
        }
        if let Some(name) = added.names().find(|name| self.demand.is_left_to_whole(name)) {
            let problem = format!("it leaves the request of {name} to be defaulted");
            return Err(Refusal { object: OF_WHOLE.to_owned(), problem, resource: Some(name.to_owned()) });
        }
        set_defaults(&mut added, self.limits)?;
        accepts_container(self.limits, &added)?;
        let together = together(&added);
        within_whole(&self.demand.whole, &added, &together)?;
        let class = self.demand.class_with(Some(&added));
        let effective = self.demand.effective(together);
        accepts(self.limits, LimitType::Pod, &effective)?;
        self.quotas(class).try_for_each(|quota| self.check_quota(quota, class, &added, &effective))
    }

    /// The quotas that would count the pod if it had a class.
    pub fn quotas(&self, class: Class) -> impl Iterator<Item = &'r ResourceQuota> {
        let scopes = self.demand.scopes(class);
        self.limits.quotas().iter().map(|quota| &**quota).filter(move |quota| quota.counts_pod(&scopes))
    }

    fn check_quota(
        &self,
        quota: &ResourceQuota,
        class: Class,
        added: &Asked<'_>,
        effective: &Asked<'_>,
    ) -> Result<(), Refusal> {
        // A quota may count pods by their class, which the added container changes.
        let is_new = class != self.demand.class;
        for name in PODS.into_iter().filter(|_| is_new) {
            if let Some(left) = quota.left(name).filter(|left| *left < Quantity::ONE) {
                return Err(Refusal::by_quota(quota, name, Quantity::ONE, left));
            }
        }
        for resource in CLASS_RESOURCES.into_iter().filter(|_| !self.demand.has_whole()) {
            // Then it requires this of all containers of the pod.
            let others = self.demand.containers().filter(|_| is_new);
            for (request, limit) in others.chain([added]).map(|own| own.pair(resource)) {
                if quota.requires_request(resource) && request.is_none() {
                    return Err(Refusal::by_obligation(quota, resource, Of::Requests));
                }
                if quota.requires_limit(resource) && limit.is_none() {
                    return Err(Refusal::by_obligation(quota, resource, Of::Limits));
                }
            }
        }
        for (of, amounts) in [(Of::Requests, &effective.requests), (Of::Limits, &effective.limits)] {
            for (resource, amount) in amounts.iter() {
                let Some(left) = of.left(quota, resource) else { continue };
                // A resource that is not used is not counted, and has no overhead.
                let needed = amount.plus(self.demand.overhead.get(resource).unwrap_or_default());
                if needed > left && !amount.is_zero() {
                    let refusal = Refusal::by_quota(quota, &format!("{of}s.{resource}"), needed, left);
                    return Err(Refusal { resource: Some(resource.to_owned()), ..refusal });
                }
            }
        }
        Ok(())
    }
}

/// Sets the defaults of LimitRanges, if they do not depend on their order.
fn set_defaults<'a>(added: &mut Asked<'a>, limits: &'a Limits) -> Result<(), Refusal> {
    let own = added.clone();
    added.default_by(limits);
    for (range, item) in limits.items(LimitType::Container) {
        let lists = [
            (&item.default, &own.limits, &added.limits),
            (&item.default_request, &own.requests, &added.requests),
        ];
        for (defaults, own, all) in lists {
            let mut open = defaults.iter().filter(|(name, _)| own.get(name).is_none());
            if let Some((resource, _)) = open.find(|(name, default)| all.get(name) != Some(*default)) {
                let problem = "its defaults differ from those of another LimitRange".to_owned();
                return Err(Refusal::by_range(range, resource, problem));
            }
        }
        for (resource, default) in item.default.iter() {
            if let (Some(request), Some(limit)) = added.pair(resource)
                && request > limit
            {
                let problem = format!("its default of {resource} is {default}, and the request {request}");
                return Err(Refusal::by_range(range, resource, problem));
            }
        }
    }
    Ok(())
}

/// Checks that the LimitRanges accept a container.
///
/// # Errors
/// The LimitRange that rejects it.
pub fn accepts_container(limits: &Limits, asked: &Asked<'_>) -> Result<(), Refusal> {
    accepts(limits, LimitType::Container, asked)
}

fn accepts(limits: &Limits, kind: LimitType, asked: &Asked<'_>) -> Result<(), Refusal> {
    limits.items(kind).try_for_each(|(range, item)| {
        item.min.iter().try_for_each(|(name, min)| at_least(range, item, (name, min), asked.pair(name)))?;
        item.max.iter().try_for_each(|(name, max)| at_most(range, item, (name, max), asked.pair(name)))?;
        let mut ratios = item.max_limit_request_ratio.iter();
        ratios.try_for_each(|(name, ratio)| within_ratio(range, item, (name, ratio), asked.pair(name)))
    })
}

type Bound<'b> = (&'b str, Quantity);

fn at_least(range: &LimitRange, item: &LimitItem, min: Bound<'_>, pair: Pair) -> Result<(), Refusal> {
    if pair.0.is_none() {
        return Err(Refusal::by_item(range, item, "min", min, "there would be no request"));
    }
    match amounts(pair).find(|(_, amount)| *amount < min.1) {
        Some((of, amount)) => {
            Err(Refusal::by_item(range, item, "min", min, &format!("the {of} would be {amount}")))
        }
        None => Ok(()),
    }
}

fn at_most(range: &LimitRange, item: &LimitItem, max: Bound<'_>, pair: Pair) -> Result<(), Refusal> {
    if pair.1.is_none() {
        return Err(Refusal::by_item(range, item, "max", max, "there would be no limit"));
    }
    match amounts(pair).find(|(_, amount)| *amount > max.1) {
        Some((of, amount)) => {
            Err(Refusal::by_item(range, item, "max", max, &format!("the {of} would be {amount}")))
        }
        None => Ok(()),
    }
}

fn within_ratio(range: &LimitRange, item: &LimitItem, ratio: Bound<'_>, pair: Pair) -> Result<(), Refusal> {
    let set = |amount: Option<Quantity>| amount.filter(|amount| !amount.is_zero());
    let found = match (set(pair.0), set(pair.1)) {
        (None, _) => "there would be no request".to_owned(),
        (_, None) => "there would be no limit".to_owned(),
        (Some(request), Some(limit)) if limit.exceeds(ratio.1, request) => {
            format!("the limit would be {limit} and the request {request}")
        }
        _ => return Ok(()),
    };
    Err(Refusal::by_item(range, item, "maxLimitRequestRatio", ratio, &found))
}

fn amounts((request, limit): Pair) -> impl Iterator<Item = (Of, Quantity)> {
    let both = [(Of::Requests, request), (Of::Limits, limit)];
    both.into_iter().filter_map(|(of, amount)| Some((of, amount?)))
}

/// Checks that containers stay within the resources of the whole pod.
fn within_whole(whole: &Asked<'_>, added: &Asked<'_>, together: &Asked<'_>) -> Result<(), Refusal> {
    for (of, most, found) in
        [(Of::Requests, &whole.requests, &together.requests), (Of::Limits, &whole.limits, &added.limits)]
    {
        for (resource, most) in most.iter() {
            if let Some(found) = found.get(resource).filter(|found| *found > most) {
                let problem = format!("its {of} of {resource} is {most}, and {found} would be requested");
                return Err(Refusal {
                    object: OF_WHOLE.to_owned(),
                    problem,
                    resource: Some(resource.to_owned()),
                });
            }
        }
    }
    Ok(())
}

impl Refusal {
    /// For a LimitRange.
    fn by_range(range: &LimitRange, resource: &str, problem: String) -> Self {
        Self {
            object: format!("LimitRange \"{}\"", range.name),
            problem,
            resource: Some(resource.to_owned()),
        }
    }

    fn by_item(range: &LimitRange, item: &LimitItem, list: &str, bound: Bound<'_>, found: &str) -> Self {
        let of_what = if item.kind == LimitType::Pod { "pod" } else { "container" };
        let (resource, bound) = bound;
        let problem = format!("its {list} of {resource} for a {of_what} is {bound}, and {found}");
        Self::by_range(range, resource, problem)
    }

    /// Checks that an item of a LimitRange accepts the requests of a claim.
    ///
    /// # Errors
    /// The bound that rejects them.
    pub fn of_claim(
        range: &LimitRange,
        item: &LimitItem,
        request: impl Fn(&str) -> Option<Quantity>,
    ) -> Result<(), Self> {
        let bounds = [("min", &item.min), ("max", &item.max)];
        let all = bounds.iter().flat_map(|(list, amounts)| amounts.iter().map(move |one| (*list, one)));
        for (list, (resource, bound)) in all {
            let found = match request(resource) {
                Some(amount) if list == "min" && amount >= bound || list == "max" && amount <= bound => {
                    continue;
                }
                Some(amount) => format!("the request is {amount}"),
                None => "there is no request".to_owned(),
            };
            let problem = format!("its {list} of {resource} for a claim is {bound}, and {found}");
            return Err(Self::by_range(range, resource, problem));
        }
        Ok(())
    }

    /// For a quota with too little left.
    pub fn by_quota(quota: &ResourceQuota, name: &str, needed: Quantity, left: Quantity) -> Self {
        let problem = format!("{left} of {name} is left, and the pod would need {needed}");
        let object = format!("ResourceQuota \"{}\"", quota.name);
        Self { object, problem, resource: None }
    }

    /// For a quota that requires each container to set a resource.
    fn by_obligation(quota: &ResourceQuota, resource: &str, of: Of) -> Self {
        let problem = format!("each container needs a {of} of {resource}");
        let object = format!("ResourceQuota \"{}\"", quota.name);
        Self { object, problem, resource: Some(resource.to_owned()) }
    }
}
