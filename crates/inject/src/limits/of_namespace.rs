//! The limits of one namespace.

use std::sync::Arc;

use super::{
    limit::{Limit, LimitKind},
    limit_range::{LimitItem, LimitRange, LimitType},
    resource_quota::ResourceQuota,
    scope::PodScopes,
};

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
