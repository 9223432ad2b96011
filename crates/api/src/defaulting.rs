//! Defaulting: sets the fields that an Instrumentation does not set, when it is stored.
//!
//! The result is a list of patch operations, collected while the object is compared
//! with the defaults. They do not touch any field that the object sets itself,
//! so those stay unchanged, unknown fields included.

use json_patch::{AddOperation, Patch, PatchOperation, jsonptr::PointerBuf};
use serde_json::{Map, Value};

use super::{
    conversion::version_of,
    defaults::{DefaultImages, LIMITS, LanguageDefaults, image_annotation},
    image::Choice,
    values::is_hollow,
    version::Version,
};

/// Returns the operations that default an Instrumentation; none if it has no field to default.
///
/// In v1beta1, nothing is: there, the operator injects the languages that have an image, so a default would be more than
/// its author wrote. Injection uses the same defaults.
///
/// What cannot be defaulted, such as a `spec` that is not an object, is left to validation.
pub fn defaulting(object: &Value, images: &DefaultImages) -> Patch {
    if version_of(object) == Ok(Version::V1beta1) {
        return Patch::default();
    }
    let choices: Vec<_> = images.choices(object).collect();
    let spec = choices.iter().map(|(language, choice)| (language.field, of_language(language, choice)));
    let annotations = choices.iter().map(|(language, choice)| {
        let record = Fill::Always(choice.record(images.image(language)));
        (image_annotation(language.language), record)
    });
    let mut operations = Operations::default();
    if object.is_object() {
        let metadata = Fill::group([("annotations", Fill::group(annotations))]);
        let whole = Fill::group([("metadata", metadata), ("spec", Fill::group(spec))]);
        operations.fill(&PointerBuf::root(), Some(object), &whole);
    }
    Patch(operations.0)
}

/// Whether the author of an Instrumentation wrote the part of a language, before or after defaulting:
/// defaulting writes a part for every language.
pub fn is_written(object: &Value, language: &LanguageDefaults) -> bool {
    let recorded = &object["metadata"]["annotations"][image_annotation(language.language)];
    let Some(members) = object["spec"][language.field].as_object() else { return false };
    let resources =
        serde_json::json!({"limits": quantities(&LIMITS), "requests": quantities(&language.requests)});
    let is_default = |key: &str, value: &Value| match key {
        "image" => value == recorded || value == language.image,
        key if key == language.resources => *value == resources,
        key => language.others.iter().any(|(field, default)| *field == key && value == default),
    };
    // Without a recorded image it was not defaulted.
    recorded.is_null() || members.iter().any(|(key, value)| !is_hollow(value) && !is_default(key, value))
}

/// The default of one place of the object.
enum Fill {
    /// An object; its members are defaulted one by one.
    Group(Vec<(String, Fill)>),
    /// A value, set as a whole if there is none.
    Whole(Value),
    /// A string, set if there is none.
    Text(String),
    /// A string that is always set.
    Always(String),
}

fn of_language(language: &LanguageDefaults, image: &Choice) -> Fill {
    let image = Fill::Always(image.image.clone());
    let resources = Fill::group([
        ("limits", Fill::Whole(quantities(&LIMITS))),
        ("requests", Fill::Whole(quantities(&language.requests))),
    ]);
    let mut members = vec![("image".to_owned(), image), (language.resources.to_owned(), resources)];
    let others = language.others.iter();
    members.extend(others.map(|(field, default)| ((*field).to_owned(), Fill::Text((*default).to_owned()))));
    Fill::Group(members)
}

fn quantities(list: &[(&str, &str)]) -> Value {
    list.iter()
        .map(|(name, quantity)| ((*name).to_owned(), Value::from(*quantity)))
        .collect::<Map<_, _>>()
        .into()
}

impl Fill {
    fn group<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Group(members.into_iter().map(|(key, fill)| (key.into(), fill)).collect())
    }

    fn value(&self) -> Value {
        match self {
            Self::Group(members) => {
                let members = members.iter().map(|(key, fill)| (key.clone(), fill.value()));
                members.collect::<Map<_, _>>().into()
            }
            Self::Whole(value) => value.clone(),
            Self::Text(text) | Self::Always(text) => text.clone().into(),
        }
    }

    /// Whether the default replaces the present value. A null is treated as
    /// not set; an empty object is treated as set.
    fn replaces(&self, present: &Value) -> bool {
        match (self, present) {
            (Self::Always(text), Value::String(present)) => text != present,
            (Self::Text(_), Value::String(present)) => present.is_empty(),
            (_, present) => present.is_null(),
        }
    }
}

#[derive(Default)]
struct Operations(Vec<PatchOperation>);

