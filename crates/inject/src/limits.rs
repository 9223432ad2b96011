//! The limits of a namespace: its LimitRanges, its ResourceQuotas, and its
//! ServiceAccounts that may mount only the Secrets they list.
//!
//! Plain data, parsed from one object at a time. Unreadable parts
//! are reported and skipped, and the rest is used. Most namespaces have none of these objects,
//! and store only a null pointer.

mod limit_range;
mod resource_quota;

use std::sync::{Arc, Weak};

use serde_json::Value;

pub use limit_range::{LimitItem, LimitRange, LimitType, ResourceList};
pub use resource_quota::{PODS, PodScopes, ResourceQuota, Scope, ScopeOperator, ScopeRequirement};

/// The annotation by which a ServiceAccount allows its pods only the Secrets that it lists.
pub const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// An object that limits pods.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A LimitRange.
    Range(LimitRange),
    /// A ResourceQuota.
    Quota(ResourceQuota),
    /// A ServiceAccount, by its name. `is_strict` if its pods may use only the Secrets that it lists.
    ServiceAccount {
        /// Its name.
        name: Box<str>,
        /// Whether it has the annotation [`ENFORCE_MOUNTABLE_SECRETS`].
        is_strict: bool,
    },
}

/// The kinds of such objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// LimitRange.
    Range,
    /// ResourceQuota.
    Quota,
    /// ServiceAccount.
    ServiceAccount,
}

impl Limit {
    /// Parses an object of a kind. A message is added to `problems`
    /// for each unreadable part; it names the field and what is valid.
    pub fn read(kind: LimitKind, object: &Value, problems: &mut Vec<String>) -> Self {
        match kind {
            LimitKind::Range => Self::Range(LimitRange::read(object, problems)),
            LimitKind::Quota => Self::Quota(ResourceQuota::read(object, problems)),
            LimitKind::ServiceAccount => {
                let metadata = &object["metadata"];
                let is_strict =
                    metadata["annotations"][ENFORCE_MOUNTABLE_SECRETS].as_str().is_some_and(is_true);
                Self::ServiceAccount { name: name_of(object), is_strict }
            }
        }
    }

    /// Its kind.
    pub fn kind(&self) -> LimitKind {
        match self {
            Self::Range(_) => LimitKind::Range,
            Self::Quota(_) => LimitKind::Quota,
            Self::ServiceAccount { .. } => LimitKind::ServiceAccount,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Range(range) => &range.name,
            Self::Quota(quota) => &quota.name,
            Self::ServiceAccount { name, .. } => name,
        }
    }

    /// Whether it has any effect on injection. Others are not stored.
    pub fn bounds_anything(&self) -> bool {
        match self {
            Self::Range(range) => !range.items.is_empty(),
            Self::Quota(quota) => !quota.hard.is_empty(),
            Self::ServiceAccount { is_strict, .. } => *is_strict,
        }
    }
}

impl LimitKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Range, Self::Quota, Self::ServiceAccount];

    /// The kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "LimitRange",
            Self::Quota => "ResourceQuota",
            Self::ServiceAccount => "ServiceAccount",
        }
    }

    /// The API resource, as in roles.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Range => "limitranges",
            Self::Quota => "resourcequotas",
            Self::ServiceAccount => "serviceaccounts",
        }
    }
}

/// The values that Go's `strconv.ParseBool`, which Kubernetes uses, parses as true.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// The name in an object's metadata.
fn name_of(object: &Value) -> Box<str> {
    object["metadata"]["name"].as_str().unwrap_or_default().into()
}

/// The default ServiceAccount.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// The limits of a namespace. Clones share the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(Option<Arc<Objects>>);

