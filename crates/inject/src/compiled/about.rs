//! The metadata and status that decide on an image, and the reported choice.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::held::Held;
use otel_webhook_api::{
    defaults::{LanguageDefaults, image_annotation},
    image::{Choice, Stored},
};

/// The metadata and status of an Instrumentation.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The languages that `status.upgradeBlockedVersions` lists.
    pub blocked: BTreeSet<String>,
}

impl About {
    /// The same with the image of a language in the specification.
    pub fn stored<'s>(&'s self, language: &LanguageDefaults, image: Option<&'s str>) -> Stored<'s> {
        let recorded = self.annotations.get(&image_annotation(language.language)).map(String::as_str);
        Stored { image, recorded, is_blocked: self.blocked.contains(language.language) }
    }
}

/// The choice of an image, if users have to know about it.
#[derive(Clone, PartialEq)]
pub struct Reported(pub Option<Choice>);

impl Held for Reported {
    fn held(&self) -> usize {
        self.0.held()
    }
}

impl fmt::Debug for Reported {
    /// Always the same text, since hashes depend on it, and only the image is configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reported")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compiled::Compiled, language::named, reason::ObjectName};
    use otel_webhook_api::defaults::DefaultImages;

    #[test]
    fn the_hash_depends_on_the_image_and_not_on_why_it_is_used() {
        let compiled = |recorded: &str, images: &DefaultImages| {
            let spec = serde_json::from_value(json!({"java": {"image": "own:2"}})).expect("a specification");
            let mut about = About::default();
            about.annotations.insert(image_annotation("java"), recorded.to_owned());
            let name = ObjectName { namespace: "shop".into(), name: "inst".into() };
            Compiled::new(name, None, &about, &spec, images).expect("a good one")
        };
        let java = named("java").expect("a language");
        let built_in = DefaultImages::default();
        let [chosen, kept] = ["", "own:2"].map(|recorded| compiled(recorded, &built_in));
        assert_ne!(chosen.parts[java.index()].reported, kept.parts[java.index()].reported);
        assert_eq!(chosen.hash(java), kept.hash(java));
        let set = DefaultImages { overrides: [("java".into(), "own:3".into())].into(), registry: None };
        assert_ne!(compiled("own:2", &set).hash(java), kept.hash(java), "it is replaced");
    }
}
