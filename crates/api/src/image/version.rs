//! Tags that are versions, and their order: `2.30.0`, `v0.24.0`, `0.64b0`, `2.30.0-rc.1`, `2.30.0-alpine`,
//! `2.30.0-1`.

use std::cmp::Ordering;

/// A tag that is a version.
#[derive(Debug, PartialEq, Eq)]
pub struct Version<'t> {
    numbers: Vec<u64>,
    /// The stage of a pre-release, and its number; `None` for a release.
    stage: Option<(usize, u64)>,
    /// The suffix, such as `-alpine`.
    variant: &'t str,
}

/// Names of the stages of pre-releases, from early to late; those of one row are equal.
const STAGES: [&[&str]; 4] =
    [&["dev", "snapshot"], &["alpha", "a"], &["beta", "b"], &["rc", "c", "pre", "preview"]];

impl<'t> Version<'t> {
    /// Parses a tag; `None` if it is not a version, such as `latest`.
    pub fn parse(tag: &'t str) -> Option<Self> {
        let mut rest = tag.strip_prefix(['v', 'V']).unwrap_or(tag);
        let mut numbers = Vec::new();
        loop {
            let (number, behind) = number(rest)?;
            numbers.push(number);
            rest = behind;
            match behind.strip_prefix('.') {
                Some(next) if next.starts_with(|letter: char| letter.is_ascii_digit()) => rest = next,
                _ => break,
            }
        }
        // `1.0` and `1.0.0` are the same.
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let (stage, variant) = stage(rest);
        // Text that follows without a separator belongs to a hash or a name, not to a version.
        let is_parted = variant.is_empty() || variant.starts_with(['-', '+', '_', '.']);
        is_parted.then_some(Self { numbers, stage, variant })
    }

    /// Compares two versions; `None` if they cannot be compared, as `-alpine` and `-debian`.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let numbers = self.numbers.cmp(&other.numbers);
        if numbers.is_ne() {
            return Some(numbers);
        }
        let release = (STAGES.len(), 0);
        let stages = self.stage.unwrap_or(release).cmp(&other.stage.unwrap_or(release));
        let [(name, build), (other_name, other_build)] = [self, other].map(|version| build(version.variant));
        match name == other_name {
            _ if stages.is_ne() => Some(stages),
            true => build.partial_cmp(&other_build),
            false => None,
        }
    }

    /// Whether it is earlier than a release. As in semantic versions, one with a hyphen is.
    pub fn is_below(&self, release: &Self) -> bool {
        match self.numbers.cmp(&release.numbers) {
            Ordering::Equal => {
                self.stage.is_some() || self.variant.starts_with('-') && !is_revision(self.variant)
            }
            order => order.is_lt(),
        }
    }
}

/// The digits at the beginning of a string, as a number, and the rest.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The pre-release at the beginning of a string, and the rest.
fn stage(text: &str) -> (Option<(usize, u64)>, &str) {
    let word = text.strip_prefix(['-', '.', '_']).unwrap_or(text);
    let end = word.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(word.len());
    let (name, rest) = (word[..end].to_ascii_lowercase(), &word[end..]);
    let Some(rank) = STAGES.iter().position(|names| names.contains(&&*name)) else {
        return (None, text);
    };
    let digits = rest.strip_prefix(['.', '-', '_']).unwrap_or(rest);
    let (build, rest) = number(digits).unwrap_or((0, rest));
    (Some((rank, build)), rest)
}

/// Whether a suffix is the revision of an image of a release, such as `-1`.
fn is_revision(variant: &str) -> bool {
    let digits = variant.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// The name of a variant, and the number at its end.
fn build(variant: &str) -> (&str, u64) {
    let name = variant.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if is_revision(variant) {
        return ("", variant[name.len()..].parse().unwrap_or_default());
    }
    (name, variant[name.len()..].parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(tag: &str) -> Version<'_> {
        Version::parse(tag).unwrap_or_else(|| panic!("{tag} is a version"))
    }

    #[test]
    fn versions_have_an_order() {
        for ascending in [
            &["1", "v1.33.6", "2.0.0-rc1", "2.0", "2.29.0", "v2.30.0", "2.30.1-alpine", "10.0.0"][..],
            &["0.63b1", "0.64a2", "0.64b0", "0.64b1", "0.64rc1", "0.64"],
            &["2.30.0-SNAPSHOT", "2.30.0-alpha", "2.30.0-beta.2", "2.30.0-beta.10", "2.30.0-rc.1", "2.30.0"],
            &["2.30.0-rc.1", "2.30.0", "2.30.0-1", "2.30.0-2", "2.30.0-10", "2.30.1"],
            &["20260101", "20261231"],
        ] {
            for (index, one) in ascending.iter().enumerate() {
                for (other_index, other) in ascending.iter().enumerate() {
                    let expected = Some(index.cmp(&other_index));
                    assert_eq!(version(one).compare(&version(other)), expected, "{one} and {other}");
                }
            }
        }
        for (one, other) in [("2", "2.0.0"), ("v0.24.0", "0.24.0"), ("1.0.0-RC.1", "1.0rc1")] {
            assert_eq!(version(one).compare(&version(other)), Some(Ordering::Equal), "{one} and {other}");
        }
        for (one, other) in
            [("2.30.0", "2.30.0-alpine"), ("2.30.0-1", "2.30.0-alpine"), ("2.30.0-debian", "2.30.0-alpine")]
        {
            assert_eq!(version(one).compare(&version(other)), None, "{one} and {other}");
        }
    }

    #[test]
    fn tags_that_are_not_versions_are_none() {
        for tag in
            ["", "latest", "main", "build-7", "1a2b3c4", "7f3e", "v", "sha-1", "99999999999999999999", "1x"]
        {
            assert_eq!(Version::parse(tag), None, "{tag}");
        }
    }

    #[test]
    fn a_pre_release_is_below_its_release() {
        for (tag, expected) in [
            ("1.33.6", true),
            ("v1", true),
            ("2.0.0-rc1", true),
            ("2.0.0-corp", true),
            ("2.0.0", false),
            ("2", false),
            ("2.0.0-1", false),
            ("2.0.1-rc1", false),
        ] {
            assert_eq!(version(tag).is_below(&version("2.0.0")), expected, "{tag}");
        }
    }
}
