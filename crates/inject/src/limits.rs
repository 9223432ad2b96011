//! The limits of a namespace: its LimitRanges, its ResourceQuotas, and its
//! ServiceAccounts that may mount only the Secrets they list.
//!
//! Plain data, parsed from one object at a time. Unreadable parts
//! are reported and skipped, and the rest is used. Most namespaces have none of these objects,
//! and store only a null pointer.

mod limit;
mod limit_range;
mod name;
mod of_namespace;
mod resource_list;
mod resource_quota;
mod scope;
mod shared;

pub use limit::{ENFORCE_MOUNTABLE_SECRETS, Limit, LimitKind};
pub use limit_range::{LimitItem, LimitRange, LimitType};
pub use of_namespace::{DEFAULT_SERVICE_ACCOUNT, Limits};
pub use resource_list::ResourceList;
pub use resource_quota::{PODS, ResourceQuota};
pub use scope::{PodScopes, Scope, ScopeOperator, ScopeRequirement};
pub use shared::SharedItems;

#[cfg(test)]
mod tests;
