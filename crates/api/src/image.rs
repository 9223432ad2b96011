//! The image of a language: the one that its Instrumentation sets, or the present default (D28).
//!
//! Defaulting writes the default image into an Instrumentation, and records it in an annotation. An image
//! that equals its recorded default was not chosen by the author, so the present default may replace it. It
//! does if that cannot break pods: they have to run as before, and the old image can still be pulled.

mod reference;
mod version;

use std::fmt;

use serde_json::Value;

use super::defaults::{DefaultImages, LANGUAGES, LanguageDefaults, image_annotation};
use reference::Reference;
use version::Version;

/// What an Instrumentation sets and records about a language's image.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stored<'s> {
    /// The image.
    pub image: Option<&'s str>,
    /// The default image that was recorded when it was stored.
    pub recorded: Option<&'s str>,
    /// Whether `status.upgradeBlockedVersions` lists the language.
    pub is_blocked: bool,
}

/// The image to use for a language.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The image.
    pub image: String,
    /// Why this image is used.
    pub why: Why,
}

/// Why an image is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The Instrumentation sets none, so the present default is used.
    Default,
    /// The image is not the recorded default: the author chose it.
    Chosen,
    /// The recorded default equals the present one.
    Current,
    /// The present default replaces the recorded one.
    Replaced {
        /// The image that the Instrumentation has.
        stored: String,
    },
    /// The recorded default is kept.
    Kept {
        /// The present default.
        default: String,
        /// Why it is kept.
        because: Keep,
    },
}

/// Why the present default does not replace the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// Its repository is not that of the built-in default that would replace it; it may be a mirror.
    OtherRepository,
    /// `status.upgradeBlockedVersions` lists the language.
    BlockedByStatus,
    /// This version, which has breaking changes, lies between the two.
    Breaking(&'static str),
    /// The present default is an older version of the same repository.
    OlderDefault,
    /// It has a digest, and no administrator set the default.
    Digest,
    /// It has no version that can be compared, and no administrator set the default.
    NoVersion,
}

impl<'s> Stored<'s> {
    /// Reads what an object sets and records about a language's image.
    pub fn of(object: &'s Value, language: &LanguageDefaults) -> Self {
        let annotations = &object["metadata"]["annotations"];
        Self {
            image: object["spec"][language.field]["image"].as_str(),
            recorded: annotations[image_annotation(language.language)].as_str(),
            is_blocked: blocked(object).any(|blocked| blocked == language.language),
        }
    }
}

/// The languages that the operator does not upgrade in an Instrumentation.
pub fn blocked(object: &Value) -> impl Iterator<Item = &str> {
    let names = object["status"]["upgradeBlockedVersions"].as_object().into_iter().flatten();
    names.map(|(language, _)| language.as_str())
}

impl DefaultImages {
    /// The image of every language of an Instrumentation.
    pub fn choices(&self, object: &Value) -> impl Iterator<Item = (&'static LanguageDefaults, Choice)> {
        LANGUAGES.into_iter().map(|language| (language, self.choose(language, Stored::of(object, language))))
    }

    /// The image of a language, and why it is this one.
    pub fn choose(&self, language: &LanguageDefaults, stored: Stored<'_>) -> Choice {
        let default = self.image(language);
        let Some(image) = stored.image.filter(|image| !image.is_empty()) else {
            return Choice { image: default, why: Why::Default };
        };
        let kept = |why| Choice { image: image.to_owned(), why };
        if stored.recorded != Some(image) {
            return kept(Why::Chosen);
        }
        if image == default {
            return kept(Why::Current);
        }
        match self.reason_to_keep(language, image, &default, stored.is_blocked) {
            Some(because) => kept(Why::Kept { default, because }),
            None => Choice { image: default, why: Why::Replaced { stored: image.to_owned() } },
        }
    }

