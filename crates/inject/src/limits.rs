//! What a namespace bounds: its LimitRanges, its ResourceQuotas, and its
//! ServiceAccounts that may mount only the Secrets they list.
//!
//! Plain data, read tolerantly from one object at a time: what cannot be read
//! is left out and said, and the rest counts. Most namespaces have none of it,
//! which costs them a null pointer.

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
