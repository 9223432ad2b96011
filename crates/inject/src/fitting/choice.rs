//! Chooses request and limit of one resource within the bounds of a container.

use super::{pair::Pair, rules::Bounds};
use otel_webhook_api::quantity::Quantity;

/// The bounds of a container for a resource.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The bounds of LimitRanges and quotas.
    pub bounds: Bounds,
    /// The maximum request; `None` if there must be none.
    pub request: Option<Quantity>,
    /// The maximum limit; `None` if there must be none.
    pub limit: Option<Quantity>,
    /// The request and limit of a regular container of the pod, which are always accepted.
    pub of_container: Pair,
    /// Whether request and limit have to be equal.
    pub as_one: bool,
    /// Whether a regular container has no limit, so that another one without a limit does not change the pod.
    pub is_open: bool,
}

impl Room {
    /// The accepted values that are nearest to the wanted ones, in units of the resource.
    pub fn nearest(&self, wish: Pair, unit: Quantity) -> Pair {
        let limit = self.limit.and_then(|most| self.wished_limit(wish, most));
        let request = self.request.and_then(|most| self.wished_request(wish, limit, most));
        let pair = match (request, limit) {
            (Some(_), Some(limit)) if self.as_one => {
                let both = Some(limit.min(self.highest_request(Some(limit))));
                (both, both)
            }
            pair => self.within_ratio(unit, pair),
        };
        if self.accepts(pair) { pair } else { self.of_container }
    }

    /// The same for a whole resource such as a GPU: the wanted values, or none, or those of a regular
    /// container.
    pub fn nearest_whole(&self, wish: Pair) -> Pair {
        let wished = wish.1.or(wish.0).filter(|_| self.limit.is_some() && self.request.is_some());
        let none = self.needs_any().then_some(Quantity::ZERO);
        let pairs = wished.map(|amount| (Some(amount), Some(amount))).into_iter().chain([(none, none)]);
        let mut pairs = pairs.chain([self.of_container]);
        pairs.find(|pair| self.accepts(*pair)).unwrap_or_default()
    }

    /// Adjusts a request and a limit to the ratio, by
    /// raising the request, and then by lowering the limit.
    pub fn within_ratio(&self, unit: Quantity, (request, limit): Pair) -> Pair {
        let (Some(ratio), Some(asked), Some(most)) = (self.bounds.ratio, request, limit) else {
            return (request, limit);
        };
        if !most.exceeds(ratio, asked) {
            return (request, limit);
        }
        let enough = |limit: Quantity| {
            let request = limit.divided_by(ratio).rounded_up(unit);
            if limit.exceeds(ratio, request) { request.plus(unit) } else { request }
        };
        let highest = self.highest_request(limit);
        let asked = enough(most).max(asked).min(highest);
        if !most.exceeds(ratio, asked) {
            return (Some(asked), limit);
        }
        let lower = asked.times(ratio).rounded_down(unit);
        let lower = if lower.exceeds(ratio, asked) { lower.less(unit) } else { lower };
        (Some(asked), Some(lower.max(asked)))
    }

    /// Whether a request and a limit are within all bounds.
    pub fn accepts(&self, (request, limit): Pair) -> bool {
        let Bounds { min, max, ratio, needs_request, needs_limit } = self.bounds;
        let fits = |amount: Option<Quantity>, most: Option<Quantity>| match (amount, most) {
            (Some(amount), Some(most)) => {
                amount >= min && amount <= most && max.is_none_or(|max| amount <= max)
            }
            (amount, most) => amount.is_none() || most.is_some(),
        };
        let in_order = match (request, limit) {
            (Some(request), Some(limit)) => {
                request <= limit
                    && (!self.as_one || request == limit)
                    && ratio.is_none_or(|ratio| !request.is_zero() && !limit.exceeds(ratio, request))
            }
            (Some(_), None) => ratio.is_none() && !self.as_one,
            (None, Some(_)) => false,
            (None, None) => ratio.is_none(),
        };
        let has_all = (request.is_some() || !needs_request) && (limit.is_some() || !needs_limit);
        fits(request, self.request) && fits(limit, self.limit) && in_order && has_all
    }

    /// Whether the resource has to be set.
    fn needs_any(&self) -> bool {
        self.bounds.needs_request || self.bounds.needs_limit
    }

    fn wished_limit(&self, wish: Pair, most: Quantity) -> Option<Quantity> {
        let needed = self.bounds.needs_limit || self.as_one;
        let usual = self.of_container.1.unwrap_or(most);
        let wished = wish.1.or(needed.then_some(usual))?;
        let limit = self.clamp(wished, most);
        // The room below small init containers may be too little for a copy.
        let is_better_open = self.is_open && limit < wished;
        (needed || !limit.is_zero() && !is_better_open).then_some(limit)
    }

    fn wished_request(&self, wish: Pair, limit: Option<Quantity>, most: Quantity) -> Option<Quantity> {
        let needed = self.bounds.needs_request || self.as_one || limit.is_some();
        let usual = self.of_container.0.unwrap_or_default();
        let wished = wish.0.or(wish.1).or(needed.then_some(usual))?;
        Some(self.clamp(wished, most).min(limit.unwrap_or(most)))
    }

    fn highest_request(&self, limit: Option<Quantity>) -> Quantity {
        let all = [self.request, limit, self.bounds.max];
        all.into_iter().flatten().min().unwrap_or_default()
    }

    fn clamp(&self, wished: Quantity, most: Quantity) -> Quantity {
        wished.max(self.bounds.min).min(self.bounds.max.map_or(most, |max| max.min(most)))
    }
}
