//! Init containers that change neither what the pod asks for nor its class of
//! service (D23).

mod resources;

use std::borrow::Cow;

use resources::Resources;
use serde_json::Value;

use super::{
    demand::{Amounts, CLASS_RESOURCES, Class, Demand},
    note::Note,
};
use crate::api::quantity::Quantity;

/// How the resources of injected init containers are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitResources {
    /// As the Instrumentation has them, as the operator does; but within what the pod as a whole may have.
    Exact,
    /// So that neither the pod's effective request nor its class of service changes.
    #[default]
    Neutral,
}

/// Copying an agent dies of less memory than this.
const LEAST_MEMORY: Quantity = Quantity::mebibytes(128);

/// The resources of an init container that goes before the init container at
/// `place` of the pod as it came, as JSON, with what was done to them. None
/// where they stay as they are said.
pub fn init_container(
    said: &Value,
    demand: &Demand<'_>,
    place: usize,
    way: InitResources,
) -> Option<(String, Note)> {
    let own = Resources::of(said);
    let mut result = own.clone();
    if way == InitResources::Neutral {
        result.make_neutral(demand, place);
    }
    let limit = |resources: &Resources<'_>| resources.limits.get("memory");
    let starved = limit(&result).filter(|memory| *memory < LEAST_MEMORY && limit(&own) != Some(*memory));
    if starved.is_some() {
        // The limits stay, and with them the agent; what the pod asks for stays, too.
        result = own.clone();
        for name in own.names() {
            let allowed = demand.effective(&name).less(demand.started(&name, place));
            result.lower_request(name, allowed);
        }
    }
    result.cap(&demand.limits, |resource| {
        demand.whole(resource).map(|whole| whole.less(demand.started(resource, place)))
    });
    let note = match starved {
        Some(allowed) => Note::MemoryTooLittle { allowed: allowed.to_string() },
        None if !result.is_changed() => return None,
        None => Note::ResourcesLowered {
            requests: result.requests.to_string(),
            limits: result.limits.to_string(),
        },
    };
    Some((result.put_into(said), note))
}

/// The resources of a container that runs beside the others: as they are said,
/// but within what the pod as a whole may have; as JSON. None where they stay.
pub fn sidecar(said: &Value, demand: &Demand<'_>) -> Option<String> {
    let mut result = Resources::of(said);
    result.cap(&demand.limits, |resource| {
        demand.whole(resource).map(|whole| whole.less(demand.running(resource)))
    });
    result.is_changed().then(|| result.put_into(said))
}

impl Resources<'_> {
    fn make_neutral(&mut self, demand: &Demand<'_>, place: usize) {
        let mut names = self.names();
        if demand.class == Class::Guaranteed {
            // Without limits of its own it would make the pod Burstable.
            let limited = |name: &str| self.limits.has(name);
            names.extend(
                CLASS_RESOURCES.iter().filter(|name| !limited(name)).map(|name| Cow::Borrowed(*name)),
            );
        }
        for name in names {
            let allowed = demand.effective(&name).less(demand.started(&name, place));
            let decides = CLASS_RESOURCES.contains(&&*name);
            if demand.class == Class::Guaranteed && decides || is_whole(&name) {
                self.set_both(name, allowed);
            } else if !demand.effective(&name).is_zero() {
                self.lower_request(name, allowed);
            } else if demand.class == Class::BestEffort {
                self.requests.remove(&name);
                self.limits.remove(&name);
            } else {
                self.requests.set(name, Quantity::ZERO);
            }
        }
    }

    /// Stays within the limits and requests of the pod as a whole, without
    /// which the API server would refuse the pod.
    fn cap(&mut self, limits: &Amounts<'_>, allowed: impl Fn(&str) -> Option<Quantity>) {
        for name in self.names() {
            let limit = limits.get(&name);
            if let Some(most) = limit.filter(|most| self.limits.get(&name).is_some_and(|own| own > *most)) {
                self.limits.set(name.clone(), most);
            }
            let most = [allowed(&name), limit].into_iter().flatten().min();
            if let Some(most) = most {
                self.lower_request(name, most);
            }
        }
    }
}

