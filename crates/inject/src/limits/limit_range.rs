//! LimitRanges: bounds and defaults for each container, pod or claim of a namespace.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::Value;

use super::name_of;
use otel_webhook_api::quantity::Quantity;

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
    /// The names of the resources that it bounds or defaults; some are repeated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let lists =
            [&self.min, &self.max, &self.default, &self.default_request, &self.max_limit_request_ratio];
        lists.into_iter().flat_map(|list| list.iter().map(|(name, _)| name))
    }

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

/// Quantities by the name of their resource, sorted by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ResourceList(Box<[(Cow<'static, str>, Quantity)]>);

/// Names in nearly all lists, which are not allocated.
const USUAL: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "storage",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.storage",
];

impl ResourceList {
    /// Reads a list of an object's field. What is no quantity is skipped, with a sentence that begins with
    /// the field.
    pub(super) fn read(value: &Value, field: &str, problems: &mut Vec<String>) -> Self {
        let entries = match value {
            Value::Object(entries) => entries,
            Value::Null => return Self::default(),
            other => {
                problems.push(format!(
                    "{field}: {other} is not a map; give quantities by the name of their resource"
                ));
                return Self::default();
            }
        };
        let mut read = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            match Quantity::of(value).filter(|quantity| *quantity >= Quantity::ZERO) {
                Some(quantity) => read.push((owned(name), quantity)),
                None => problems.push(format!(
                    "{field}.{name}: {value} is not a quantity of at least zero, such as 500m or 128Mi; it is ignored"
                )),
            }
        }
        read.into_iter().collect()
    }

    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        // A handful of entries: looking through them is faster than a search by halves.
        self.0.iter().find(|(name, _)| name == resource).map(|(_, quantity)| *quantity)
    }

    /// The resources and their amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, quantity)| (&**name, *quantity))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The union; this list overrides the other.
    pub(super) fn or(self, other: &Self) -> Self {
        if other.iter().all(|(name, _)| self.get(name).is_some()) {
            return self;
        }
        let missing: Vec<_> = other.0.iter().filter(|(name, _)| self.get(name).is_none()).cloned().collect();
        self.0.into_iter().chain(missing).collect()
    }

    /// The union, with the smaller of two amounts.
    pub(super) fn least(self, other: &Self) -> Self {
        let smaller = |(name, own): (Cow<'static, str>, Quantity)| {
            let least = other.get(&name).map_or(own, |other| own.min(other));
            (name, least)
        };
        Self(self.0.into_iter().map(smaller).collect()).or(other)
    }

    /// The same without the resources that `keep` does not keep.
    pub(super) fn only(self, keep: impl Fn(&str) -> bool) -> Self {
        if self.0.iter().all(|(name, _)| keep(name)) {
            return self;
        }
        self.0.into_iter().filter(|(name, _)| keep(name)).collect()
    }
}

impl FromIterator<(Cow<'static, str>, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (Cow<'static, str>, Quantity)>>(entries: I) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self(entries.into())
    }
}

fn owned(name: &str) -> Cow<'static, str> {
    USUAL.iter().find(|usual| **usual == name).map_or_else(|| name.to_owned().into(), |usual| (*usual).into())
}

impl fmt::Debug for ResourceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(name, quantity)| (name, quantity.to_string()))).finish()
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

    fn list(value: &Value) -> ResourceList {
        let mut problems = Vec::new();
        let list = ResourceList::read(value, "f", &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        list
    }

    #[test]
    fn an_invalid_quantity_is_reported_and_the_others_are_used() {
        let mut problems = Vec::new();
        let value = json!({"memory": "1Gi", "cpu": "x", "example.com/gpu": 2, "pods": "-1", "a": null});
        let read = ResourceList::read(&value, "spec.hard", &mut problems);
        assert_eq!(read, list(&json!({"example.com/gpu": "2", "memory": "1024Mi"})));
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("spec.hard.cpu: \"x\" is not a quantity"), "{problems:?}");
        let none = ResourceList::read(&json!(["cpu"]), "spec.hard", &mut problems);
        assert!(
            none.is_empty() && problems[3].starts_with("spec.hard: [\"cpu\"] is not a map"),
            "{problems:?}"
        );
    }

    #[test]
    fn lists_are_merged_by_resource() {
        let (one, other) =
            (list(&json!({"cpu": "2", "memory": "1Gi"})), list(&json!({"cpu": "1", "storage": "3"})));
        assert_eq!(one.clone().or(&other), list(&json!({"cpu": "2", "memory": "1Gi", "storage": "3"})));
        assert_eq!(one.clone().least(&other), list(&json!({"cpu": "1", "memory": "1Gi", "storage": "3"})));
        assert_eq!(one.only(|name| name == "cpu"), list(&json!({"cpu": "2"})));
    }
}
