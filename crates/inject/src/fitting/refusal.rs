//! Why a namespace would reject a pod for the resources of an added
//! container.

use std::fmt;

use super::pair::Pair;
use crate::{
    demand::Asked,
    limits::{LimitItem, LimitRange, LimitType, ResourceQuota},
};
use otel_webhook_api::quantity::Quantity;

/// The LimitRange or quota that rejects, and its figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Kind and name of the object.
    pub object: String,
    /// The bound, and the amount beyond it.
    pub problem: String,
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

    /// The quota's name for it.
    pub fn name(self, resource: &str) -> String {
        format!("{self}s.{resource}")
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

impl Refusal {
    /// Checks that an item of a LimitRange accepts a request and a limit.
    ///
    /// # Errors
    /// The bound that rejects them.
    pub fn by_item(
        range: &LimitRange,
        item: &LimitItem,
        resource: &str,
        (request, limit): Pair,
    ) -> Result<(), Self> {
        let of_what = if item.kind == LimitType::Pod { "pod" } else { "container" };
        let refused = |list: &str, bound: Quantity, found: String| {
            let problem = format!("its {list} of {resource} for a {of_what} is {bound}, and {found}");
            Err(Self { object: format!("LimitRange \"{}\"", range.name), problem })
        };
        let both = [("request", request), ("limit", limit)];
        let mut both = both.into_iter().filter_map(|(of, amount)| Some((of, amount?)));
        if let Some(min) = item.min.get(resource) {
            if request.is_none() {
                return refused("min", min, "there would be no request".to_owned());
            }
            if let Some((of, amount)) = both.clone().find(|(_, amount)| *amount < min) {
                return refused("min", min, format!("the {of} would be {amount}"));
            }
        }
        if let Some(max) = item.max.get(resource) {
            if limit.is_none() {
                return refused("max", max, "there would be no limit".to_owned());
            }
            if let Some((of, amount)) = both.find(|(_, amount)| *amount > max) {
                return refused("max", max, format!("the {of} would be {amount}"));
            }
        }
        if let Some(ratio) = item.max_limit_request_ratio.get(resource) {
            const LIST: &str = "maxLimitRequestRatio";
            let set = |amount: Option<Quantity>| amount.filter(|amount| !amount.is_zero());
            match (set(request), set(limit)) {
                (None, _) => return refused(LIST, ratio, "there would be no request".to_owned()),
                (_, None) => return refused(LIST, ratio, "there would be no limit".to_owned()),
                (Some(request), Some(limit)) if limit.exceeds(ratio, request) => {
                    let found = format!("the limit would be {limit} and the request {request}");
                    return refused(LIST, ratio, found);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that containers stay within the resources of the whole pod.
    ///
    /// # Errors
    /// The resource that exceeds them.
    pub fn of_whole(whole: &Asked<'_>, added: &Asked<'_>, together: &Asked<'_>) -> Result<(), Self> {
        let beyond = |list: &str, name: &str, most: Quantity, found: Quantity| {
            let problem = format!("its {list} of {name} is {most}, and {found} would be requested");
            Err(Self { object: OF_WHOLE.to_owned(), problem })
        };
        for (name, most) in whole.requests.iter() {
            if let Some(sum) = together.requests.get(name).filter(|sum| *sum > most) {
                return beyond("request", name, most, sum);
            }
        }
        for (name, most) in whole.limits.iter() {
            if let Some(limit) = added.limits.get(name).filter(|limit| *limit > most) {
                return beyond("limit", name, most, limit);
            }
        }
        Ok(())
    }

    /// For a request of the whole pod that is not defaulted yet.
    pub fn by_open_request(resource: &str) -> Self {
        let problem = format!("it leaves the request of {resource} to be defaulted");
        Self { object: OF_WHOLE.to_owned(), problem }
    }

    /// Checks that a container with defaulted limits requests no more than those.
    ///
    /// # Errors
    /// The default that it exceeds.
    pub fn by_order((range, item): (&LimitRange, &LimitItem), added: &Asked<'_>) -> Result<(), Self> {
        for (resource, default) in item.default.iter() {
            if let (Some(request), Some(limit)) = added.pair(resource)
                && request > limit
            {
                let problem = format!("its default of {resource} is {default}, and the request {request}");
                return Err(Self { object: format!("LimitRange \"{}\"", range.name), problem });
            }
        }
        Ok(())
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
            return Err(Self { object: format!("LimitRange \"{}\"", range.name), problem });
        }
        Ok(())
    }

    /// For a LimitRange with other defaults than another one.
    pub fn by_default(range: &str) -> Self {
        let problem = "its defaults differ from those of another LimitRange".to_owned();
        Self { object: format!("LimitRange \"{range}\""), problem }
    }

    /// For a quota with too little left.
    pub fn by_quota(quota: &ResourceQuota, name: &str, needed: Quantity, left: Quantity) -> Self {
        let problem = format!("{left} of {name} is left, and the pod would need {needed}");
        Self { object: format!("ResourceQuota \"{}\"", quota.name), problem }
    }

    /// For a quota that requires each container to set a resource.
    pub fn by_obligation(quota: &ResourceQuota, resource: &str, of: Of) -> Self {
        let problem = format!("each container needs a {of} of {resource}");
        Self { object: format!("ResourceQuota \"{}\"", quota.name), problem }
    }
}