/// Resources that cannot be overcommitted: the API server wants request and limit to be equal.
fn is_whole(resource: &str) -> bool {
    resource.contains('/') || resource.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inject::pod::Pod;

    /// The resources of Java's init container in a pod, at the end of its init containers.
    fn neutral(spec: &Value) -> Value {
        let said = json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
        neutral_of(&said, spec)
    }

    fn neutral_of(said: &Value, spec: &Value) -> Value {
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let place = pod.spec.init_containers.len();
        init_container(said, &Demand::of(&pod), place, InitResources::Neutral)
            .map_or(said.clone(), |(text, _)| parsed(&text))
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn containers(resources: &Value) -> Value {
        json!({"containers": [{"name": "app", "resources": resources}]})
    }

    #[test]
    fn a_pod_that_asks_for_enough_changes_nothing() {
        let spec = containers(&json!({"requests": {"cpu": "1", "memory": "1Gi"}}));
        assert_eq!(neutral(&spec)["requests"], json!({"cpu": "50m", "memory": "64Mi"}));
    }

    #[test]
    fn a_request_is_lowered_to_what_the_pod_asks_for() {
        let spec = containers(&json!({"requests": {"cpu": "20m", "memory": "1Gi"}}));
        let resources = neutral(&spec);
        assert_eq!(resources["requests"], json!({"cpu": "20m", "memory": "64Mi"}));
        assert_eq!(resources["limits"], json!({"cpu": "500m", "memory": "256Mi"}));
    }

    #[test]
    fn a_burstable_pod_that_asks_for_none_gets_a_zero_and_keeps_the_limit() {
        let spec = containers(&json!({"requests": {"memory": "1Gi"}}));
        assert_eq!(neutral(&spec)["requests"], json!({"cpu": "0", "memory": "64Mi"}));
    }

    #[test]
    fn a_best_effort_pod_stays_one() {
        assert_eq!(neutral(&containers(&json!({}))), json!({"limits": {}, "requests": {}}));
    }

    #[test]
    fn a_guaranteed_pod_stays_one_even_where_nothing_is_said() {
        let spec = containers(&json!({"limits": {"cpu": "200m", "memory": "1Gi"}}));
        let same = json!({"cpu": "200m", "memory": "256Mi"});
        assert_eq!(neutral(&spec), json!({"limits": same, "requests": same}));
        let all = json!({"cpu": "200m", "memory": "1Gi"});
        assert_eq!(neutral_of(&json!({}), &spec), json!({"limits": all, "requests": all}));
    }

    #[test]
    fn too_little_memory_leaves_the_limits_that_were_said_with_a_note() {
        let spec = containers(&json!({"limits": {"cpu": "20m", "memory": "64Mi"}}));
        let said = json!({"limits": {"memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let (resources, note) =
            init_container(&said, &Demand::of(&pod), 0, InitResources::Neutral).expect("a note");
        let expected = json!({"limits": {"memory": "256Mi"}, "requests": {"cpu": "20m", "memory": "64Mi"}});
        assert_eq!(parsed(&resources), expected);
        assert_eq!(note, Note::MemoryTooLittle { allowed: "64Mi".to_owned() });
    }

    #[test]
    fn native_sidecars_before_the_place_count_and_those_behind_do_not() {
        let sidecar = |name| json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": "30m"}}});
        let mut spec = containers(&json!({"requests": {"cpu": "10m"}}));
        spec["initContainers"] = json!([sidecar("one"), sidecar("two")]);
        assert_eq!(neutral(&spec)["requests"]["cpu"], "10m", "70m in all, 60m running");
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let said = json!({"requests": {"cpu": "50m"}});
        let (resources, _) =
            init_container(&said, &Demand::of(&pod), 1, InitResources::Neutral).expect("lowered");
        assert_eq!(parsed(&resources)["requests"]["cpu"], "40m", "70m in all, 30m running");
    }

    #[test]
    fn the_pod_as_a_whole_is_never_exceeded_either_way() {
        let mut spec = containers(&json!({}));
        spec["resources"] = json!({"requests": {"cpu": "20m"}, "limits": {"cpu": "100m", "memory": "200Mi"}});
        let text = json!({"spec": spec}).to_string();
        let pod = Pod::parse(&text).expect("a pod");
        let said = json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
        for way in [InitResources::Exact, InitResources::Neutral] {
            let (resources, note) = init_container(&said, &Demand::of(&pod), 0, way).expect("lowered");
            let resources = parsed(&resources);
            assert_eq!(resources["limits"], json!({"cpu": "100m", "memory": "200Mi"}), "{way:?}");
            assert_eq!(resources["requests"]["cpu"], "20m", "{way:?}");
            assert!(matches!(note, Note::ResourcesLowered { .. }), "{way:?}");
        }
    }
}
