//! Variables, as in a container.

#[cfg(feature = "schema")]
use k8s_openapi::api::core::v1::EnvVarSource;
use serde::{Deserialize, Serialize};

use super::raw::Raw;

/// A variable, as in a container.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    /// Its value; `$(NAME)` refers to a variable that stands before it.
    pub value: Option<String>,
    /// Where the value is read from. Not together with `value`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<EnvVarSource>"))]
    pub value_from: Option<Raw>,
}
