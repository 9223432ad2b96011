//! The resources of a sidecar.
//!
//! If the namespace would reject the pod with the resources of the Instrumentation,
//! requests are lowered as far as needed, also to zero, and limits as far as the
//! Instrumentation's requests: with less the agent does not run. Both are
//! raised only to a minimum, and requests to what a ratio requires. A BestEffort
//! pod may stay one. The first accepted resources are used.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    choice::Room,
    common::{Fitted, accompany_huge_pages, is_whole, of_container, unit},
    pair::Pair,
    refusal::{Of, Refusal},
    resources::Resources,
    rules::Rules,
};
use crate::{
    demand::{CLASS_RESOURCES, Class, Demand, of_whole},
    limits::{LimitType, Limits},
    note::Note,
};
use otel_webhook_api::quantity::Quantity;

/// The adjusted resources of a sidecar; `None` if they need no adjustment.
///
/// # Errors
/// The LimitRange or quota that would reject the pod with any resources of the sidecar.
pub fn sidecar(said: &Value, demand: &Demand<'_>, limits: &Limits) -> Result<Option<Fitted>, Refusal> {
    let beside = Beside { rules: Rules { limits, demand } };
    let own = Resources::of(said);
    let capped = beside.capped(&own);
    if beside.check(&capped).is_ok() {
        return Ok(capped.is_changed().then(|| fitted(&capped, said, Vec::new())));
    }
    let nearest = beside.nearest(&own);
    let refusal = match beside.check(&nearest) {
        Ok(()) => return Ok(Some(fitted(&nearest, said, beside.causes(&own, &nearest)))),
        Err(refusal) => refusal,
    };
    let bare = (demand.class == Class::BestEffort).then(|| beside.bare(&nearest));
    match bare.filter(|bare| beside.check(bare).is_ok()) {
        Some(bare) => Ok(Some(fitted(&bare, said, vec![refusal.object]))),
        None => Err(refusal),
    }
}

fn fitted(result: &Resources<'_>, said: &Value, due_to: Vec<String>) -> Fitted {
    let (requests, limits) = (result.requests.to_string(), result.limits.to_string());
    Fitted { resources: result.put_into(said), notes: vec![Note::SidecarFitted { requests, limits, due_to }] }
}

/// The sidecar.
#[derive(Clone, Copy)]
struct Beside<'r, 'p> {
    rules: Rules<'r, 'p>,
}

/// The bounds of one resource.
struct Span {
    room: Room,
    /// The minimum limit.
    lowest: Quantity,
    /// The maximum request, and the maximum limit.
    highest: (Quantity, Quantity),
}

