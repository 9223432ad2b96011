//! Images that are recorded defaults, and those that are not upgraded.

use serde_json::Value;

use super::verdict::Verdict;
use crate::{
    defaults::DefaultImages,
    image::{Keep, Why, not_upgradable},
};

/// Reports how the images of an Instrumentation are chosen.
pub fn check(verdict: &mut Verdict, object: &Value, images: &DefaultImages) {
    for (language, choice) in images.choices(object) {
        let (name, field) = (language.language, format!("spec.{}.image", language.field));
        let not_upgraded = |verdict: &mut Verdict, reason: &str| {
            let message = format!(
                "{:?} is at a version that cannot be automatically upgraded: {reason}; set the image to upgrade",
                choice.image
            );
            verdict.warn(format!("image-not-upgradable:{name}"), field.clone(), message);
        };
        let breaks = |version: &str| format!("{version} has breaking changes of HTTP semantic conventions");
        match &choice.why {
            Why::Default | Why::Current => {}
            Why::Chosen => {
                if let Some(version) = not_upgradable(language, &choice.image, &images.image(language)) {
                    not_upgraded(verdict, &breaks(version));
                }
            }
            Why::Kept { because: Keep::Breaking(version), .. } => not_upgraded(verdict, &breaks(version)),
            Why::Kept { because: Keep::BlockedByStatus, .. } => {
                not_upgraded(verdict, &format!("status.upgradeBlockedVersions names {name}"));
            }
            Why::Kept { .. } => verdict.note(format!("image-kept:{name}"), field, choice.to_string()),
            Why::Replaced { .. } => verdict.note(format!("image-replaced:{name}"), field, choice.to_string()),
        }
    }
}
