//! Versions of Kubernetes and of container runtimes.

use std::fmt;

/// The part of a version that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// Whether it is not a pre-release of that minor version.
    is_released: bool,
}

/// What the names of pre-releases begin with. Other suffixes are those of builds, such as `-gke.100`.
const PRE_RELEASES: [&str; 3] = ["alpha", "beta", "rc"];

impl Version {
    /// A released version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor, is_released: true }
    }

    /// Reads a version such as `v1.36.2`, `2.1.4-k3s1` or `1.36+`. `None` if it has no two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = number(text)?;
        let (minor, rest) = number(rest.strip_prefix('.')?)?;
        let (patch, rest) = rest.strip_prefix('.').and_then(number).unwrap_or((0, rest));
        let suffix = rest.strip_prefix('-').unwrap_or_default();
        let is_pre_release = patch == 0 && PRE_RELEASES.iter().any(|name| suffix.starts_with(name));
        Some(Self { major, minor, is_released: !is_pre_release })
    }
}

/// The digits that a text begins with, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_distributions_and_clouds_are_compared_by_two_numbers() {
        let least = Version::new(1, 36);
        for (text, is_enough) in [
            ("v1.36.0", true),
            ("v1.36.2+k3s1", true),
            ("v1.36.1-gke.1234000", true),
            ("v1.36.3-eks-5e0fdde", true),
            ("v1.100.0", true),
            ("v2.0.0", true),
            ("1.36+", true),
            ("v1.36.1-rc.1", true),
            ("v1.36.0-rc.1", false),
            ("v1.36.0-alpha.2.12+abc", false),
            ("v1.37.0-beta.0", true),
            ("v1.35.9", false),
            ("v1.4.0", false),
        ] {
            assert_eq!(Version::parse(text).map(|version| version >= least), Some(is_enough), "{text}");
        }
        for text in ["", "unknown", "v1", "v1.", "v.36", "36", "v99999999999.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
