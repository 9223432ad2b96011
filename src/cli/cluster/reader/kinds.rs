//! Finds out how a kind is listed, for kinds that the program does not know.

use kube::{
    core::{ApiResource, GroupVersion},
    discovery::{Scope, pinned_kind},
};

use super::ClusterReader;

impl ClusterReader {
    /// Returns the resource of a namespaced kind. `None` if it is not installed, or the user may not discover it.
    pub async fn resource(&self, api_version: &str, kind: &str) -> Option<ApiResource> {
        let version: GroupVersion = api_version.parse().ok()?;
        let wanted = version.with_kind(kind);
        let (resource, capabilities) = pinned_kind(&self.client, &wanted).await.ok()?;
        (capabilities.scope == Scope::Namespaced).then_some(resource)
    }
}
