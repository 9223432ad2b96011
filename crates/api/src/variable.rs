//! Environment variables, as in a container.

#[cfg(feature = "schema")]
use k8s_openapi::api::core::v1::EnvVarSource;
use serde::{Deserialize, Serialize};

use super::raw::Raw;

/// An environment variable, as in a container.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable; `$(NAME)` refers to a variable earlier in the list.
    pub value: Option<String>,
    /// Source of the value. Cannot be set together with `value`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EnvVarSource>"))]
    pub value_from: Option<Raw>,
}
