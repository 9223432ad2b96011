//! The resources of a sidecar, which adds to those of the pod.
//!
//! If the namespace would reject the pod with the resources of the Instrumentation,
//! requests are lowered as far as needed, also to zero, and limits as far as the
//! Instrumentation's requests: with less the agent does not run. Both are
//! raised only to a minimum, and requests to what a ratio requires. A BestEffort
//! pod may stay one. Each rejection names a resource, of which the next amounts are tried.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Fitted,
    admission::{Admission, Of, Refusal},
};
use crate::{
    demand::{Asked, CLASS_RESOURCES, Class, Demand, Pair},
    limits::{LimitItem, LimitType, Limits},
    note::Note,
};
use otel_webhook_api::quantity::Quantity;

/// How many amounts are tried. Only a LimitRange with many resources needs as many.
const MOST_TRIES: usize = 64;

/// The adjusted resources of a sidecar; `None` if they need no adjustment.
///
/// # Errors
/// The LimitRange or quota that would reject the pod with any resources of the sidecar.
pub fn sidecar(said: &Value, demand: &Demand<'_>, limits: &Limits) -> Result<Option<Fitted>, Refusal> {
    let sidecar = Sidecar { admission: Admission { limits, demand } };
    let own = Asked::of(said);
    let mut chosen = demand.within_whole(&own, &demand.running);
    let (mut due_to, mut untried, mut tries) = (Vec::new(), BTreeMap::new(), 0..MOST_TRIES);
    let refusal = loop {
        let Err(refusal) = sidecar.check(&chosen) else {
            return Ok((chosen != own).then(|| fitted(&chosen, said, due_to)));
        };
        if !due_to.contains(&refusal.object) {
            due_to.push(refusal.object.clone());
        }
        let Some(resource) = &refusal.resource else { break refusal };
        let amounts = untried.entry(resource.clone()).or_insert_with(|| sidecar.amounts(resource, &own));
        match tries.next().and_then(|_| amounts.pop()) {
            Some(pair) => chosen.set(resource, pair),
            None => break refusal,
        }
        accompany_huge_pages(&mut chosen, demand);
    };
    match sidecar.bare(chosen).filter(|bare| sidecar.check(bare).is_ok()) {
        Some(bare) => Ok(Some(fitted(&bare, said, due_to))),
        None => Err(refusal),
    }
}

fn fitted(result: &Asked<'_>, said: &Value, mut due_to: Vec<String>) -> Fitted {
    due_to.sort();
    let (requests, limits) = (result.requests.to_string(), result.limits.to_string());
    Fitted { resources: result.put_into(said), notes: vec![Note::SidecarFitted { requests, limits, due_to }] }
}

/// The sidecar.
struct Sidecar<'r, 'p> {
    admission: Admission<'r, 'p>,
}

impl Sidecar<'_, '_> {
    /// Whether the namespace accepts the pod with such a sidecar.
    fn check(&self, own: &Asked<'_>) -> Result<(), Refusal> {
        self.admission.check(own.clone(), |added| self.admission.demand.together(added))
    }

    /// The amounts of a resource to try, from the minimum to the ones that are nearest to the configured ones.
    fn amounts(&self, name: &str, own: &Asked<'_>) -> Vec<Pair> {
        let Admission { limits, demand } = self.admission;
        if demand.is_left_to_whole(name) {
            return vec![(None, None)];
        }
        let both = |amount: Quantity| (Some(amount), Some(amount));
        let items = || limits.items(LimitType::Container).map(|(_, item)| item);
        let class = demand.class_with(Some(own));
        let (request, limit) = own.pair(name);
        let min = items().filter_map(|item| item.min.get(name)).max().unwrap_or_default();
        let usual = demand.of_container(name);
        if name.contains('/') || name.starts_with("hugepages-") {
            // Resources that cannot be overcommitted, and are of no use to the sidecar.
            return if limit.is_some() { Vec::new() } else { vec![usual, both(min), both(Quantity::ZERO)] };
        }
        let (most_request, most_limit) =
            (self.most(name, Of::Requests, class), self.most(name, Of::Limits, class));
        let needs_limit = |item: &LimitItem| {
            let lists = [&item.max, &item.default, &item.max_limit_request_ratio];
            lists.iter().any(|list| list.get(name).is_some())
        };
        let needs_limit = items().any(needs_limit)
            || self.admission.quotas(class).any(|quota| quota.requires_limit(name) && !demand.has_whole());
        let request = request.unwrap_or(min).max(min).min(most_request);
        let Some(wished) = limit.or_else(|| needs_limit.then(|| usual.1.unwrap_or(min))) else {
            return vec![(Some(request), None)];
        };
        let least = limit.and(own.requests.get(name)).unwrap_or_default();
        let lowest = least.min(wished).max(min).max(self.least_of_pod(name));
        let limit = wished.max(lowest).min(most_limit);
        let ratio = items().filter_map(|item| item.max_limit_request_ratio.get(name)).min();
        let raised = ratio.map_or(request, |ratio| request.max(enough(name, limit, ratio)).min(most_request));
        let pairs = [
            (Some(most_request.min(lowest)), Some(lowest)),
            both(limit.min(most_request)),
            (Some(raised.min(limit)), Some(limit)),
        ];
        pairs.into_iter().filter(|(_, limit)| *limit >= Some(lowest)).collect()
    }

