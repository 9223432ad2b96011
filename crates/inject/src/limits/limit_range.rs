//! LimitRanges: bounds and defaults for each container, pod or claim of a namespace.

use std::sync::Arc;

use serde_json::Value;

use super::{name::name_of, resource_list::ResourceList};

/// A LimitRange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRange {
    /// Its name.
    pub name: Box<str>,
    /// Its items, at most one of each type in an object that the API server has accepted.
    pub items: Arc<[LimitItem]>,
}

/// The bounds and defaults for one type of object, with the defaults that the
/// API server sets when it is stored, so that files have the same effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitItem {
    /// The type of object.
    pub kind: LimitType,
    /// The minimum of requests and limits. A container or pod without a request is rejected.
    pub min: ResourceList,
    /// The maximum of requests and limits. A container or pod without a limit is rejected.
    pub max: ResourceList,
    /// Limits for containers that set none. Empty for other types.
    pub default: ResourceList,
    /// Requests for containers that set none. Empty for other types.
    pub default_request: ResourceList,
    /// The maximum ratio of limit to request. Both have to be set, and not to zero.
    pub max_limit_request_ratio: ResourceList,
}

/// The type of object of an item of a LimitRange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitType {
    /// Each container and each init container by itself.
    Container,
    /// The effective requests and limits of a pod.
    Pod,
    /// Each claim, also of ephemeral volumes.
    PersistentVolumeClaim,
}

impl LimitRange {
    /// Parses a LimitRange. Unreadable parts are skipped, with a message.
    pub fn read(object: &Value, problems: &mut Vec<String>) -> Self {
        let limits = &object["spec"]["limits"];
        if !(limits.is_array() || limits.is_null()) {
            problems.push(format!("spec.limits: {limits} is not a list; it is ignored"));
        }
        let items = limits.as_array().into_iter().flatten().enumerate();
        let items = items.filter_map(|(index, item)| LimitItem::read(item, index, problems));
        Self { name: name_of(object), items: items.collect() }
    }
}

impl LimitItem {
    fn read(item: &Value, index: usize, problems: &mut Vec<String>) -> Option<Self> {
        let kind = match item["type"].as_str() {
            Some("Container") => LimitType::Container,
            Some("Pod") => LimitType::Pod,
            Some("PersistentVolumeClaim") => LimitType::PersistentVolumeClaim,
            // A custom type, which Kubernetes ignores as well.
            Some(other) if other.contains('/') => return None,
            _ => {
                let kind = &item["type"];
                problems.push(format!(
                    "spec.limits[{index}].type: {kind} is not a type; valid: Container, Pod, PersistentVolumeClaim; the item is ignored"
                ));
                return None;
            }
        };
        let mut list =
            |name: &str| ResourceList::read(&item[name], &format!("spec.limits[{index}].{name}"), problems);
        let (min, max, max_limit_request_ratio) = (list("min"), list("max"), list("maxLimitRequestRatio"));
        let (default, default_request) = if kind == LimitType::Container {
            // In the order of `SetDefaults_LimitRangeItem` of Kubernetes.
            let default = list("default").or(&max);
            let default_request = list("defaultRequest").or(&default).or(&min);
            (default, default_request)
        } else {
            (ResourceList::default(), ResourceList::default())
        };
        Some(Self { kind, min, max, default, default_request, max_limit_request_ratio })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(limits: &Value) -> (LimitRange, Vec<String>) {
        let mut problems = Vec::new();
        let object = json!({"metadata": {"name": "bounds"}, "spec": {"limits": limits}});
        (LimitRange::read(&object, &mut problems), problems)
    }

    fn shown(list: &ResourceList) -> String {
        list.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn defaults_are_set_as_by_the_api_server() {
        let item = json!({
            "type": "Container",
            "min": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "1Mi"},
            "max": {"cpu": "2", "memory": "1Gi"},
            "default": {"cpu": "500m"},
            "defaultRequest": {"memory": "64Mi"},
            "maxLimitRequestRatio": {"cpu": "4"},
        });
        let (range, problems) = read(&json!([item]));
        assert!(problems.is_empty(), "{problems:?}");
        let [item] = &*range.items else { panic!("{range:?}") };
        assert_eq!(shown(&item.default), "cpu=500m memory=1Gi", "what is missing is the maximum");
        assert_eq!(
            shown(&item.default_request),
            "cpu=500m ephemeral-storage=1Mi memory=64Mi",
            "else the limit, else the minimum"
        );
        assert_eq!(shown(&item.max_limit_request_ratio), "cpu=4");
    }

    #[test]
    fn only_containers_have_defaults() {
        let bounds = json!({"memory": "1Gi"});
        let (range, _) = read(&json!([
            {"type": "Pod", "max": bounds, "default": bounds},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
        ]));
        assert_eq!(
            [range.items[0].kind, range.items[1].kind],
            [LimitType::Pod, LimitType::PersistentVolumeClaim]
        );
        for item in &*range.items {
            assert!(item.default.is_empty() && item.default_request.is_empty(), "{item:?}");
        }
    }

    #[test]
    fn an_unreadable_item_is_reported_and_the_others_are_used() {
        let (range, problems) = read(&json!([
            {"type": "Containers", "max": {"cpu": "1"}},
            7,
            {"type": "example.com/thing", "max": {"cpu": "1"}},
            {"type": "Container", "max": {"cpu": "one"}, "min": {"cpu": "1"}},
        ]));
        assert_eq!(range.items.len(), 1, "{range:?}");
        assert_eq!(
            (shown(&range.items[0].max), shown(&range.items[0].min)),
            (String::new(), "cpu=1".to_owned())
        );
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(
            problems[0].contains("spec.limits[0].type: \"Containers\" is not a type; valid: Container"),
            "{problems:?}"
        );
        assert!(problems[2].starts_with("spec.limits[3].max.cpu: \"one\""), "{problems:?}");
        let (range, problems) = read(&json!("none"));
        assert!(
            range.items.is_empty() && problems[0].starts_with("spec.limits: \"none\" is not a list"),
            "{problems:?}"
        );
    }
}
