//! The version of Instrumentations that is read and written.
//!
//! It is the one in which the API server stores them: reading it needs no conversion, and writing it loses nothing by the
//! conversion of another webhook. See docs/adr/0020-the-stored-version.md.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};

#[cfg(feature = "fips")]
use aws_lc_rs::digest::{SHA256, digest};
#[cfg(not(feature = "fips"))]
use ring::digest::{SHA256, digest};

use otel_webhook_api::{Instrumentation, Version};

/// How often the API server is asked.
const PERIOD: Duration = Duration::from_secs(5);

/// Returns the resource of a version.
pub fn resource(version: Version) -> ApiResource {
    ApiResource {
        version: version.name().to_owned(),
        api_version: version.api_version().to_owned(),
        ..ApiResource::erase::<Instrumentation>(&())
    }
}

/// Returns the version to read and write; `None` if the API server serves none that is known.
///
/// # Errors
/// If the API server cannot be asked.
pub async fn version(client: &Client) -> kube::Result<Option<Version>> {
    Ok(chosen(&served(client).await?))
}

/// Returns why the API server cannot convert Instrumentations; `None` if it can, or has none to convert.
///
/// # Errors
/// If they may not be listed and read, or the API server cannot be asked.
pub async fn conversion_problem(client: &Client) -> kube::Result<Option<String>> {
    // The first object is stored in one version, so that it is converted for the others.
    for (version, _) in served(client).await? {
        match read_first(client, version).await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.message.contains("conversion webhook") => {
                return Ok(Some(status.message));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Reads the first object in a version. Lists may be those that the API server had before conversion failed; a single
/// object is read from its store.
async fn read_first(client: &Client, version: Version) -> kube::Result<()> {
    let resource = resource(version);
    let all = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let list = all.list_metadata(&ListParams::default().limit(1)).await?;
    let Some(first) = list.items.first() else { return Ok(()) };
    let (name, namespace) = (first.name_any(), first.namespace().unwrap_or_default());
    let own = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    own.get_metadata_opt(&name).await.map(drop)
}

/// Returns the known versions that are served, each with the hash of the one that is stored.
async fn served(client: &Client) -> kube::Result<Vec<(Version, Option<String>)>> {
    let plural = resource(Version::V1alpha1).plural;
    let mut served = Vec::new();
    for version in Version::ALL {
        match client.list_api_group_resources(version.api_version()).await {
            Ok(list) => {
                let mut found = list.resources.into_iter().filter(|resource| resource.name == plural);
                served.extend(found.next().map(|resource| (version, resource.storage_version_hash)));
            }
            // Where discovery is forbidden, the watch says what else is missing.
            Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(served)
}

/// Returns the version that is stored, or if that is not known, the last one, which can express the most.
fn chosen(served: &[(Version, Option<String>)]) -> Option<Version> {
    let is_stored =
        |(version, hash): &&(Version, Option<String>)| hash.as_ref() == Some(&storage_hash(*version));
    served.iter().find(is_stored).or(served.last()).map(|(version, _)| *version)
}

/// Returns the hash by which discovery names the version that is stored.
fn storage_hash(version: Version) -> String {
    let ApiResource { api_version, kind, .. } = resource(version);
    BASE64_STANDARD.encode(&digest(&SHA256, format!("{api_version}/{kind}").as_bytes()).as_ref()[..8])
}

/// Returns the version, and each that follows it, forever. While none is served, it is the one that is known for
/// longest, so that the failure of its watch says what is missing.
pub fn versions(client: Client) -> impl Stream<Item = Version> {
    let asked = stream::unfold((client, Duration::ZERO), |(client, wait)| async move {
        tokio::time::sleep(wait).await;
        let version = version(&client).await;
        Some((version, (client, PERIOD)))
    });
    asked
        .scan((None, false), |(last, has_failed), answer| {
            // Watches report each failure.
            let is_first = !std::mem::replace(has_failed, answer.is_err());
            let found = match answer {
                Ok(found) => found.or(*last).or(Some(Version::V1alpha1)),
                Err(error) => {
                    if is_first {
                        tracing::warn!(%error, "the served versions of Instrumentation cannot be read; retrying");
                    }
                    *last
                }
            };
            let news = found.filter(|_| found != *last);
            if let (Some(version), Some(_)) = (news, &last) {
                tracing::info!(version = version.name(), "Instrumentations are stored in another version");
            }
            *last = found;
            std::future::ready(Some(news))
        })
        .filter_map(std::future::ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_version_is_chosen_or_the_one_that_can_express_the_most() {
        let [old, new] = Version::ALL;
        let by = |version| Some(storage_hash(version));
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[(old, by(new))]), Some(old));
        assert_eq!(chosen(&[(old, by(old)), (new, by(old))]), Some(old));
        assert_eq!(chosen(&[(old, by(new)), (new, by(new))]), Some(new));
        assert_eq!(chosen(&[(old, None), (new, Some("unknown".to_owned()))]), Some(new));
    }
}
