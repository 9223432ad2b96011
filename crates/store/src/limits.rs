//! The writing side for LimitRanges, ResourceQuotas, and ServiceAccounts that restrict the Secrets of pods.

use serde_json::Value;

use super::Writer;
use otel_webhook_inject::limits::{Limit, LimitKind, Limits};

impl Writer {
    /// Adds or replaces such an object. Returns false if nothing relevant has changed: most changes of a ResourceQuota's
    /// status are object counts, and need not be published.
    pub fn put_limit(&mut self, kind: LimitKind, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut problems = Vec::new();
        let limit = self.shared_items.share(Limit::read(kind, object, &mut problems));
        for problem in problems {
            let (kind, name) = (kind.name(), limit.name());
            tracing::warn!(
                kind,
                namespace,
                name,
                problem,
                "cannot read a part of an object, which is ignored"
            );
        }
        self.change_limits(namespace, |limits| limits.put(limit))
    }

    /// Removes such an object. Returns false if it was not stored.
    pub fn forget_limit(&mut self, kind: LimitKind, namespace: &str, name: &str) -> bool {
        self.change_limits(namespace, |limits| limits.forget(kind, name))
    }

    /// Removes the objects of a kind that are not selected, by namespace and name. Returns false if all are kept.
    pub fn keep_limits(&mut self, kind: LimitKind, keep: impl Fn(&str, &str) -> bool) -> bool {
        let all = self.working.catalogue.namespaces.iter();
        let bounded: Vec<_> =
            all.filter(|(_, known)| !known.limits.is_empty()).map(|(name, _)| name.clone()).collect();
        let mut is_changed = false;
        for namespace in bounded {
            is_changed |=
                self.change_limits(&namespace, |limits| limits.retain(kind, |name| keep(&namespace, name)));
        }
        is_changed
    }

    /// Unchanged namespaces are not copied.
    fn change_limits(&mut self, namespace: &str, change: impl FnOnce(&mut Limits) -> bool) -> bool {
        let known = self.working.catalogue.namespace(namespace);
        let mut limits = known.map(|known| known.limits.clone()).unwrap_or_default();
        let is_changed = change(&mut limits);
        if is_changed {
            self.edit(namespace, |known| known.limits = limits);
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_inject::catalogue::Namespace;

    fn range(namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"namespace": namespace, "name": name},
            "spec": {"limits": [{"type": "Container", "min": {"cpu": "10m"}}]},
        })
    }

    fn quota(used: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": "shop", "name": "all"},
            "spec": {"hard": {"limits.cpu": "4", "pods": "9"}},
            "status": {"hard": {"limits.cpu": "4", "pods": "9"}, "used": used},
        })
    }

    fn account(name: &str, annotations: &Value) -> Value {
        let metadata = json!({"namespace": "shop", "name": name, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    }

    fn writer() -> Writer {
        Writer::new(DefaultImages::default())
    }

    fn known(writer: &Writer) -> Vec<(String, usize)> {
        let namespaces = writer.working.catalogue.namespaces.iter();
        let count = |known: &Namespace| known.limits.limit_ranges().len();
        let mut known: Vec<_> = namespaces.map(|(name, known)| (name.to_string(), count(known))).collect();
        known.sort();
        known
    }

    #[test]
    fn documents_of_all_kinds_are_added() {
        let mut writer = writer();
        let mut unplaced = range("", "of-file");
        unplaced["metadata"].as_object_mut().expect("metadata").remove("namespace");
        let list = json!({"apiVersion": "v1", "kind": "LimitRangeList", "items": [unplaced]});
        let strict = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
        for document in [list, quota(&json!({})), account("strict", &strict), account("usual", &json!({}))] {
            writer.put_document(&document, "shop");
        }
        writer.publish();
        let snapshot = writer.store().snapshot();
        let limits = &snapshot.catalogue.namespace("shop").expect("known").limits;
        assert_eq!(&*limits.limit_ranges()[0].name, "of-file");
        assert_eq!(&*limits.quotas()[0].name, "all");
        let strict = ["strict", "usual"].map(|name| limits.enforces_mountable_secrets(name));
        assert_eq!(strict, [true, false]);
    }

    #[test]
    fn irrelevant_changes_are_not_published() {
        let mut writer = writer();
        let quota = |cpu: &str, pods: &str| quota(&json!({"limits.cpu": cpu, "pods": pods}));
        assert!(writer.put_limit(LimitKind::Quota, &quota("1", "1")));
        assert!(!writer.put_limit(LimitKind::Quota, &quota("1", "2")), "a pod without limits");
        assert!(writer.put_limit(LimitKind::Quota, &quota("2", "3")));
        assert!(!writer.put_limit(LimitKind::ServiceAccount, &account("usual", &json!({}))));
        assert!(!writer.forget_limit(LimitKind::ServiceAccount, "shop", "usual"));
        assert!(!writer.forget_limit(LimitKind::Range, "elsewhere", "none"));
        assert_eq!(known(&writer), [("shop".to_owned(), 0)], "a namespace without any is not stored");
    }

    #[test]
    fn only_objects_that_a_list_no_longer_has_are_removed() {
        let mut writer = writer();
        for (namespace, name) in [("shop", "a"), ("shop", "b"), ("other", "a")] {
            assert!(writer.put_limit(LimitKind::Range, &range(namespace, name)));
        }
        writer.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}));
        writer.put_limit(LimitKind::Quota, &quota(&json!({})));
        assert!(writer.keep_limits(LimitKind::Range, |namespace, name| (namespace, name) == ("shop", "b")));
        assert!(!writer.keep_limits(LimitKind::Range, |namespace, name| (namespace, name) == ("shop", "b")));
        assert_eq!(known(&writer), [("other".to_owned(), 0), ("shop".to_owned(), 1)]);
        writer.forget_namespace("shop");
        let limits = &writer.working.catalogue.namespace("shop").expect("its objects are known").limits;
        assert_eq!(
            (limits.limit_ranges().len(), limits.quotas().len()),
            (1, 1),
            "they are removed separately"
        );
    }

    #[test]
    fn equal_limit_ranges_of_many_namespaces_are_stored_once() {
        let mut writer = writer();
        for namespace in ["one", "other"] {
            writer.put_limit(LimitKind::Range, &range(namespace, "bounds"));
        }
        let items = |namespace: &str| {
            let known = writer.working.catalogue.namespace(namespace).expect("known");
            known.limits.limit_ranges()[0].items.as_ptr()
        };
        assert_eq!(items("one"), items("other"));
    }
}
