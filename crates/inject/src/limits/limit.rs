//! An object that limits pods, of any kind.

use serde_json::Value;

use super::{limit_range::LimitRange, name::name_of, resource_quota::ResourceQuota};

/// The annotation by which a ServiceAccount allows its pods only the Secrets that it lists.
pub const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// An object that limits pods.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A LimitRange.
    Range(LimitRange),
    /// A ResourceQuota.
    Quota(ResourceQuota),
    /// A ServiceAccount, by its name. `is_strict` if its pods may use only the Secrets that it lists.
    ServiceAccount {
        /// Its name.
        name: Box<str>,
        /// Whether it has the annotation [`ENFORCE_MOUNTABLE_SECRETS`].
        is_strict: bool,
    },
}

/// The kinds of such objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// LimitRange.
    Range,
    /// ResourceQuota.
    Quota,
    /// ServiceAccount.
    ServiceAccount,
}

impl Limit {
    /// Parses an object of a kind. A message is added to `problems`
    /// for each unreadable part; it names the field and what is valid.
    pub fn read(kind: LimitKind, object: &Value, problems: &mut Vec<String>) -> Self {
        match kind {
            LimitKind::Range => Self::Range(LimitRange::read(object, problems)),
            LimitKind::Quota => Self::Quota(ResourceQuota::read(object, problems)),
            LimitKind::ServiceAccount => {
                let metadata = &object["metadata"];
                let is_strict =
                    metadata["annotations"][ENFORCE_MOUNTABLE_SECRETS].as_str().is_some_and(is_true);
                Self::ServiceAccount { name: name_of(object), is_strict }
            }
        }
    }

    /// Its kind.
    pub fn kind(&self) -> LimitKind {
        match self {
            Self::Range(_) => LimitKind::Range,
            Self::Quota(_) => LimitKind::Quota,
            Self::ServiceAccount { .. } => LimitKind::ServiceAccount,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Range(range) => &range.name,
            Self::Quota(quota) => &quota.name,
            Self::ServiceAccount { name, .. } => name,
        }
    }

    /// Whether it has any effect on injection. Others are not stored.
    pub fn bounds_anything(&self) -> bool {
        match self {
            Self::Range(range) => !range.items.is_empty(),
            Self::Quota(quota) => !quota.hard.is_empty(),
            Self::ServiceAccount { is_strict, .. } => *is_strict,
        }
    }
}

impl LimitKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Range, Self::Quota, Self::ServiceAccount];

    /// The kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Range => "LimitRange",
            Self::Quota => "ResourceQuota",
            Self::ServiceAccount => "ServiceAccount",
        }
    }

    /// The API resource, as in roles.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Range => "limitranges",
            Self::Quota => "resourcequotas",
            Self::ServiceAccount => "serviceaccounts",
        }
    }
}

/// The values that Go's `strconv.ParseBool`, which Kubernetes uses, parses as true.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True")
}
