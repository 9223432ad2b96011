//! The resources of added containers (D23, D32).
//!
//! An init container with the resources of a container that was accepted is accepted, too, and changes neither the
//! pod's effective requests and limits nor its quality of service class, so no quota counts more. So init containers
//! have the resources of their target, or those of the Instrumentation where these are within them. LimitRanges and
//! quotas are looked at only for what adds to the pod: Go's sidecar, claims, and init containers with the resources
//! of the Instrumentation (`--init-resources=exact`).

mod admission;
mod sidecar;

use std::collections::{BTreeMap, HashSet};

use admission::{Admission, accepts_container};
use serde_json::Value;

use crate::{
    demand::{Asked, Class, Demand},
    edit::{NewVolume, PodEdit},
    json,
    limits::{LimitType, Limits, ResourceQuota},
    note::{LEAST_MEMORY, Note},
};
pub use admission::Refusal;
use otel_webhook_api::quantity::Quantity;
pub use sidecar::sidecar;

/// The resources of a target that its init containers can have. Others, such as GPUs, are of no use to them.
const COPIED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resources that differ from those of the Instrumentation.
#[derive(Debug)]
pub struct Fitted {
    /// The resources.
    pub resources: Value,
    /// Notes about the adjustments.
    pub notes: Vec<Note>,
}

/// The resources of an init container, if they differ from those of the Instrumentation: those of the target
/// without the ones that neither an init container uses nor a LimitRange demands. `is_whole` means that the pod
/// has `spec.resources`. `refused` is why the Instrumentation's are not accepted, if that is known.
pub fn init_container(
    said: &Value,
    target: &Asked<'_>,
    limits: &Limits,
    is_whole: bool,
    refused: Option<Refusal>,
) -> Option<Fitted> {
    let ranges = || limits.items(LimitType::Container);
    let demanded: HashSet<&str> = ranges().flat_map(|(_, item)| item.names()).collect();
    let target = target.clone().only(|name| COPIED.contains(&name) || demanded.contains(name));
    let own = Asked::of(said);
    // Pods from files lack what LimitRanger adds. The requests of a whole pod are defaulted before.
    let mut filled = target.clone();
    if !is_whole {
        filled.default_by(limits);
    }
    let refused = refused.or_else(|| accepts_container(limits, &own).err());
    let keeps_class = Class::of([&filled, &own]) == Class::of([&filled]);
    if refused.is_none() && own.is_within(&filled) && keeps_class {
        return None;
    }
    let (requests, limits) = (target.requests.to_string(), target.limits.to_string());
    let due_to = refused.into_iter().map(|refusal| refusal.object).collect();
    let mut notes = vec![Note::ResourcesLowered { requests, limits, due_to }];
    let memory = target.limits.get("memory");
    let starved = memory.filter(|memory| {
        *memory < LEAST_MEMORY && own.limits.get("memory").is_none_or(|said| *memory < said)
    });
    notes.extend(starved.map(|allowed| Note::MemoryTooLittle { allowed: allowed.to_string() }));
    Some(Fitted { resources: target.put_into(said), notes })
}

