//! Quantities by the name of their resource, parsed without JSON
//! values: every container of a pod has two or three.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::text::Text;
use otel_webhook_api::quantity::Quantity;

/// The resources that decide on the quality of service class.
pub const CLASS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Quantities by the name of their resource. Invalid quantities are skipped.
#[derive(Clone, Debug, Default)]
pub struct Amounts<'p>(Vec<(Text<'p>, Quantity)>);

impl<'p> Amounts<'p> {
    /// Parses amounts. Unreadable ones are skipped.
    pub fn read(raw: Option<&'p RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        self.0.iter().find(|(name, _)| **name == *resource).map(|(_, quantity)| *quantity)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: &Text<'p>, quantity: Quantity) {
        *self.entry(resource) = quantity;
    }

    /// Sets the amount of a resource if it has none.
    pub fn set_default(&mut self, resource: &'p str, quantity: Quantity) {
        if self.get(resource).is_none() {
            self.0.push((Text(resource.into()), quantity));
        }
    }

    /// Adds amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, quantity) in &other.0 {
            let entry = self.entry(name);
            *entry = entry.plus(*quantity);
        }
    }

    /// Raises each amount to at least the other's.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, quantity) in &other.0 {
            let entry = self.entry(name);
            *entry = (*entry).max(*quantity);
        }
    }

    /// The resources and their amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&Text<'p>, Quantity)> {
        self.0.iter().map(|(name, quantity)| (name, *quantity))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn entry(&mut self, resource: &Text<'p>) -> &mut Quantity {
        let at = self.0.iter().position(|(name, _)| name == resource).unwrap_or_else(|| {
            self.0.push((resource.clone(), Quantity::ZERO));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl<'de: 'p, 'p> Deserialize<'de> for Amounts<'p> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountsVisitor)
    }
}

struct AmountsVisitor;

impl<'de> Visitor<'de> for AmountsVisitor {
    type Value = Amounts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of quantities")
    }

    fn visit_unit<E>(self) -> Result<Amounts<'de>, E> {
        Ok(Amounts::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Amounts<'de>, A::Error> {
        // Most name CPU and memory.
        let mut amounts: Vec<(Text<'de>, Quantity)> = Vec::with_capacity(2);
        while let Some((name, Amount(quantity))) = entries.next_entry()? {
            // The last of a repeated key is used.
            if let Some(known) = amounts.iter().position(|(known, _)| *known == name) {
                amounts.remove(known);
            }
            if let Some(quantity) = quantity {
                amounts.push((name, quantity));
            }
        }
        Ok(Amounts(amounts))
    }
}

/// A quantity, or another value in its place.
struct Amount(Option<Quantity>);

impl From<Option<Quantity>> for Amount {
    /// Rounded up to the precision of the API server.
    fn from(quantity: Option<Quantity>) -> Self {
        Self(quantity.map(|quantity| quantity.rounded_up(Quantity::MILLI)))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl<'de> Visitor<'de> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity")
    }

    fn visit_str<E>(self, text: &str) -> Result<Amount, E> {
        Ok(Quantity::parse(text).into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Amount, E> {
        Ok(Quantity::of(&number.into()).into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Amount, E> {
        Ok(Quantity::of(&number.into()).into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Amount, E> {
        Ok(Quantity::of(&number.into()).into())
    }

    fn visit_unit<E>(self) -> Result<Amount, E> {
        Ok(Amount(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Amount, E> {
        Ok(Amount(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Amount, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Amount(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Amount, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Amount(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_quantities_are_skipped_and_the_last_of_a_key_is_used() {
        let text = r#"{"cpu":"1","memory":true,"a":[1],"b":{"c":1},"d":null,"e":2,"f":0.5,"g":-1,"cpu":"2"}"#;
        let amounts: Amounts<'_> = serde_json::from_str(text).expect("a map");
        let shown: Vec<_> = amounts.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
        assert_eq!(shown, ["e 2", "f 500m", "g -1", "cpu 2"]);
        assert!(serde_json::from_str::<Amounts<'_>>("null").expect("nothing").is_empty());
        assert!(serde_json::from_str::<Amounts<'_>>("3").is_err());
    }
}
