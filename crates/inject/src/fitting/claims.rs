//! Checks that a namespace accepts the claims of the added volumes. The API server
//! does not check them in a pod; if a claim is rejected later, the
//! pod waits for it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    edit::{NewVolume, PodEdit},
    fitting::admission::Refusal,
    json,
    limits::{LimitType, Limits, ResourceQuota},
};
use otel_webhook_api::quantity::Quantity;

/// The deprecated annotation of claims for the storage class.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The claim of an ephemeral volume.
struct Claim {
    template: Value,
}

impl Claim {
    /// The claim of a volume's source, if it has one.
    fn of_source(source: &Value) -> Option<Self> {
        Self::of_ephemeral(source.get("ephemeral")?)
    }

    fn of_ephemeral(ephemeral: &Value) -> Option<Self> {
        Some(Self { template: ephemeral.get("volumeClaimTemplate")?.clone() })
    }

    fn request(&self, resource: &str) -> Option<Quantity> {
        Quantity::of(&self.template["spec"]["resources"]["requests"][resource])
    }

    /// The storage class; `None` for the cluster's default, which is unknown here.
    fn class(&self) -> Option<&str> {
        let annotated = self.template["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
        let class = annotated.or(self.template["spec"]["storageClassName"].as_str());
        class.filter(|class| !class.is_empty())
    }

    fn attributes_class(&self) -> Option<&str> {
        self.template["spec"]["volumeAttributesClassName"].as_str().filter(|class| !class.is_empty())
    }
}

/// Checks that the claims of the volumes to add are accepted,
/// together with those of the pod itself and those already added.
///
/// # Errors
/// The LimitRange or quota that rejects one.
pub fn check(limits: &Limits, edit: &PodEdit<'_>, sources: &[&Value]) -> Result<(), Refusal> {
    if limits.is_empty() {
        return Ok(());
    }
    let new: Vec<Claim> = sources.iter().filter_map(|source| Claim::of_source(source)).collect();
    if new.is_empty() {
        return Ok(());
    }
    for claim in &new {
        let mut items = limits.items(LimitType::PersistentVolumeClaim);
        items.try_for_each(|(range, item)| Refusal::of_claim(range, item, |name| claim.request(name)))?;
    }
    let own = edit.pod.spec.volumes.iter().filter_map(|volume| json::value_of(volume.ephemeral?).ok());
    let own = own.filter_map(|ephemeral| Claim::of_ephemeral(&ephemeral));
    let added = edit.volumes.iter().filter_map(|NewVolume { source, .. }| Claim::of_source(source));
    let all: Vec<Claim> = own.chain(added).chain(new).collect();
    limits.quotas().iter().try_for_each(|quota| check_quota(quota, &all))
}

fn check_quota(quota: &ResourceQuota, claims: &[Claim]) -> Result<(), Refusal> {
    let counted = || claims.iter().filter(|claim| quota.counts_claim(claim.attributes_class()));
    // Storage and number, by class; those of all claims have none.
    let mut sums: BTreeMap<Option<&str>, (Quantity, Quantity)> = BTreeMap::from([(None, Default::default())]);
    for claim in counted() {
        let storage = claim.request("storage").unwrap_or_default().rounded_up(Quantity::ONE);
        for class in claim.class().map(Some).into_iter().chain([None]) {
            let (sum, count) = sums.entry(class).or_default();
            (*sum, *count) = (sum.plus(storage), count.plus(Quantity::ONE));
        }
    }
    let classes = counted().filter_map(Claim::class).map(Some);
    for class in classes.chain([None]) {
        // Each class once.
        let Some((storage, count)) = sums.remove(&class) else { continue };
        let of = class.map(|class| format!(" of storage class {class}")).unwrap_or_default();
        let bounds = [
            (quota.left_of_storage(class), storage, "storage"),
            (quota.left_of_claims(class), count, "claims"),
        ];
        for (left, needed, what) in bounds {
            if let Some(left) = left.filter(|left| needed > *left) {
                return Err(Refusal::by_quota(quota, &format!("{what}{of}"), needed, left));
            }
        }
    }
    Ok(())
}