/// The objects, each list sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Objects {
    limit_ranges: Vec<Arc<LimitRange>>,
    quotas: Vec<Arc<ResourceQuota>>,
    strict_accounts: Vec<Box<str>>,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self(None);

    /// The LimitRanges, by name. All of them apply; Kubernetes applies them in no defined order.
    pub fn limit_ranges(&self) -> &[Arc<LimitRange>] {
        self.0.as_deref().map_or(&[], |objects| &objects.limit_ranges)
    }

    /// The ResourceQuotas that affect injection, by name.
    pub fn quotas(&self) -> &[Arc<ResourceQuota>] {
        self.0.as_deref().map_or(&[], |objects| &objects.quotas)
    }

    /// The items of a type in all LimitRanges, each with its LimitRange.
    pub fn items(&self, kind: LimitType) -> impl Iterator<Item = (&LimitRange, &LimitItem)> {
        let all =
            self.limit_ranges().iter().flat_map(|range| range.items.iter().map(move |item| (&**range, item)));
        all.filter(move |(_, item)| item.kind == kind)
    }

    /// The ResourceQuotas that count a pod.
    pub fn quotas_of<'l>(&'l self, pod: &'l PodScopes<'_>) -> impl Iterator<Item = &'l ResourceQuota> {
        self.quotas().iter().map(|quota| &**quota).filter(|quota| quota.counts_pod(pod))
    }

    /// Whether pods of a ServiceAccount may use only the Secrets that it
    /// lists. An empty name means the default ServiceAccount.
    pub fn enforces_mountable_secrets(&self, account: &str) -> bool {
        let account = if account.is_empty() { DEFAULT_SERVICE_ACCOUNT } else { account };
        let accounts = self.0.as_deref().map_or(&[][..], |objects| &objects.strict_accounts);
        accounts.binary_search_by(|known| (**known).cmp(account)).is_ok()
    }

    /// Whether there are no limits.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Inserts or updates an object. Returns false if that changes nothing.
    pub fn put(&mut self, limit: Limit) -> bool {
        if !limit.bounds_anything() {
            return self.forget(limit.kind(), limit.name());
        }
        let known = self.0.as_deref();
        match limit {
            Limit::Range(range) => {
                if known.is_some_and(|known| known.limit_ranges.iter().any(|one| **one == range)) {
                    return false;
                }
                let name = range.name.clone();
                replace(
                    &mut self.objects().limit_ranges,
                    Arc::new(range),
                    |one| *one.name < *name,
                    |one| one.name == name,
                );
            }
            Limit::Quota(quota) => {
                if known.is_some_and(|known| known.quotas.iter().any(|one| **one == quota)) {
                    return false;
                }
                let name = quota.name.clone();
                replace(
                    &mut self.objects().quotas,
                    Arc::new(quota),
                    |one| *one.name < *name,
                    |one| one.name == name,
                );
            }
            Limit::ServiceAccount { name, .. } => {
                if self.enforces_mountable_secrets(&name) {
                    return false;
                }
                replace(
                    &mut self.objects().strict_accounts,
                    name.clone(),
                    |one| **one < *name,
                    |one| *one == name,
                );
            }
        }
        true
    }

    /// Removes an object. Returns false if it was not known.
    pub fn forget(&mut self, kind: LimitKind, name: &str) -> bool {
        self.retain(kind, |known| known != name)
    }

    /// Removes the objects of a kind that `keep` does not keep, by name. Returns false if all are kept.
    pub fn retain(&mut self, kind: LimitKind, keep: impl Fn(&str) -> bool) -> bool {
        let Some(known) = self.0.as_deref() else {
            return false;
        };
        if known.names(kind).all(&keep) {
            return false;
        }
        let objects = self.objects();
        match kind {
            LimitKind::Range => objects.limit_ranges.retain(|one| keep(&one.name)),
            LimitKind::Quota => objects.quotas.retain(|one| keep(&one.name)),
            LimitKind::ServiceAccount => objects.strict_accounts.retain(|one| keep(one)),
        }
        if *objects == Objects::default() {
            self.0 = None;
        }
        true
    }

    fn objects(&mut self) -> &mut Objects {
        Arc::make_mut(self.0.get_or_insert_default())
    }
}

impl Objects {
    fn names(&self, kind: LimitKind) -> impl Iterator<Item = &str> {
        let of = move |wanted| kind == wanted;
        let ranges = self.limit_ranges.iter().map(|one| &*one.name).filter(move |_| of(LimitKind::Range));
        let quotas = self.quotas.iter().map(|one| &*one.name).filter(move |_| of(LimitKind::Quota));
        let accounts = self.strict_accounts.iter().map(|one| &**one);
        ranges.chain(quotas).chain(accounts.filter(move |_| of(LimitKind::ServiceAccount)))
    }
}

/// Inserts or replaces one by name.
fn replace<T>(list: &mut Vec<T>, one: T, is_before: impl Fn(&T) -> bool, is_same: impl Fn(&T) -> bool) {
    let at = list.partition_point(is_before);
    match list.get_mut(at).filter(|known| is_same(known)) {
        Some(known) => *known = one,
        None => list.insert(at, one),
    }
}

/// The maximum number of different lists that are compared, so that a cluster in
/// which all differ needs only more memory.
const MOST: usize = 64;

/// The lists of items in use.
#[derive(Debug, Default)]
pub struct SharedItems(Vec<Weak<[LimitItem]>>);

impl SharedItems {
    /// The same object, with equal items that are already in use, if any.
    #[must_use]
    pub fn share(&mut self, limit: Limit) -> Limit {
        let Limit::Range(mut range) = limit else {
            return limit;
        };
        if let Some(known) = self.0.iter().filter_map(Weak::upgrade).find(|known| *known == range.items) {
            range.items = known;
        } else {
            self.0.retain(|items| items.strong_count() > 0);
            if self.0.len() < MOST {
                self.0.push(Arc::downgrade(&range.items));
            }
        }
        Limit::Range(range)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert!(
            limits.put(range("b", "1Gi")) && limits.put(range("a", "1Gi")) && limits.put(range("b", "2Gi"))
        );
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
        let pods =
            json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "4", "count/secrets": "3"}}});
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
            assert_eq!(
                limits.enforces_mountable_secrets(""),
                expected,
                "{value}: pods that name none have it"
            );
            assert!(!limits.enforces_mountable_secrets("other"), "{value}");
        }
    }

    fn items(shared: &mut SharedItems, most: usize) -> Arc<[LimitItem]> {
        let spec = json!({"limits": [{"type": "Pod", "max": {"cpu": most}}]});
        let limit = Limit::read(LimitKind::Range, &json!({"spec": spec}), &mut Vec::new());
        match shared.share(limit) {
            Limit::Range(range) => range.items,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_items_are_stored_once_and_unused_ones_are_removed() {
        let mut shared = SharedItems::default();
        let one = items(&mut shared, 1);
        assert!(Arc::ptr_eq(&one, &items(&mut shared, 1)));
        assert!(!Arc::ptr_eq(&one, &items(&mut shared, 2)));
        for most in 0..1000 {
            drop(items(&mut shared, most));
        }
        assert!(shared.0.len() <= 2, "{}", shared.0.len());
        let held: Vec<_> = (0..1000).map(|most| items(&mut shared, most)).collect();
        assert_eq!((held.len(), shared.0.len()), (1000, MOST));
        assert!(Arc::ptr_eq(&one, &items(&mut shared, 1)));
    }
}
