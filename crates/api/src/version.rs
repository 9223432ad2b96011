//! The versions of the Instrumentation resource, and the fields that differ between them.

use std::{fmt, str::FromStr, sync::LazyLock};

use crate::defaults::LANGUAGES;

/// A version of the Instrumentation resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// `v1alpha1`, which the OpenTelemetry Operator serves.
    #[default]
    V1alpha1,
    /// `v1beta1`, the operator's next version.
    V1beta1,
}

impl Version {
    /// All versions, from old to new.
    pub const ALL: [Self; 2] = [Self::V1alpha1, Self::V1beta1];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1alpha1 => "v1alpha1",
            Self::V1beta1 => "v1beta1",
        }
    }

    /// Group and version, as in the field `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1alpha1 => crate::API_VERSION,
            Self::V1beta1 => "opentelemetry.io/v1beta1",
        }
    }

    /// Returns the version of an `apiVersion`; `None` if it is not known.
    pub fn of(api_version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.api_version() == api_version)
    }

    /// Returns the path of a field of v1alpha1, such as `spec.exporter.endpoint`, in this version.
    pub fn field(self, alpha: &str) -> String {
        let Self::V1beta1 = self else { return alpha.to_owned() };
        // What is after a name, such as `.tls` or `[0]`.
        let below = |name: &str| {
            let rest = alpha.strip_prefix("spec.")?.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
        };
        for field in moved() {
            if let Some(rest) = below(&field.alpha.join(".")) {
                return format!("spec.{}{rest}", field.beta.join("."));
            }
        }
        for (field, _) in kept_by_the_operator() {
            if let Some(rest) = below(&field.join(".")) {
                return format!("metadata.annotations[{ALPHA_FIELDS}].{}{rest}", field.join("."));
            }
        }
        alpha.to_owned()
    }

    /// Returns a message that has paths of v1alpha1 with those of this version.
    pub fn message(self, alpha: &str) -> String {
        let mut message = alpha.to_owned();
        for field in moved().iter().filter(|_| self == Self::V1beta1) {
            message = message.replace(
                &format!("spec.{}", field.alpha.join(".")),
                &format!("spec.{}", field.beta.join(".")),
            );
        }
        message
    }

    /// The other version.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::V1alpha1 => Self::V1beta1,
            Self::V1beta1 => Self::V1alpha1,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text is the name of no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownVersion;

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valid: {}", Version::ALL.map(Version::name).join(", "))
    }
}

impl std::error::Error for UnknownVersion {}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL.into_iter().find(|version| version.name() == text).ok_or(UnknownVersion)
    }
}

/// A path in a specification.
pub(crate) type Field = Vec<&'static str>;

/// A field with a path in each version.
pub(crate) struct Moved {
    /// In v1alpha1.
    pub alpha: Field,
    /// In v1beta1.
    pub beta: Field,
}

impl Moved {
    /// The path in a version.
    pub fn at(&self, version: Version) -> &Field {
        match version {
            Version::V1alpha1 => &self.alpha,
            Version::V1beta1 => &self.beta,
        }
    }
}

/// The fields that both versions have, under different paths.
pub(crate) fn moved() -> &'static [Moved] {
    static MOVED: LazyLock<Vec<Moved>> = LazyLock::new(list_moved);
    &MOVED
}

fn list_moved() -> Vec<Moved> {
    let mut moved = vec![
        Moved { alpha: vec!["exporter"], beta: vec!["envConfig", "exporter"] },
        Moved { alpha: vec!["propagators"], beta: vec!["envConfig", "propagators"] },
        Moved { alpha: vec!["sampler"], beta: vec!["envConfig", "sampler"] },
        Moved { alpha: vec!["resource", "resourceAttributes"], beta: vec!["resource", "attributes"] },
        Moved {
            alpha: vec!["resource", "addK8sUIDAttributes"],
            beta: vec!["resource", "k8sMetadata", "includeUIDs"],
        },
    ];
    for language in LANGUAGES.iter().filter(|language| language.resources != RESOURCES) {
        moved.push(Moved {
            alpha: vec![language.field, language.resources],
            beta: vec![language.field, RESOURCES],
        });
    }
    moved
}

/// The field of every language in v1beta1, and of Java in v1alpha1, that holds limits and requests.
const RESOURCES: &str = "resources";

/// The fields of v1alpha1 that the operator's conversion keeps in [`ALPHA_FIELDS`], each with its name there.
pub(crate) fn kept_by_the_operator() -> &'static [(Field, String)] {
    static KEPT: LazyLock<Vec<(Field, String)>> = LazyLock::new(list_kept);
    &KEPT
}

fn list_kept() -> Vec<(Field, String)> {
    let mut kept = Vec::new();
    for language in LANGUAGES {
        let field = language.field;
        kept.push((vec![field, "volumeLimitSize"], format!("{field}VolumeSizeLimit")));
        if language.export.directive.is_some() {
            kept.push((vec![field, "attrs"], format!("{field}Attrs")));
        }
    }
    kept
}

/// The annotation of v1beta1 objects in which the operator's conversion keeps fields of v1alpha1.
pub const ALPHA_FIELDS: &str = "instrumentation.opentelemetry.io/v1alpha1-fields";

/// The fields that only one version has, besides those that are moved. In v1alpha1 and v1beta1.
pub(crate) fn only_in(version: Version) -> Vec<Field> {
    match version {
        Version::V1alpha1 => {
            let kept = kept_by_the_operator().iter().map(|(field, _)| field.clone());
            kept.chain([vec!["defaults"]]).collect()
        }
        Version::V1beta1 => {
            vec![vec!["envConfig"], vec!["resource", "k8sMetadata"], vec!["resource", "serviceMetadata"]]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_by_its_name_and_by_its_api_version() {
        for version in Version::ALL {
            assert_eq!(version.name().parse(), Ok(version));
            assert_eq!(Version::of(version.api_version()), Some(version));
            assert_eq!(version.other().other(), version);
        }
        assert_eq!("v1".parse::<Version>(), Err(UnknownVersion));
        assert_eq!(UnknownVersion.to_string(), "valid: v1alpha1, v1beta1");
        assert_eq!(Version::of("opentelemetry.io/v1"), None);
    }
}