impl Operations {
    fn fill(&mut self, path: &PointerBuf, present: Option<&Value>, fill: &Fill) {
        match (fill, present) {
            (Fill::Group(members), Some(Value::Object(object))) => {
                for (key, fill) in members {
                    let mut path = path.clone();
                    path.push_back(key);
                    self.fill(&path, object.get(key), fill);
                }
            }
            (fill, present) => {
                if present.is_none_or(|present| fill.replaces(present)) {
                    // `add` sets a member, whether it exists or not.
                    let operation = AddOperation { path: path.clone(), value: fill.value() };
                    self.0.push(PatchOperation::Add(operation));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::defaults::JAVA;
    use crate::defaults::LANGUAGES;

    fn defaulted(object: &Value, images: &DefaultImages) -> Value {
        let mut after = object.clone();
        json_patch::patch(&mut after, &defaulting(object, images)).expect("the operations fit");
        after
    }

    const RECORD: &str = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";

    #[test]
    fn values_that_are_not_objects_are_not_changed() {
        let images = DefaultImages::default();
        for object in [json!(null), json!("text"), json!([{}])] {
            assert_eq!(defaulting(&object, &images), Patch(Vec::new()));
        }
        let odd = json!({"metadata": "m", "spec": {"java": 3, "go": {"resourceRequirements": []}}});
        let after = defaulted(&odd, &images);
        assert_eq!(after["metadata"], "m");
        assert_eq!(after["spec"]["java"], 3);
        assert_eq!(after["spec"]["go"]["resourceRequirements"], json!([]));
        assert_eq!(after["spec"]["nginx"]["configFile"], "/etc/nginx/nginx.conf");
    }

    #[test]
    fn the_recorded_image_follows_the_installation_and_so_does_an_unpinned_image() {
        let old = defaulted(&json!({"metadata": {}}), &DefaultImages::default());
        let images =
            DefaultImages { registry: Some("mirror.example.com".into()), ..DefaultImages::default() };
        let new = defaulted(&old, &images);
        let image =
            "mirror.example.com/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0";
        assert_eq!(new["metadata"]["annotations"][RECORD], image);
        assert_eq!(new["spec"]["java"]["image"], image);

        let mut pinned = old;
        pinned["spec"]["java"]["image"] = json!("own:1");
        assert_eq!(defaulted(&pinned, &images)["spec"]["java"]["image"], "own:1");
    }

    #[test]
    fn a_kept_image_stays_recorded_and_a_chosen_one_does_not() {
        let official = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java";
        let set = DefaultImages { registry: Some("mirror.example.com".into()), ..DefaultImages::default() };
        let mirrored = set.image(&JAVA);
        let (old, breaking) = (format!("{official}:2.29.0"), format!("{official}:1.33.6"));
        let newer = format!("{official}:2.31.0");
        for (images, image, recorded, expected) in [
            (&DefaultImages::default(), &*old, &*old, [JAVA.image; 2]),
            (&DefaultImages::default(), "corp/java:2.1", "corp/java:2.1", ["corp/java:2.1"; 2]),
            (&DefaultImages::default(), &newer, &newer, [&*newer; 2]),
            (&DefaultImages::default(), &breaking, &breaking, [&*breaking; 2]),
            (&DefaultImages::default(), &old, "corp/java:2.1", [&*old, JAVA.image]),
            (&set, &old, &old, [&*mirrored; 2]),
            (&set, "corp/java:2.1", "corp/java:2.1", [&*mirrored; 2]),
            (&set, &breaking, &breaking, [&*breaking; 2]),
        ] {
            let object = json!({
                "metadata": {"annotations": {RECORD: recorded}}, "spec": {"java": {"image": image}},
            });
            let after = defaulted(&object, images);
            let found = [&after["spec"]["java"]["image"], &after["metadata"]["annotations"][RECORD]];
            assert_eq!(found, expected, "{image} with the record {recorded}");
            assert_eq!(defaulting(&after, images), Patch(Vec::new()), "{image} is not stable");
        }
        let blocked = json!({
            "metadata": {"annotations": {RECORD: old}}, "spec": {"java": {"image": old}},
            "status": {"upgradeBlockedVersions": {"java": "blocked"}},
        });
        let after = defaulted(&blocked, &DefaultImages::default());
        assert_eq!(
            [&after["spec"]["java"]["image"], &after["metadata"]["annotations"][RECORD]],
            [&old, &old]
        );
    }

    #[test]
    fn overrides_are_defaults_too() {
        let overrides = [("java".to_owned(), "own:1".to_owned())].into();
        let images = DefaultImages { overrides, registry: Some("mirror.example.com".into()) };
        let after = defaulted(&json!({}), &images);
        assert_eq!(after["metadata"]["annotations"][RECORD], "own:1");
        assert_eq!(after["spec"]["java"]["image"], "own:1");
    }

    #[test]
    fn languages_that_the_author_wrote_differ_from_those_that_defaulting_writes() {
        let images =
            DefaultImages { registry: Some("mirror.example.com".into()), ..DefaultImages::default() };
        let written = |object: &Value| {
            let written = LANGUAGES.iter().filter(|language| is_written(object, language));
            written.map(|language| language.language).collect::<Vec<_>>()
        };
        for (spec, own) in [
            (json!({}), &[][..]),
            (json!({"java": {"volumeClaimTemplate": {"metadata": {}, "spec": {}}}}), &[]),
            (json!({"java": {"image": "own:1"}, "nginx": {"configFile": "/nginx.conf"}}), &["java", "nginx"]),
            (json!({"go": {"env": [{"name": "A", "value": "b"}]}}), &["go"]),
            (json!({"dotnet": {"resourceRequirements": {"limits": {"cpu": "1"}}}}), &["dotnet"]),
        ] {
            assert_eq!(written(&defaulted(&json!({"spec": spec}), &images)), own, "{spec}");
        }
        assert_eq!(written(&json!({"spec": {"java": {}}})), ["java"]);
    }

    #[test]
    fn a_defaulted_object_has_no_operations() {
        let images = DefaultImages::default();
        let once = defaulted(&json!({"metadata": {"name": "a"}}), &images);
        assert_eq!(defaulting(&once, &images), Patch(Vec::new()));
    }
}