    /// The most that the pod, LimitRanges and quotas leave for a resource.
    fn most(&self, name: &str, of: Of, class: Class) -> Quantity {
        let Admission { limits, demand } = self.admission;
        let running = match of {
            Of::Requests => demand.running.requests.get(name),
            Of::Limits => demand.running.limits.get(name),
        };
        let remaining = |most: Quantity| most.less(running.unwrap_or_default());
        let (whole_request, whole_limit) = demand.whole.pair(name);
        let whole = match of {
            Of::Requests => whole_request.map(remaining),
            Of::Limits => whole_limit,
        };
        let overhead = demand.overhead.get(name).unwrap_or_default();
        let of_pods = limits.items(LimitType::Pod).filter_map(|(_, item)| item.max.get(name));
        let of_quotas = self.admission.quotas(class).filter_map(|quota| of.left(quota, name));
        let of_quotas = of_quotas.map(|left| left.less(overhead));
        // What the pod has as a whole is counted instead of its containers, for CPU and memory.
        let is_counted = whole.is_none() || !CLASS_RESOURCES.contains(&name);
        let left = of_pods.chain(of_quotas).map(remaining).filter(|_| is_counted);
        let of_containers = limits.items(LimitType::Container).filter_map(|(_, item)| item.max.get(name));
        left.chain(of_containers).chain(whole).min().unwrap_or(Quantity::MAX)
    }

    /// The minimum of a limit that the pod does not have yet.
    fn least_of_pod(&self, name: &str) -> Quantity {
        let Admission { limits, demand } = self.admission;
        let has_limit = demand.effective(demand.together(&Asked::default())).limits.get(name).is_some();
        let items = limits.items(LimitType::Pod).filter(|_| !has_limit);
        items.filter_map(|(_, item)| item.min.get(name)).max().unwrap_or_default()
    }

    /// With the CPU and memory of a container of a BestEffort pod, so that it stays one.
    fn bare<'s>(&self, mut chosen: Asked<'s>) -> Option<Asked<'s>> {
        let demand = self.admission.demand;
        for name in CLASS_RESOURCES {
            chosen.set(name, demand.of_container(name));
        }
        accompany_huge_pages(&mut chosen, demand);
        (demand.class == Class::BestEffort).then_some(chosen)
    }
}

/// The least request that keeps a limit within a ratio.
fn enough(name: &str, limit: Quantity, ratio: Quantity) -> Quantity {
    let unit = if name == "cpu" { Quantity::MILLI } else { Quantity::ONE };
    let request = limit.divided_by(ratio).rounded_up(unit);
    if limit.exceeds(ratio, request) { request.plus(unit) } else { request }
}