    fn reason_to_keep(
        &self,
        language: &LanguageDefaults,
        image: &str,
        default: &str,
        is_blocked: bool,
    ) -> Option<Keep> {
        let [old, new, built_in] = [image, default, language.image].map(Reference::of);
        // Nodes that pull from a mirror may not reach the public registry.
        if new.repository == built_in.repository && old.repository != built_in.repository {
            return Some(Keep::OtherRepository);
        }
        if is_blocked {
            return Some(Keep::BlockedByStatus);
        }
        if let Some(version) = breaking_between(language, &old, &new) {
            return Some(Keep::Breaking(version));
        }
        if old.repository != new.repository {
            return None;
        }
        // If versions cannot be compared, the administrator's default is used.
        let is_set = self.is_set(language);
        match old.version().zip(new.version()).and_then(|(old, new)| old.compare(&new)) {
            Some(std::cmp::Ordering::Greater) => Some(Keep::OlderDefault),
            _ if is_set => None,
            _ if old.digest.is_some() => Some(Keep::Digest),
            Some(_) => None,
            None => Some(Keep::NoVersion),
        }
    }
}

/// The version with breaking changes between two images. A default without a version may be
/// later than it, so it does not replace an older image either.
fn breaking_between(
    language: &LanguageDefaults,
    old: &Reference<'_>,
    new: &Reference<'_>,
) -> Option<&'static str> {
    let is_crossed = match sides(language, old, new)? {
        (Some(old), Some(new)) => old != new,
        (old, None) => old == Some(true),
        (None, _) => false,
    };
    language.breaking.filter(|_| is_crossed)
}

/// Whether two images are below the language's version with breaking changes, as far as their tags tell.
fn sides(
    language: &LanguageDefaults,
    old: &Reference<'_>,
    new: &Reference<'_>,
) -> Option<(Option<bool>, Option<bool>)> {
    let breaking = Version::parse(language.breaking?)?;
    let is_below = |image: &Reference<'_>| image.version().map(|version| version.is_below(&breaking));
    Some((is_below(old), is_below(new)))
}

/// The version with breaking changes for which the operator would not upgrade an image, chosen or not:
/// it is between the image and the default of the same repository.
pub fn not_upgradable(language: &LanguageDefaults, image: &str, default: &str) -> Option<&'static str> {
    let [old, new] = [image, default].map(Reference::of);
    let is_between = sides(language, &old, &new) == Some((Some(true), Some(false)));
    language.breaking.filter(|_| is_between && old.repository == new.repository)
}

impl Choice {
    /// The default image to record. For a kept image it stays the same, or the image would look chosen.
    pub fn record(&self, default: String) -> String {
        if let Why::Kept { .. } = self.why { self.image.clone() } else { default }
    }

    /// Whether the recorded default differs from the present one, so that users have to know about it.
    pub fn is_reported(&self) -> bool {
        matches!(self.why, Why::Replaced { .. } | Why::Kept { .. })
    }

    /// Whether the Instrumentation's author chose it.
    pub fn is_chosen(&self) -> bool {
        self.why == Why::Chosen
    }

    /// Whether the present default replaced the recorded one.
    pub fn is_replaced(&self) -> bool {
        matches!(self.why, Why::Replaced { .. })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let image = &self.image;
        match &self.why {
            Why::Default => write!(f, "the default image \"{image}\" is used"),
            Why::Chosen => write!(f, "the image \"{image}\" is used"),
            Why::Current => write!(f, "the recorded default image \"{image}\" is used"),
            Why::Replaced { stored } => {
                write!(f, "the recorded default image \"{stored}\" is replaced by the default \"{image}\"")
            }
            Why::Kept { default, because } => write!(
                f,
                "the recorded default image \"{image}\" is not replaced by the default \"{default}\": {because}"
            ),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherRepository => {
                "its repository is not that of the built-in default; to replace it, set --default-image \
                 or --image-registry to your own registry"
            }
            Self::BlockedByStatus => {
                "status.upgradeBlockedVersions names the language; set the image to upgrade"
            }
            Self::Breaking(version) => {
                return write!(f, "{version} has breaking changes; set the image to upgrade");
            }
            Self::OlderDefault => "the default is an older version",
            Self::Digest => "it has a digest; to replace it, set the image or --default-image",
            Self::NoVersion => {
                "their versions cannot be compared; to replace it, set the image or --default-image"
            }
        })
    }
}

#[cfg(test)]
mod tests;
