//! Quantities by the name of their resource, parsed without JSON
//! values: every container of a pod has two or three.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::text::{FEW, Text};
use otel_webhook_api::quantity::Quantity;

/// The resources that decide on the quality of service class.
pub const CLASS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Quantities by the name of their resource. Invalid quantities are skipped.
#[derive(Clone, Debug, Default)]
pub struct Amounts<'p> {
    entries: Vec<(Text<'p>, Quantity)>,
    /// The positions by name, if there are many.
    index: HashMap<Text<'p>, usize>,
}

impl<'p> Amounts<'p> {
    /// Parses amounts. Unreadable ones are skipped.
    pub fn read(raw: Option<&'p RawValue>) -> Self {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        self.position(resource).map(|at| self.entries[at].1)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: &Text<'p>, quantity: Quantity) {
        *self.entry(resource) = quantity;
    }

    /// Sets the amount of a resource if it has none.
    pub fn set_default(&mut self, resource: &'p str, quantity: Quantity) {
        if self.get(resource).is_none() {
            self.push(Text(resource.into()), quantity);
        }
    }

    /// Adds amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, quantity) in &other.entries {
            let entry = self.entry(name);
            *entry = entry.plus(*quantity);
        }
    }

    /// Raises each amount to at least the other's.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, quantity) in &other.entries {
            let entry = self.entry(name);
            *entry = (*entry).max(*quantity);
        }
    }

    /// Raises each of one's amounts to at least its sum with the other's.
    pub fn raise_to_sum(&mut self, one: &Self, other: &Self) {
        for (name, quantity) in &one.entries {
            let sum = quantity.plus(other.get(name).unwrap_or_default());
            let entry = self.entry(name);
            *entry = (*entry).max(sum);
        }
    }

    /// The resources and their amounts.
    pub fn iter(&self) -> impl Iterator<Item = (&Text<'p>, Quantity)> {
        self.entries.iter().map(|(name, quantity)| (name, *quantity))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn entry(&mut self, resource: &Text<'p>) -> &mut Quantity {
        let at = self.position(resource).unwrap_or_else(|| {
            self.push(resource.clone(), Quantity::ZERO);
            self.entries.len() - 1
        });
        &mut self.entries[at].1
    }

    fn position(&self, resource: &str) -> Option<usize> {
        if self.index.is_empty() {
            return self.entries.iter().position(|(name, _)| **name == *resource);
        }
        self.index.get(resource).copied()
    }

    /// Adds a resource that is not among them.
    fn push(&mut self, resource: Text<'p>, quantity: Quantity) {
        self.entries.push((resource, quantity));
        if self.entries.len() <= FEW {
            return;
        }
        let from = if self.index.is_empty() { 0 } else { self.entries.len() - 1 };
        let new = self.entries.iter().enumerate().skip(from);
        self.index.extend(new.map(|(at, (name, _))| (name.clone(), at)));
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
        let mut read: Vec<(Text<'de>, Option<Quantity>)> = Vec::with_capacity(2);
        while let Some((name, Amount(quantity))) = entries.next_entry()? {
            read.push((name, quantity));
        }
        Ok(last_of_each(&read))
    }
}

/// The amounts that were read; the last of a repeated key is used.
fn last_of_each<'p>(read: &[(Text<'p>, Option<Quantity>)]) -> Amounts<'p> {
    let mut amounts = Amounts { entries: Vec::with_capacity(read.len()), ..Amounts::default() };
    let mut seen = HashSet::new();
    let is_few = read.len() <= FEW;
    let mut last: Vec<bool> = Vec::new();
    if !is_few {
        last.extend(read.iter().rev().map(|(name, _)| seen.insert(&**name)));
        last.reverse();
    }
    for (at, (name, quantity)) in read.iter().enumerate() {
        let is_last = if is_few { read[at + 1..].iter().all(|(later, _)| later != name) } else { last[at] };
        if let Some(quantity) = quantity.filter(|_| is_last) {
            amounts.push(name.clone(), quantity);
        }
    }
    amounts
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
        let many: Vec<_> = (0..100).map(|index| format!(r#""r{}":{index}"#, index % 50)).collect();
        let text = format!(r#"{{{},"r0":null}}"#, many.join(","));
        let mut amounts: Amounts<'_> = serde_json::from_str(&text).expect("a map");
        assert_eq!((amounts.iter().count(), amounts.get("r0")), (49, None));
        assert_eq!(amounts.get("r7"), Quantity::parse("57"));
        amounts.set_default("new", Quantity::ONE);
        amounts.add(&amounts.clone());
        assert_eq!((amounts.get("new"), amounts.get("r7")), (Quantity::parse("2"), Quantity::parse("114")));
        assert!(serde_json::from_str::<Amounts<'_>>("null").expect("nothing").is_empty());
        assert!(serde_json::from_str::<Amounts<'_>>("3").is_err());
    }
}