impl<'p> Beside<'_, 'p> {
    fn demand(&self) -> &Demand<'p> {
        self.rules.demand
    }

    /// Lowers them to the requests and limits of the whole pod, above which the
    /// API server would reject the pod.
    fn capped<'s>(&self, own: &Resources<'s>) -> Resources<'s> {
        let mut result = own.clone();
        for name in own.names() {
            let (request, limit) = own.pair(&name);
            let (most, highest) = self.within_whole(&name);
            let least = |one: Option<Quantity>, most: Option<Quantity>| {
                one.map(|one| most.map_or(one, |most| one.min(most)))
            };
            let limit = least(limit, highest);
            result.set(name, (least(least(request, most), limit), limit));
        }
        result
    }

    /// The maximum request and limit within the resources of the whole pod.
    fn within_whole(&self, name: &str) -> Pair {
        let running = self.demand().running.requests.get(name).unwrap_or_default();
        let request = self.demand().whole.requests.get(name).map(|most| most.less(running));
        (request, self.demand().whole.limits.get(name))
    }

    /// Whether the namespace accepts the pod with such a sidecar.
    fn check(&self, own: &Resources<'_>) -> Result<(), Refusal> {
        self.rules.check_all(own.asked(), |added| {
            let mut together = self.demand().running.plus(added);
            together.raise_to(&self.demand().starting);
            together
        })
    }

    /// Returns for each resource the accepted amounts that are nearest to the configured ones.
    fn nearest<'s>(&self, own: &Resources<'s>) -> Resources<'s> {
        let class = self.demand().class_with(&own.asked());
        let mut names = own.names();
        names.extend(self.rules.resources(class).map(|name| Cow::Owned(name.to_owned())));
        names.sort();
        names.dedup();
        let mut result = own.clone();
        for name in names {
            if self.demand().is_left_to_whole(&name) {
                result.set(name, (None, None));
                continue;
            }
            let span = self.span(&name, own.pair(&name), class);
            let pairs = span.pairs(&name, own.pair(&name));
            let fits = |pair: &&Pair| span.accepts(**pair) && self.accepts(&name, **pair, class);
            // The last one is the minimum; the message shows it.
            let pair = pairs.iter().find(fits).or(pairs.last());
            result.set(name, pair.copied().unwrap_or_default());
        }
        accompany_huge_pages(&mut result, self.demand());
        result
    }

    fn accepts(&self, name: &str, (request, limit): Pair, class: Class) -> bool {
        let (running, starting) = (self.demand().running.pair(name), self.demand().starting.pair(name));
        let together = |running: Option<Quantity>, own: Option<Quantity>, starting: Option<Quantity>| {
            let sum = own.map(|own| own.plus(running.unwrap_or_default())).or(running);
            sum.max(starting)
        };
        let together = (together(running.0, request, starting.0), together(running.1, limit, starting.1));
        self.rules.check(name, (request, limit), together, class).is_ok()
    }

    fn span(&self, name: &str, (request, limit): Pair, class: Class) -> Span {
        let bounds = self.rules.bounds(name, class);
        let most = |of: Of| {
            let (running, whole) = match of {
                Of::Requests => (self.demand().running.requests.get(name), self.within_whole(name).0),
                Of::Limits => (self.demand().running.limits.get(name), self.within_whole(name).1),
            };
            let left = self.left(name, of, class).map(|left| left.less(running.unwrap_or_default()));
            [bounds.max, whole, left].into_iter().flatten().min().unwrap_or(Quantity::MAX)
        };
        let highest = (most(Of::Requests), most(Of::Limits));
        let least = limit.map(|limit| request.unwrap_or(limit).min(limit)).unwrap_or_default();
        let room = Room {
            bounds,
            request: Some(highest.0),
            limit: Some(highest.1),
            of_container: of_container(self.demand(), name),
            as_one: is_whole(name),
            is_open: false,
        };
        Span { room, lowest: least.max(bounds.min).max(self.least_of_pod(name)), highest }
    }

    /// The maximum that LimitRanges and quotas allow the pod; `None` if nothing bounds it, or the
    /// containers are not counted.
    fn left(&self, name: &str, of: Of, class: Class) -> Option<Quantity> {
        let whole = &self.demand().whole;
        let whole = if of == Of::Requests { &whole.requests } else { &whole.limits };
        if of_whole(whole, name).is_some() {
            return None;
        }
        let overhead = self.demand().overhead.get(name).unwrap_or_default();
        let of_ranges = self.rules.limits.items(LimitType::Pod).filter_map(|(_, item)| item.max.get(name));
        let of_quotas = self.rules.quotas(class).filter_map(|quota| of.left(quota, name));
        of_ranges.chain(of_quotas.map(|left| left.less(overhead))).min()
    }

    /// The minimum of a limit that the pod does not have yet.
    fn least_of_pod(&self, name: &str) -> Quantity {
        let items = self.rules.limits.items(LimitType::Pod).filter(|_| self.demand().limit(name).is_none());
        items.filter_map(|(_, item)| item.min.get(name)).max().unwrap_or_default()
    }

    /// Without CPU and memory, so that a BestEffort pod stays one.
    fn bare<'s>(&self, nearest: &Resources<'s>) -> Resources<'s> {
        let mut result = nearest.clone();
        for name in CLASS_RESOURCES {
            let bounds = self.rules.bounds(name, Class::BestEffort);
            let zero = |is_needed: bool| is_needed.then_some(Quantity::ZERO);
            result.set(Cow::Borrowed(name), (zero(bounds.needs_request), zero(bounds.needs_limit)));
        }
        result
    }

    /// The objects that bound the adjusted resources.
    fn causes(&self, own: &Resources<'_>, result: &Resources<'_>) -> Vec<String> {
        let names = [own.names(), result.names()].concat();
        let differing = names.iter().filter(|name| own.pair(name) != result.pair(name));
        let mut causes: Vec<_> = differing.flat_map(|name| self.rules.objects_for_pods(name)).collect();
        causes.sort();
        causes.dedup();
        causes
    }
}

impl Span {
    fn accepts(&self, pair: Pair) -> bool {
        self.room.accepts(pair) && pair.1.is_none_or(|limit| limit >= self.lowest)
    }

    /// The candidates, from the configured amounts to the minimum.
    fn pairs(&self, name: &str, said: Pair) -> Vec<Pair> {
        let Self { room, lowest, highest } = self;
        let both = |amount: Quantity| (Some(amount), Some(amount));
        let needs_limit = room.bounds.needs_limit;
        if room.as_one {
            let none = if needs_limit { both(Quantity::ZERO) } else { (None, None) };
            return if said == (None, None) {
                vec![none, both(room.bounds.min), room.of_container]
            } else {
                vec![said]
            };
        }
        let request = said.0.unwrap_or(room.bounds.min).max(room.bounds.min);
        let Some(limit) = said.1.or(needs_limit.then(|| room.of_container.1.unwrap_or(highest.1))) else {
            let is_wanted = said.0.is_some() || room.bounds.needs_request;
            return vec![said, (is_wanted.then(|| request.min(highest.0)), None)];
        };
        let limit = limit.max(*lowest).min(highest.1);
        let nearest = (Some(request.min(highest.0).min(limit)), Some(limit));
        let least = (Some(highest.0.min(*lowest)), Some(*lowest));
        vec![said, room.within_ratio(unit(name), nearest), both(highest.0.min(limit)), least]
    }
}

#[cfg(test)]
mod tests;
