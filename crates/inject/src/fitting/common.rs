//! What init containers and the sidecar have in common.

use std::borrow::Cow;

use serde_json::Value;

use super::{pair::Pair, resources::Resources};
use crate::{
    demand::{CLASS_RESOURCES, Demand},
    note::Note,
};
use otel_webhook_api::quantity::Quantity;

/// Resources that differ from what the Instrumentation says.
#[derive(Debug)]
pub struct Fitted {
    /// The resources.
    pub resources: Value,
    /// What was done to them.
    pub notes: Vec<Note>,
}

/// The request and limit of a regular container, of those that have most.
pub fn of_container(demand: &Demand<'_>, name: &str) -> Pair {
    demand
        .regular()
        .iter()
        .map(|own| own.pair(name))
        .max_by_key(|(request, limit)| (*limit, *request))
        .unwrap_or_default()
}

/// The API server rejects huge pages without CPU or memory beside them.
pub fn accompany_huge_pages(result: &mut Resources<'_>, demand: &Demand<'_>) {
    let names = result.names();
    let has_huge = names.iter().any(|name| name.starts_with("hugepages-"));
    if has_huge && !names.iter().any(|name| CLASS_RESOURCES.contains(&&**name)) {
        let known = CLASS_RESOURCES.into_iter().find(|name| demand.request(name).is_some());
        result.set(Cow::Borrowed(known.unwrap_or("memory")), (Some(Quantity::ZERO), None));
    }
}

/// In what amounts a resource is counted.
pub fn unit(resource: &str) -> Quantity {
    if resource == "cpu" { Quantity::MILLI } else { Quantity::ONE }
}

/// Resources that cannot be overcommitted: the API server wants request and limit to be equal.
pub fn is_whole(resource: &str) -> bool {
    resource.contains('/') || resource.starts_with("hugepages-")
}
