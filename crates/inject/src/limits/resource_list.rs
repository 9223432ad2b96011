//! Owned quantities by the name of their resource.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use otel_webhook_api::quantity::Quantity;

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
    /// Reads a list of an object's field. What is no quantity is left out, with a sentence that begins with
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
