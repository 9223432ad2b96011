//! How much memory compiled Instrumentations hold, for the budget of stored ones.
//!
//! It is computed from the values alone, so that every process computes the same. A test compares it with the count of
//! the allocator.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::reason::ObjectName;
use otel_webhook_api::{
    AllowedNamespaces,
    image::{Choice, Why},
};

/// The counts of an [`Arc`].
pub const COUNTS: usize = 2 * size_of::<usize>();

/// What holds memory.
pub trait Held {
    /// The bytes of the heap that it uses, without those of the value itself.
    fn held(&self) -> usize;
}

/// Implements [`Held`] by the fields of a type; those after the semicolon hold nothing. It does not compile without
/// every field.
macro_rules! held {
    ($type:ty: $($field:ident),*; $($plain:ident),*) => {
        impl crate::held::Held for $type {
            fn held(&self) -> usize {
                let Self { $($field,)* $($plain: _,)* } = self;
                0 $(+ crate::held::Held::held($field))*
            }
        }
    };
}
pub(crate) use held;

held!(ObjectName: namespace, name;);
held!(Choice: image, why;);

impl Held for Box<str> {
    fn held(&self) -> usize {
        self.len()
    }
}

impl Held for String {
    fn held(&self) -> usize {
        self.capacity()
    }
}

impl Held for u32 {
    fn held(&self) -> usize {
        0
    }
}

impl<T: Held> Held for Option<T> {
    fn held(&self) -> usize {
        self.as_ref().map_or(0, Held::held)
    }
}

impl<T: Held> Held for Vec<T> {
    fn held(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(Held::held).sum::<usize>()
    }
}

impl<T: Held> Held for Arc<T> {
    fn held(&self) -> usize {
        COUNTS + size_of::<T>() + (**self).held()
    }
}

impl<A: Held, B: Held> Held for (A, B) {
    fn held(&self) -> usize {
        self.0.held() + self.1.held()
    }
}

impl Held for BTreeMap<usize, Box<str>> {
    /// It has few entries, which fit into one node.
    fn held(&self) -> usize {
        const NODE: usize = 11 * size_of::<(usize, Box<str>)>();
        self.len().div_ceil(11) * NODE + self.values().map(Held::held).sum::<usize>()
    }
}

impl Held for AllowedNamespaces {
    fn held(&self) -> usize {
        self.names().map(|name| size_of::<Box<str>>() + name.len()).sum()
    }
}

impl Held for Why {
    fn held(&self) -> usize {
        match self {
            Self::Default | Self::Chosen | Self::Current => 0,
            Self::Replaced { stored: text } | Self::Kept { default: text, .. } => text.held(),
        }
    }
}

impl Held for Box<Value> {
    fn held(&self) -> usize {
        size_of::<Value>() + (**self).held()
    }
}

impl Held for Value {
    /// A map is a hash table of indices, which grows by powers of two and is filled to seven eighths, and a list of that
    /// many entries.
    fn held(&self) -> usize {
        const ENTRY: usize = size_of::<(u64, String, Value)>();
        const INDEX: usize = size_of::<usize>() + 1;
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => 0,
            Self::String(text) => text.held(),
            Self::Array(items) => items.held(),
            Self::Object(entries) if entries.is_empty() => 0,
            Self::Object(entries) => {
                let (buckets, room) = match entries.len() {
                    0..=3 => (4, 3),
                    4..=7 => (8, 7),
                    many => {
                        let buckets = (many * 8).div_ceil(7).next_power_of_two();
                        (buckets, buckets / 8 * 7)
                    }
                };
                let own = entries.iter().map(|(key, value)| key.held() + value.held());
                buckets * INDEX + 16 + room * ENTRY + own.sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{catalogue::Stored, compiled::Shared, language::LANGUAGES, object};
    use otel_webhook_api::defaults::DefaultImages;

    fn variables(count: usize) -> Value {
        let variable = |number: usize| json!({"name": format!("V{number}"), "value": "a"});
        (0..count).map(variable).collect()
    }

    /// Specifications that hold as much as they can for their length, and usual ones.
    fn specifications() -> Vec<(&'static str, Value)> {
        let each = |part: &Value| -> Value {
            let fields = LANGUAGES.iter().map(|language| language.field).filter(|field| !field.is_empty());
            fields.map(|field| (field.to_owned(), part.clone())).collect()
        };
        let agent = |number: usize| json!({"name": format!("a{number}"), "image": "own:1", "directory": "/a", "env": variables(64)});
        let from = |number: usize| json!({"name": format!("V{number}"), "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
        let labels: Value = (0..500).map(|number| (format!("label-{number}"), json!("a"))).collect();
        let values: Vec<String> = (0..2000).map(|number| format!("v{number}")).collect();
        let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        vec![
            ("nothing", json!({})),
            (
                "usual",
                json!({"exporter": {"endpoint": "http://collector:4317"}, "java": {"env": variables(3)}}),
            ),
            ("16 agents", json!({"agents": (0..16).map(agent).collect::<Vec<_>>()})),
            ("variables of every language", each(&json!({"env": variables(600)}))),
            ("variables from fields", json!({"env": (0..500).map(from).collect::<Vec<_>>()})),
            ("claims", each(&json!({"volumeClaimTemplate": claim}))),
            (
                "extended agents",
                json!({"agents": [{"name": "a", "image": "own:1", "directory": "/a", "env":
                (0..64).map(|n| json!({"name": format!("V{n}"), "value": "a", "mode": "append"})).collect::<Vec<_>>()}]}),
            ),
            ("labels", json!({"selector": {"matchLabels": labels}, "inject": ["java"]})),
            (
                "values",
                json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}}),
            ),
            ("attributes", json!({"resource": {"resourceAttributes": labels}})),
            ("one long value", json!({"env": [{"name": "A", "value": "a".repeat(100_000)}]})),
            ("an unknown type", json!({"env": 1})),
        ]
    }

    fn stored(specification: &Value, shared: &mut Shared) -> Stored {
        let object = json!({"metadata": {"namespace": "shop", "name": "order"}, "spec": specification});
        object::instrumentation(&object, &DefaultImages::default(), shared)
    }

    #[test]
    fn it_is_what_the_allocator_counts() {
        // What is made once in a process, such as the schema.
        stored(&json!({}), &mut Shared::default());
        for (name, specification) in specifications() {
            let mut kept = None;
            let counted = allocation_counter::measure(|| {
                kept = Some(stored(&specification, &mut Shared::default()));
            });
            let held = kept.expect("it is stored").held();
            let counted = usize::try_from(counted.bytes_current).expect("it holds memory");
            assert!(held * 4 <= counted * 5 && counted * 4 <= held * 5, "{name}: {held} of {counted}");
        }
    }

    #[test]
    fn the_charge_depends_on_the_object_alone_and_not_on_defaults() {
        let images = DefaultImages::default();
        let mut shared = Shared::with_defaults(&images);
        let charges = |shared: &mut Shared| {
            let charge = |(_, specification): (_, Value)| {
                let stored = stored(&specification, shared);
                stored.charge(shared)
            };
            specifications().into_iter().map(charge).collect::<Vec<_>>()
        };
        let (first, again) = (charges(&mut shared), charges(&mut shared));
        assert_eq!(first, again);
        let alone: Vec<_> = specifications()
            .iter()
            .map(|(_, specification)| {
                let mut shared = Shared::with_defaults(&images);
                stored(specification, &mut shared).charge(&shared)
            })
            .collect();
        assert_eq!(first, alone);
        assert!(first[0] < 1200, "{first:?}");
    }
}
