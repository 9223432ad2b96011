//! Common code of init containers and the sidecar.

use std::borrow::Cow;

use serde_json::Value;

use super::{pair::Pair, resources::Resources};
use crate::{
    demand::{CLASS_RESOURCES, Demand},
    note::Note,
};
use otel_webhook_api::quantity::Quantity;

/// Resources that differ from those of the Instrumentation.
#[derive(Debug)]
pub struct Fitted {
    /// The resources.
    pub resources: Value,
    /// Notes about the adjustments.
    pub notes: Vec<Note>,
}

/// The largest request and limit of a regular container.
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

/// The unit of a resource.
pub fn unit(resource: &str) -> Quantity {
    if resource == "cpu" { Quantity::MILLI } else { Quantity::ONE }
}

/// Resources that cannot be overcommitted: the API server requires request and limit to be equal.
pub fn is_whole(resource: &str) -> bool {
    resource.contains('/') || resource.starts_with("hugepages-")
}