/// The resources of the Instrumentation for an init container before the pod's init container at `place`, within
/// `spec.resources` of the pod; `None` if nothing differs.
///
/// # Errors
/// The LimitRange or quota that would reject the pod.
pub fn exact_init_container(
    said: &Value,
    demand: &Demand<'_>,
    limits: &Limits,
    place: usize,
) -> Result<Option<Fitted>, Refusal> {
    let (own, started) = (Asked::of(said), demand.started(place));
    let capped = demand.within_whole(&own, &started);
    Admission { limits, demand }.check(capped.clone(), |added| {
        let mut together = demand.together(&Asked::default());
        together.raise_to(&started.plus(added));
        together
    })?;
    let (requests, limits) = (capped.requests.to_string(), capped.limits.to_string());
    Ok((capped != own).then(|| Fitted {
        resources: capped.put_into(said),
        notes: vec![Note::ResourcesLowered { requests, limits, due_to: Vec::new() }],
    }))
}

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
pub fn check_claims(limits: &Limits, edit: &PodEdit<'_>, sources: &[&Value]) -> Result<(), Refusal> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        limits::{Limit, LimitKind},
        pod::Pod,
    };

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

    /// Java's default resources.
    fn java() -> Value {
        json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}})
    }

    /// The resources of Java's init container for a target with these, and the objects that caused a change.
    fn fitted(said: &Value, target: &Value, ranges: &Value) -> (Value, Vec<String>) {
        let (target, limits) = (Asked::of(target), limits(ranges, &json!({})));
        match init_container(said, &target, &limits, false, None) {
            None => (said.clone(), Vec::new()),
            Some(Fitted { resources, notes }) => {
                let Note::ResourcesLowered { due_to, .. } = &notes[0] else { panic!("{notes:?}") };
                (resources, due_to.clone())
            }
        }
    }

    #[test]
    fn resources_within_those_of_the_target_are_used() {
        let target =
            json!({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}});
        assert_eq!(fitted(&java(), &target, &json!([])).0, java());
        let gpu = json!({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}});
        assert_eq!(fitted(&java(), &gpu, &json!([])).0, java(), "a GPU is not missed");
    }

    #[test]
    fn else_those_of_the_target_are_used() {
        for target in [
            json!({}),
            json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}),
            json!({"requests": {"cpu": "49m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}),
            json!({"requests": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}),
        ] {
            let (resources, due_to) = fitted(&java(), &target, &json!([]));
            let lists = ["requests", "limits"].map(|list| target.get(list).cloned().unwrap_or(json!({})));
            assert_eq!(["requests", "limits"].map(|list| resources[list].clone()), lists, "{target}");
            assert!(due_to.is_empty(), "{due_to:?}");
        }
        let gpu = json!({"limits": {"memory": "1Gi", "example.com/gpu": "1", "hugepages-2Mi": "4Mi"}, "claims": [{"name": "c"}]});
        let memory = json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}});
        assert_eq!(fitted(&java(), &gpu, &json!([])).0, memory, "without what a copy does not use");
        let said = json!({"limits": {"memory": "1"}, "claims": [{"name": "own"}]});
        let expected = json!({"limits": {}, "claims": [{"name": "own"}]});
        assert_eq!(fitted(&said, &json!({}), &json!([])).0, expected);
    }

    #[test]
    fn a_limit_range_that_rejects_the_instrumentations_resources_is_named() {
        let target =
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}});
        let fine = json!([{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "10m"}}]);
        assert_eq!(fitted(&java(), &target, &fine), (java(), Vec::new()));
        for item in [
            json!({"type": "Container", "min": {"cpu": "60m"}}),
            json!({"type": "Container", "max": {"memory": "255Mi"}}),
            json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}),
        ] {
            let expected = (target.clone(), vec!["LimitRange \"bounds-0\"".to_owned()]);
            assert_eq!(fitted(&java(), &target, &json!([item])), expected, "{item}");
        }
        let of_pods = json!([{"type": "Pod", "max": {"memory": "2Gi"}}]);
        assert_eq!(fitted(&java(), &target, &of_pods).0, java(), "the pod stays the same");
    }

    #[test]
    fn every_default_of_limit_ranger_is_explicit() {
        let ranges =
            json!([{"type": "Container", "default": {"example.com/gpu": "0", "ephemeral-storage": "1Gi"}}]);
        // The pod as LimitRanger leaves it.
        let list = json!({"ephemeral-storage": "1Gi", "example.com/gpu": "0", "example.com/fpga": "1"});
        let (resources, _) = fitted(&java(), &json!({"limits": list}), &ranges);
        let expected = json!({"ephemeral-storage": "1Gi", "example.com/gpu": "0"});
        assert_eq!(resources, json!({"limits": expected, "requests": expected}));
        // A file lacks them: LimitRanger gives both containers the same.
        let file =
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "512Mi"}});
        assert_eq!(fitted(&java(), &file, &ranges).0, file);
    }

    #[test]
    fn little_memory_has_a_note() {
        let notes = |said: Value, memory: &str| {
            let target = json!({"limits": {"memory": memory}});
            let fitted = init_container(&said, &Asked::of(&target), &Limits::NONE, false, None);
            fitted.map_or(Vec::new(), |fitted| fitted.notes)
        };
        let little = Note::MemoryTooLittle { allowed: "64Mi".to_owned() };
        assert_eq!(notes(java(), "64Mi")[1..], [little]);
        assert_eq!(notes(java(), "128Mi").len(), 1);
        assert_eq!(
            notes(json!({"limits": {"memory": "32Mi", "cpu": "1"}}), "64Mi").len(),
            1,
            "more than configured"
        );
    }

    /// Exactly Java's default resources, if the namespace accepts them.
    fn exact(spec: &Value, ranges: &Value, quota: &Value) -> Result<Option<Value>, Refusal> {
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let limits = limits(ranges, quota);
        let fitted = exact_init_container(&java(), &Demand::of(&pod, &limits), &limits, 0)?;
        Ok(fitted.map(|fitted| fitted.resources))
    }

    #[test]
    fn exact_resources_are_rejected_if_the_pod_would_be() {
        let own =
            json!({"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}});
        let spec = json!({"containers": [{"name": "app", "resources": own}]});
        let fine = json!([{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "10m"}}, {"type": "Pod", "max": {"memory": "256Mi"}}]);
        let exact = |ranges: &Value, quota: &Value| exact(&spec, ranges, quota);
        assert_eq!(exact(&fine, &json!({"hard": {"requests.memory": "64Mi"}})), Ok(None), "as it is said");
        for (ranges, quota, object) in [
            (json!([{"type": "Container", "min": {"cpu": "60m"}}]), json!({}), "LimitRange \"bounds-0\""),
            (json!([{"type": "Pod", "max": {"memory": "255Mi"}}]), json!({}), "LimitRange \"bounds-0\""),
            (json!([]), json!({"hard": {"requests.memory": "63Mi"}}), "ResourceQuota \"team\""),
            (json!([]), json!({"hard": {"limits.cpu": "400m"}}), "ResourceQuota \"team\""),
        ] {
            let refusal = exact(&ranges, &quota).expect_err("the pod would be rejected");
            assert_eq!(refusal.object, object, "{ranges} {quota}");
        }
    }

    #[test]
    fn exact_resources_stay_within_those_of_the_whole_pod() {
        let spec = json!({
            "containers": [{"name": "app"}],
            "initContainers": [{"name": "mesh", "restartPolicy": "Always"}],
            "resources": {"requests": {"cpu": "20m", "memory": "200Mi"}, "limits": {"cpu": "100m", "memory": "200Mi"}},
        });
        let expected = json!({"limits": {"cpu": "100m", "memory": "200Mi"}, "requests": {"cpu": "20m", "memory": "64Mi"}});
        assert_eq!(exact(&spec, &json!([]), &json!({})), Ok(Some(expected)));
    }
}
