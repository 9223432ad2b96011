//! What decides on an image beside the specification, and what is reported of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use otel_webhook_api::{
    defaults::{LanguageDefaults, image_annotation},
    image::{Choice, Stored},
};

/// What an Instrumentation has beside its specification.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The languages that `status.upgradeBlockedVersions` names.
    pub blocked: BTreeSet<String>,
}

impl About {
    /// The same with the image that the specification has for a language.
    pub fn stored<'s>(&'s self, language: &LanguageDefaults, image: Option<&'s str>) -> Stored<'s> {
        let recorded = self.annotations.get(&image_annotation(language.language)).map(String::as_str);
        Stored { image, recorded, is_blocked: self.blocked.contains(language.language) }
    }
}

/// The choice of an image, where users have to know of it.
#[derive(Clone, PartialEq)]
pub struct Reported(pub Option<Choice>);

impl fmt::Debug for Reported {
    /// Always the same. Hashes are made of this text, and what is configured is the image alone.
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
    fn a_hash_is_of_the_image_and_not_of_why_it_is_used() {
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
        assert_ne!(chosen.languages[java.index()].reported, kept.languages[java.index()].reported);
        assert_eq!(chosen.hash(java), kept.hash(java));
        let set = DefaultImages { overrides: [("java".into(), "own:3".into())].into(), registry: None };
        assert_ne!(compiled("own:2", &set).hash(java), kept.hash(java), "it is replaced");
    }
}
