//! Tests of the resources of init containers.

use serde_json::json;

use super::*;
use crate::{
    limits::{Limit, LimitKind},
    pod::Pod,
};

/// The resources of Java's init container in a pod, at the end of its init containers.
fn neutral(spec: &Value) -> Value {
    let said =
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
    neutral_of(&said, spec)
}

fn neutral_of(said: &Value, spec: &Value) -> Value {
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let place = pod.spec.init_containers.len();
    fitted_at(said, &pod, place).map_or(said.clone(), |fitted| fitted.resources)
}

fn fitted_at(said: &Value, pod: &Pod<'_>, place: usize) -> Option<Fitted> {
    fitted_in(said, pod, place, &Limits::NONE, InitResources::Neutral)
}

fn fitted_in(
    said: &Value,
    pod: &Pod<'_>,
    place: usize,
    limits: &Limits,
    way: InitResources,
) -> Option<Fitted> {
    init_container(said, Site { demand: &Demand::of(pod, limits), limits, place }, way)
}

fn containers(resources: &Value) -> Value {
    json!({"containers": [{"name": "app", "resources": resources}]})
}

#[test]
fn a_pod_with_enough_resources_needs_no_adjustment() {
    let spec = containers(&json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
    assert_eq!(neutral(&spec)["requests"], json!({"cpu": "50m", "memory": "64Mi"}));
}

#[test]
fn a_request_is_lowered_to_that_of_the_pod() {
    let spec = containers(&json!({"requests": {"cpu": "20m", "memory": "1Gi"}}));
    let resources = neutral(&spec);
    assert_eq!(resources["requests"], json!({"cpu": "20m", "memory": "64Mi"}));
    assert_eq!(resources["limits"], json!({}), "the pod has no limits, which are added up, too");
}

#[test]
fn a_burstable_pod_gets_no_resource_that_it_does_not_set() {
    let spec = containers(&json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}));
    assert_eq!(neutral(&spec), json!({"limits": {"memory": "256Mi"}, "requests": {"memory": "64Mi"}}));
    let gpu = json!({"limits": {"example.com/gpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}});
    assert_eq!(neutral_of(&gpu, &spec), json!({"limits": {"memory": "1Gi"}}));
}

#[test]
fn small_init_containers_do_not_limit_the_copy_of_a_pod_without_limits() {
    let little = json!({"cpu": "10m", "memory": "16Mi"});
    let mut spec = containers(&json!({}));
    spec["initContainers"] = json!([{"name": "wait", "resources": {"requests": little, "limits": little}}]);
    assert_eq!(neutral(&spec), json!({"limits": {}, "requests": little}));

    // After a native sidecar nearly nothing is left of the maximum.
    let memory = |amount: &str| json!({"requests": {"memory": amount}, "limits": {"memory": amount}});
    let mesh = json!({"name": "mesh", "restartPolicy": "Always", "resources": memory("128Mi")});
    spec["initContainers"] = json!([mesh, {"name": "setup", "resources": memory("1Mi")}]);
    assert_eq!(neutral(&spec)["limits"], json!({}));

    // With a limit on every container, the pod's limit is used.
    spec["containers"][0]["resources"] = json!({"limits": {"memory": "200Mi"}});
    assert_eq!(neutral(&spec)["limits"]["memory"], "200Mi");
}

#[test]
fn a_best_effort_pod_stays_one() {
    assert_eq!(neutral(&containers(&json!({}))), json!({"limits": {}, "requests": {}}));
}

#[test]
fn a_guaranteed_pod_stays_one_even_if_nothing_is_configured() {
    let spec = containers(&json!({"limits": {"cpu": "200m", "memory": "1Gi"}}));
    let same = json!({"cpu": "200m", "memory": "256Mi"});
    assert_eq!(neutral(&spec), json!({"limits": same, "requests": same}));
    let all = json!({"cpu": "200m", "memory": "1Gi"});
    assert_eq!(neutral_of(&json!({}), &spec), json!({"limits": all, "requests": all}));
}

#[test]
fn little_memory_has_a_note_and_the_class_stays() {
    let spec = containers(&json!({"limits": {"cpu": "20m", "memory": "64Mi"}}));
    let said = json!({"limits": {"memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let fitted = fitted_at(&said, &pod, 0).expect("notes");
    let all = json!({"cpu": "20m", "memory": "64Mi"});
    assert_eq!(fitted.resources, json!({"limits": {"memory": "64Mi", "cpu": "20m"}, "requests": all}));
    let [Note::ResourcesLowered { .. }, little] = &fitted.notes[..] else { panic!("{:?}", fitted.notes) };
    assert_eq!(*little, Note::MemoryTooLittle { allowed: "64Mi".to_owned() });
}

#[test]
fn only_native_sidecars_before_the_position_are_added() {
    let sidecar =
        |name| json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": "30m"}}});
    let mut spec = containers(&json!({"requests": {"cpu": "10m"}}));
    spec["initContainers"] = json!([sidecar("one"), sidecar("two")]);
    assert_eq!(neutral(&spec)["requests"]["cpu"], "10m", "70m in all, 60m running");
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let fitted = fitted_at(&json!({"requests": {"cpu": "50m"}}), &pod, 1).expect("lowered");
    assert_eq!(fitted.resources["requests"]["cpu"], "40m", "70m in all, 30m running");
}

#[test]
fn the_resources_of_the_whole_pod_are_never_exceeded() {
    let mut spec = containers(&json!({}));
    spec["resources"] =
        json!({"requests": {"cpu": "20m", "memory": "200Mi"}, "limits": {"cpu": "100m", "memory": "200Mi"}});
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let said =
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
    for way in [InitResources::Exact, InitResources::Neutral] {
        let fitted = fitted_in(&said, &pod, 0, &Limits::NONE, way).expect("lowered");
        let resources = fitted.resources;
        assert_eq!(resources["limits"], json!({"cpu": "100m", "memory": "200Mi"}), "{way:?}");
        assert_eq!(resources["requests"]["cpu"], "20m", "{way:?}");
        assert!(matches!(fitted.notes[0], Note::ResourcesLowered { .. }), "{way:?}");
    }
}

#[test]
fn the_defaulted_request_of_the_whole_pod_stays_the_same() {
    let mut spec = containers(&json!({"requests": {"cpu": "30m"}}));
    spec["resources"] = json!({"limits": {"cpu": "4", "memory": "4Gi"}});
    let expected = json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "30m"}});
    assert_eq!(neutral(&spec), expected, "the request of memory becomes 4Gi while no container has one");
}

/// Java's default resources, adjusted to a namespace with LimitRanges and quotas.
fn bounded(way: InitResources, spec: &Value, ranges: &Value, quota: &Value) -> Option<(Value, Vec<Note>)> {
    let said =
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
    let text = json!({"spec": spec}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let limits = limits(ranges, quota);
    let fitted = fitted_in(&said, &pod, pod.spec.init_containers.len(), &limits, way)?;
    Some((fitted.resources, fitted.notes))
}

/// LimitRanges of these items, one each, and a quota of this specification.
pub(super) fn limits(ranges: &Value, quota: &Value) -> Limits {
    let mut limits = Limits::default();
    let mut problems = Vec::new();
    for (index, item) in ranges.as_array().into_iter().flatten().enumerate() {
        let object = json!({"metadata": {"name": format!("bounds-{index}")}, "spec": {"limits": [item]}});
        limits.put(Limit::read(LimitKind::Range, &object, &mut problems));
    }
    let object = json!({"metadata": {"name": "team"}, "spec": quota});
    limits.put(Limit::read(LimitKind::Quota, &object, &mut problems));
    assert!(problems.is_empty(), "{problems:?}");
    limits
}

fn neutral_in(spec: &Value, ranges: &Value) -> Value {
    bounded(InitResources::Neutral, spec, ranges, &json!({})).expect("fitted").0
}

#[test]
fn a_minimum_raises_a_request_within_those_of_the_pod() {
    let spec = containers(&json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
    let ranges = json!([{"type": "Container", "min": {"memory": "128Mi"}}, {"type": "Container", "min": {"memory": "96Mi", "cpu": "20m"}}]);
    assert_eq!(
        neutral_in(&spec, &ranges),
        json!({"limits": {}, "requests": {"cpu": "50m", "memory": "128Mi"}})
    );
    let (_, notes) = bounded(InitResources::Neutral, &spec, &ranges, &json!({})).expect("fitted");
    let [Note::ResourcesLowered { due_to, .. }] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(due_to[..], [r#"LimitRange "bounds-0""#, r#"LimitRange "bounds-1""#]);
}

#[test]
fn a_ratio_raises_the_request_and_then_lowers_the_limit() {
    let ranges = json!([{"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}]);
    let own = |request: &str| {
        let own = json!({"requests": {"memory": request}, "limits": {"memory": "512Mi"}});
        neutral_in(&containers(&own), &ranges)
    };
    let memory =
        |request: &str, limit: &str| json!({"limits": {"memory": limit}, "requests": {"memory": request}});
    assert_eq!(own("256Mi"), memory("128Mi", "256Mi"));
    let mut two = containers(&json!({"requests": {"memory": "50Mi"}, "limits": {"memory": "100Mi"}}));
    two["containers"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "b", "resources": {"limits": {"memory": "40Mi"}}}));
    assert_eq!(neutral_in(&two, &ranges), memory("70Mi", "140Mi"), "90Mi and 140Mi in all");
    let tight = json!([{"type": "Container", "maxLimitRequestRatio": {"memory": "1.1"}}]);
    let spec = containers(&json!({"requests": {"memory": "500Mi"}, "limits": {"memory": "512Mi"}}));
    let resources = neutral_in(&spec, &tight);
    assert_eq!(resources["limits"]["memory"], "256Mi");
    assert_eq!(resources["requests"]["memory"], "244032233", "rounded up");
}

#[test]
fn defaults_of_limit_ranger_are_explicit() {
    let ranges = json!([{"type": "Container", "default": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "4Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"}}]);
    // The pod as LimitRanger leaves it, and as a file has it.
    for own in [json!({"limits": ranges[0]["default"], "requests": ranges[0]["defaultRequest"]}), json!({})] {
        let resources = neutral_in(&containers(&own), &ranges);
        let limits = json!({"cpu": "500m", "memory": "256Mi", "ephemeral-storage": "4Gi"});
        assert_eq!(resources["limits"], limits, "{own}");
        assert_eq!(
            resources["requests"],
            json!({"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "1Gi"})
        );
    }
}

#[test]
fn a_quota_requires_init_containers_to_set_cpu_and_memory() {
    let quota = json!({"hard": {"limits.cpu": "9", "requests.ephemeral-storage": "9Gi", "cpu": "9"}});
    let spec = containers(&json!({"requests": {"cpu": "0"}, "limits": {"cpu": "1"}}));
    let (resources, _) = bounded(InitResources::Neutral, &spec, &json!([]), &quota).expect("fitted");
    assert_eq!(resources, json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "0"}}));
    let mut whole = containers(&json!({}));
    whole["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    let (resources, notes) = bounded(InitResources::Neutral, &whole, &json!([]), &quota).expect("fitted");
    assert_eq!(resources, json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "50m"}}), "{notes:?}");
}

#[test]
fn a_gpu_that_limit_ranger_would_default_is_not_used() {
    let ranges = json!([{"type": "Container", "max": {"example.com/gpu": "4"}}]);
    let spec = containers(&json!({"limits": {"memory": "1Gi", "example.com/gpu": "2"}}));
    assert_eq!(neutral_in(&spec, &ranges)["limits"]["example.com/gpu"], "0");
    let at_least =
        json!([{"type": "Container", "min": {"example.com/gpu": "1"}, "max": {"example.com/gpu": "4"}}]);
    let resources = neutral_in(&spec, &at_least);
    assert_eq!(resources["limits"]["example.com/gpu"], "2", "as the container has it");
    assert_eq!(resources["requests"]["example.com/gpu"], "2");
}

#[test]
fn huge_pages_need_cpu_or_memory() {
    let ranges = json!([{"type": "Container", "max": {"hugepages-2Mi": "1Gi"}}]);
    let own = json!({"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"cpu": "10m"}});
    let said = json!({"limits": {}, "requests": {}});
    let text = json!({"spec": containers(&own)}).to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let limits = limits(&ranges, &json!({}));
    let fitted = fitted_in(&said, &pod, 0, &limits, InitResources::Neutral).expect("fitted");
    let expected = json!({"limits": {"hugepages-2Mi": "0"}, "requests": {"hugepages-2Mi": "0", "cpu": "0"}});
    assert_eq!(fitted.resources, expected);
}

#[test]
fn exact_resources_are_adjusted_only_if_the_pod_would_be_rejected() {
    let exact = |ranges: Value, quota: Value| {
        let spec = containers(
            &json!({"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}}),
        );
        bounded(InitResources::Exact, &spec, &ranges, &quota)
    };
    let fine = json!([{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "10m"}}, {"type": "Pod", "max": {"memory": "256Mi"}}]);
    assert!(exact(fine, json!({"hard": {"requests.memory": "64Mi"}})).is_none(), "as it is said");
    for (ranges, quota, due_to) in [
        (json!([{"type": "Container", "min": {"cpu": "60m"}}]), json!({}), "LimitRange \"bounds-0\""),
        (json!([{"type": "Pod", "max": {"memory": "255Mi"}}]), json!({}), "LimitRange \"bounds-0\""),
        (json!([]), json!({"hard": {"requests.memory": "63Mi"}}), "ResourceQuota \"team\""),
        (json!([]), json!({"hard": {"limits.cpu": "400m"}}), "ResourceQuota \"team\""),
    ] {
        let fitted = exact(ranges.clone(), quota.clone());
        let (_, notes) = fitted.unwrap_or_else(|| panic!("{ranges} {quota} would reject it"));
        let Note::ResourcesLowered { due_to: named, .. } = &notes[0] else { panic!("{notes:?}") };
        assert_eq!(named[..], [due_to], "{ranges} {quota}");
    }
}