/// The API server rejects huge pages without a request or limit of CPU or memory.
fn accompany_huge_pages(chosen: &mut Asked<'_>, demand: &Demand<'_>) {
    let has = |is_one: fn(&str) -> bool| chosen.names().any(is_one);
    if has(|name| name.starts_with("hugepages-")) && !has(|name| CLASS_RESOURCES.contains(&name)) {
        let known = CLASS_RESOURCES.into_iter().find(|name| demand.running.requests.get(name).is_some());
        chosen.set(known.unwrap_or("memory"), (Some(Quantity::ZERO), None));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{fitting::tests::limits, pod::Pod};

    /// The usual resources of Go's sidecar, fitted to a pod and its namespace.
    fn fit(own: &Value, ranges: &Value, quota: &Value) -> Result<Option<Value>, Refusal> {
        let said = json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
        let text = json!({"spec": {"containers": [{"name": "app", "resources": own}]}}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let limits = limits(ranges, quota);
        let fitted = sidecar(&said, &Demand::of(&pod, &limits), &limits)?;
        Ok(fitted.map(|fitted| fitted.resources))
    }

    fn own() -> Value {
        json!({"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "200Mi"}})
    }

    #[test]
    fn resources_that_fit_are_not_changed() {
        let quota = json!({"hard": {"limits.memory": "456Mi", "requests.cpu": "150m"}});
        let ranges = json!([{"type": "Pod", "max": {"memory": "456Mi"}}]);
        assert_eq!(fit(&own(), &ranges, &quota), Ok(None));
    }

    #[test]
    fn limits_are_lowered_to_the_requests_and_requests_to_zero() {
        let left = |quota: Value| fit(&own(), &json!([]), &quota);
        let memory = |request: &str, limit: &str| json!({"limits": {"cpu": "500m", "memory": limit}, "requests": {"cpu": "50m", "memory": request}});
        assert_eq!(left(json!({"hard": {"limits.memory": "300Mi"}})), Ok(Some(memory("64Mi", "100Mi"))));
        assert_eq!(left(json!({"hard": {"requests.memory": "110Mi"}})), Ok(Some(memory("10Mi", "256Mi"))));
        assert_eq!(left(json!({"hard": {"requests.memory": "100Mi"}})), Ok(Some(memory("0", "256Mi"))));
        assert_eq!(left(json!({"hard": {"limits.memory": "264Mi"}})), Ok(Some(memory("64Mi", "64Mi"))));
        let refusal = left(json!({"hard": {"limits.memory": "263Mi"}})).expect_err("too little is left");
        assert_eq!(refusal.object, "ResourceQuota \"team\"");
        assert_eq!(refusal.problem, "263Mi of limits.memory is left, and the pod would need 264Mi");
    }

    #[test]
    fn limit_ranges_bound_the_sidecar_and_the_pod() {
        let within = |ranges: Value| fit(&own(), &ranges, &json!({}));
        let container = json!([{"type": "Container", "min": {"memory": "80Mi"}, "max": {"cpu": "300m"}, "maxLimitRequestRatio": {"memory": "2"}}]);
        assert_eq!(
            within(container),
            Ok(Some(
                json!({"limits": {"cpu": "300m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "128Mi"}})
            ))
        );
        let refusal =
            within(json!([{"type": "Container", "max": {"memory": "63Mi"}}])).expect_err("too little");
        assert_eq!(refusal.object, "LimitRange \"bounds-0\"");
        assert_eq!(refusal.problem, "its max of memory for a container is 63Mi, and the limit would be 64Mi");
        let refusal = within(json!([{"type": "Pod", "max": {"cpu": "1"}}])).expect_err("nothing is left");
        assert_eq!(refusal.problem, "its max of cpu for a pod is 1, and the limit would be 1050m");
        let ratio = json!([{"type": "Pod", "maxLimitRequestRatio": {"memory": "2"}}]);
        let resources = within(ratio).expect("it fits").expect("fitted");
        assert_eq!(resources["limits"]["memory"], resources["requests"]["memory"], "{resources}");
    }

    #[test]
    fn a_best_effort_pod_stays_one_if_another_quota_would_count_it() {
        let quota = json!({"hard": {"pods": "0"}, "scopes": ["NotBestEffort"]});
        assert_eq!(fit(&json!({}), &json!([]), &quota), Ok(Some(json!({"limits": {}, "requests": {}}))));
        let obliging = json!({"hard": {"limits.memory": "9Gi"}, "scopes": ["NotBestEffort"]});
        assert_eq!(fit(&json!({}), &json!([]), &obliging), Ok(Some(json!({"limits": {}, "requests": {}}))));
        assert_eq!(
            fit(&json!({}), &json!([]), &json!({"hard": {"pods": "0"}, "scopes": ["Terminating"]})),
            Ok(None)
        );
    }

    #[test]
    fn quotas_count_overhead() {
        let said = json!({"limits": {"memory": "64Mi"}});
        let text = json!({"spec": {"overhead": {"memory": "10Mi"}, "containers": [{"name": "app", "resources": {"limits": {"memory": "100Mi"}}}]}}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let fits = |left: &str| {
            let limits = limits(&json!([]), &json!({"hard": {"limits.memory": left}}));
            sidecar(&said, &Demand::of(&pod, &limits), &limits).is_ok()
        };
        assert!(fits("174Mi") && !fits("173Mi"));
    }
}
