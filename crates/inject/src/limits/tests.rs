use serde_json::{Value, json};

use super::*;

fn read(kind: LimitKind, object: &Value) -> Limit {
    let mut problems = Vec::new();
    let limit = Limit::read(kind, object, &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    limit
}

fn range(name: &str, most: &str) -> Limit {
    let items = json!([{"type": "Container", "max": {"memory": most}}]);
    read(LimitKind::Range, &json!({"metadata": {"name": name}, "spec": {"limits": items}}))
}

fn quota(name: &str, used: &str) -> Limit {
    let status = json!({"hard": {"cpu": "4"}, "used": {"cpu": used, "pods": used}});
    read(
        LimitKind::Quota,
        &json!({"metadata": {"name": name}, "spec": {"hard": {"cpu": "4", "pods": "9"}}, "status": status}),
    )
}

fn account(name: &str, annotation: &str) -> Limit {
    let annotations = json!({ENFORCE_MOUNTABLE_SECRETS: annotation});
    read(LimitKind::ServiceAccount, &json!({"metadata": {"name": name, "annotations": annotations}}))
}

#[test]
fn objects_are_stored_by_name_and_removed_completely() {
    let mut limits = Limits::default();
    assert!(limits.put(range("b", "1Gi")) && limits.put(range("a", "1Gi")) && limits.put(range("b", "2Gi")));
    assert!(limits.put(quota("q", "1")) && limits.put(account("default", "true")));
    let names: Vec<_> = limits.limit_ranges().iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["a", "b"]);
    let items: Vec<_> = limits
        .items(LimitType::Container)
        .map(|(range, item)| format!("{} {}", range.name, item.max.get("memory").expect("a maximum")))
        .collect();
    assert_eq!(items, ["a 1Gi", "b 2Gi"]);
    assert_eq!(limits.items(LimitType::Pod).count(), 0);
    assert_eq!(limits.quotas_of(&PodScopes::default()).count(), 1);
    assert!(limits.forget(LimitKind::Range, "a") && !limits.forget(LimitKind::Range, "a"));
    assert!(limits.retain(LimitKind::Range, |_| false) && limits.forget(LimitKind::Quota, "q"));
    assert!(!limits.is_empty() && limits.forget(LimitKind::ServiceAccount, "default"));
    assert!(limits.is_empty(), "{limits:?}");
}

#[test]
fn irrelevant_updates_are_no_change() {
    let mut limits = Limits::default();
    for limit in [range("a", "1Gi"), quota("q", "1"), account("x", "true")] {
        assert!(limits.put(limit.clone()), "{limit:?}");
        assert!(!limits.put(limit.clone()), "{limit:?}");
    }
    assert!(limits.put(quota("q", "2")), "more is used");
    assert!(!limits.put(account("y", "false")), "never known");
    let pods = json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "4", "count/secrets": "3"}}});
    assert!(!limits.put(read(LimitKind::Quota, &pods)), "injection adds no pods");
    assert!(limits.put(account("x", "false")), "no longer");
}

#[test]
fn a_clone_is_not_changed_by_later_updates() {
    let mut limits = Limits::default();
    limits.put(quota("q", "1"));
    let before = limits.clone();
    limits.put(quota("q", "2"));
    let left = |limits: &Limits| limits.quotas()[0].left_of_requests("cpu").map(|left| left.to_string());
    assert_eq!((left(&before).as_deref(), left(&limits).as_deref()), (Some("3"), Some("2")));
}

#[test]
fn a_service_account_is_strict_if_go_parses_the_value_as_true() {
    for (value, expected) in
        [("true", true), ("1", true), ("T", true), ("yes", false), ("", false), ("tRUE", false)]
    {
        let mut limits = Limits::default();
        limits.put(account("default", value));
        assert_eq!(limits.enforces_mountable_secrets("default"), expected, "{value}");
        assert_eq!(limits.enforces_mountable_secrets(""), expected, "{value}: pods that name none have it");
        assert!(!limits.enforces_mountable_secrets("other"), "{value}");
    }
}
