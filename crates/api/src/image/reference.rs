//! The parts of an image reference.

use super::version::Version;

/// A reference such as `registry:5000/path/name:tag@sha256:…`.
#[derive(Debug)]
pub struct Reference<'r> {
    /// Registry, path and name.
    pub repository: &'r str,
    tag: Option<&'r str>,
    /// The digest.
    pub digest: Option<&'r str>,
}

impl<'r> Reference<'r> {
    /// The parts of a reference, valid or not.
    pub fn of(image: &'r str) -> Self {
        let (named, digest) = match image.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (image, None),
        };
        // A colon before the last slash separates the port of the registry.
        let name = named.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match named[name..].find(':') {
            Some(colon) => (&named[..name + colon], Some(&named[name + colon + 1..])),
            None => (named, None),
        };
        // The default registry.
        let hub = ["docker.io/", "index.docker.io/"];
        let repository = hub.iter().find_map(|hub| repository.strip_prefix(hub)).unwrap_or(repository);
        Self { repository, tag, digest }
    }

    /// The tag as a version; `None` for a tag such as `latest`.
    pub fn version(&self) -> Option<Version<'r>> {
        self.tag.and_then(Version::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_split_into_its_parts() {
        for (image, repository, tag, digest) in [
            ("ghcr.io/a/java:2.30.0", "ghcr.io/a/java", Some("2.30.0"), None),
            ("localhost:5000/java", "localhost:5000/java", None, None),
            ("localhost:5000/java:1", "localhost:5000/java", Some("1"), None),
            ("java:1", "java", Some("1"), None),
            ("a/java:1@sha256:00", "a/java", Some("1"), Some("sha256:00")),
            ("a:5/java@sha256:00", "a:5/java", None, Some("sha256:00")),
            ("docker.io/a/java:1", "a/java", Some("1"), None),
            ("index.docker.io/a/java", "a/java", None, None),
            ("", "", None, None),
        ] {
            let found = Reference::of(image);
            assert_eq!((found.repository, found.tag, found.digest), (repository, tag, digest), "{image}");
        }
    }
}
