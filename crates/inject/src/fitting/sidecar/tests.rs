//! Tests of the resources of a sidecar.

use serde_json::json;

use super::*;
use crate::{fitting::tests::limits, pod::Pod};

/// The usual resources of Go's sidecar, fitted to a pod and its namespace.
fn fit(own: &Value, ranges: &Value, quota: &Value) -> Result<Option<Value>, Refusal> {
    let said =
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
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
    let refusal = within(json!([{"type": "Container", "max": {"memory": "63Mi"}}])).expect_err("too little");
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
