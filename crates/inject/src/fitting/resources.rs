//! Requests and limits while they are adjusted. Unchanged quantities keep their
//! written form.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::pair::Pair;
use crate::{demand::Asked, text::Text};
use otel_webhook_api::quantity::Quantity;

/// Requests and limits.
#[derive(Clone, Debug)]
pub struct Resources<'s> {
    /// The requests.
    pub requests: Quantities<'s>,
    /// The limits.
    pub limits: Quantities<'s>,
}

/// Quantities by the name of their resource.
#[derive(Clone, Debug)]
pub struct Quantities<'s> {
    entries: Vec<(Cow<'s, str>, Entry<'s>)>,
    is_changed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry<'s> {
    /// The parsed quantity; `None` if it is invalid.
    amount: Option<Quantity>,
    /// The written form, unless it was changed.
    written: Option<&'s Value>,
}

impl<'s> Resources<'s> {
    /// The configured resources.
    pub fn of(said: &'s Value) -> Self {
        Self { requests: Quantities::of(&said["requests"]), limits: Quantities::of(&said["limits"]) }
    }

    /// The names of all, sorted.
    pub fn names(&self) -> Vec<Cow<'s, str>> {
        let all = self.requests.entries.iter().chain(&self.limits.entries);
        let mut names: Vec<_> = all.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Request and limit of a resource.
    pub fn pair(&self, resource: &str) -> Pair {
        let limit = self.limits.get(resource);
        // The API server uses the limit if no request is set.
        (self.requests.get(resource).or(limit), limit)
    }

    /// Sets request and limit of a resource. Equal quantities keep their written form.
    pub fn set(&mut self, name: Cow<'s, str>, (request, limit): Pair) {
        if self.pair(&name) == (request, limit) {
            return;
        }
        self.limits.replace(name.clone(), limit);
        self.requests.replace(name, request);
    }

    /// The values as the API server reads them.
    pub fn asked(&self) -> Asked<'_> {
        let mut asked = Asked::default();
        for (list, amounts) in [(&self.limits, &mut asked.limits), (&self.requests, &mut asked.requests)] {
            for (name, entry) in &list.entries {
                if let Some(amount) = entry.amount {
                    amounts.set(&Text(Cow::Borrowed(name)), amount);
                }
            }
        }
        asked.default_requests();
        asked
    }

    /// Whether anything differs from the configured resources.
    pub fn is_changed(&self) -> bool {
        self.requests.is_changed || self.limits.is_changed
    }

    /// The configured resources with the changes.
    pub fn put_into(&self, said: &Value) -> Value {
        let mut members = said.as_object().cloned().unwrap_or_default();
        for (key, quantities) in [("limits", &self.limits), ("requests", &self.requests)] {
            if members.contains_key(key) || !quantities.entries.is_empty() {
                members.insert(key.to_owned(), quantities.json());
            }
        }
        members.into()
    }
}

impl<'s> Quantities<'s> {
    fn of(said: &'s Value) -> Self {
        let entries = said.as_object().into_iter().flatten();
        // The API server rounds up.
        let amount = |value| Quantity::of(value).map(|amount| amount.rounded_up(Quantity::MILLI));
        let entry = |value| Entry { amount: amount(value), written: Some(value) };
        let entries = entries.map(|(name, value)| (Cow::Borrowed(name.as_str()), entry(value)));
        Self { entries: entries.collect(), is_changed: false }
    }

    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        self.entry(resource).and_then(|entry| entry.amount)
    }

    /// Sets the amount of a resource, or removes it.
    fn replace(&mut self, resource: Cow<'s, str>, quantity: Option<Quantity>) {
        match quantity {
            Some(quantity) => self.set(resource, quantity),
            None => self.remove(&resource),
        }
    }

    /// Sets the amount of a resource. An equal quantity keeps its written form.
    fn set(&mut self, resource: Cow<'s, str>, quantity: Quantity) {
        if self.get(&resource) == Some(quantity) {
            return;
        }
        let entry = Entry { amount: Some(quantity), written: None };
        match self.entries.iter_mut().find(|(name, _)| *name == resource) {
            Some((_, known)) => *known = entry,
            None => self.entries.push((resource, entry)),
        }
        self.is_changed = true;
    }

    /// Removes a resource.
    fn remove(&mut self, resource: &str) {
        let before = self.entries.len();
        self.entries.retain(|(name, _)| name != resource);
        self.is_changed |= self.entries.len() < before;
    }

    fn entry(&self, resource: &str) -> Option<&Entry<'s>> {
        self.entries.iter().find(|(name, _)| name == resource).map(|(_, entry)| entry)
    }

    fn json(&self) -> Value {
        let value = |entry: &Entry<'_>| entry.written.cloned().unwrap_or_else(|| entry.text().into());
        self.entries.iter().map(|(name, entry)| (name.to_string(), value(entry))).collect()
    }
}

impl<'s> Entry<'s> {
    /// The written form; empty if it is not a quantity.
    fn text(&self) -> Cow<'s, str> {
        match (self.written, self.amount) {
            (Some(written), _) => written.as_str().unwrap_or_default().into(),
            (None, amount) => amount.unwrap_or_default().to_string().into(),
        }
    }
}

impl fmt::Display for Quantities<'_> {
    /// `cpu 50m, memory 64Mi`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entries.is_empty() {
            return f.write_str("none");
        }
        for (index, (name, entry)) in self.entries.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{name} {}", entry.text())?;
        }
        Ok(())
    }
}
