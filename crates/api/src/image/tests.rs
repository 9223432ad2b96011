use serde_json::json;

use super::*;
use crate::defaults::{DOTNET, GO, JAVA, PYTHON};

const OFFICIAL: &str = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java";
const MIRROR: &str = "mirror.example.com:5000/otel/java";

fn images(java: Option<&str>, registry: Option<&str>) -> DefaultImages {
    let overrides = java.map(|image| ("java".to_owned(), image.to_owned())).into_iter().collect();
    DefaultImages { overrides, registry: registry.map(str::to_owned) }
}

/// The result for an image that equals its recorded default: the new image, or the reason to keep it.
fn follow(language: &LanguageDefaults, images: &DefaultImages, image: &str) -> Result<String, Keep> {
    let stored = Stored { image: Some(image), recorded: Some(image), is_blocked: false };
    let choice = images.choose(language, stored);
    match choice.why {
        Why::Current => Ok("=".to_owned()),
        Why::Replaced { stored } => {
            assert_eq!(stored, image);
            Ok(choice.image)
        }
        Why::Kept { because, default } => {
            assert_eq!((choice.image.as_str(), default), (image, images.image(language)));
            Err(because)
        }
        Why::Default | Why::Chosen => panic!("{image} is neither the default nor chosen: {:?}", choice.why),
    }
}

fn official(tag: &str) -> String {
    format!("{OFFICIAL}{tag}")
}

fn mirrored(tag: &str) -> String {
    format!("{MIRROR}{tag}")
}

const BREAKS: Keep = Keep::Breaking("2.0.0");

#[test]
fn the_built_in_default_replaces_images_of_its_repository_only() {
    let built_in = DefaultImages::default();
    for (image, expected) in [
        (official(":2.29.0"), Ok(JAVA.image)),
        (official(":2.0.0"), Ok(JAVA.image)),
        (official(":2.30.0-rc1"), Ok(JAVA.image)),
        (official(":2.30.0"), Ok("=")),
        (official(":2.30.1"), Err(Keep::OlderDefault)),
        (official(":2.31.0"), Err(Keep::OlderDefault)),
        (official(":2.31.0@sha256:00"), Err(Keep::OlderDefault)),
        (official(":1.33.6"), Err(BREAKS)),
        (official(":v1"), Err(BREAKS)),
        (official(":2.0.0-rc1"), Err(BREAKS)),
        (official(":1.33.6@sha256:00"), Err(BREAKS)),
        (official("@sha256:00"), Err(Keep::Digest)),
        (official(":2.29.0@sha256:00"), Err(Keep::Digest)),
        (official(":latest"), Err(Keep::NoVersion)),
        (official(":2.30.0-alpine"), Err(Keep::NoVersion)),
        (official(""), Err(Keep::NoVersion)),
        (mirrored(":2.29.0"), Err(Keep::OtherRepository)),
        (mirrored(":1.33.6"), Err(Keep::OtherRepository)),
        (format!("mirror.example.com/{OFFICIAL}:2.29.0"), Err(Keep::OtherRepository)),
        (format!("{OFFICIAL}-own:2.29.0"), Err(Keep::OtherRepository)),
        ("own:7".to_owned(), Err(Keep::OtherRepository)),
    ] {
        assert_eq!(follow(&JAVA, &built_in, &image), expected.map(str::to_owned), "{image}");
    }
}

#[test]
fn an_administrators_default_replaces_images_of_every_repository_but_never_by_an_older_or_breaking_version() {
    let newer = mirrored(":2.30.0");
    let set = images(Some(&newer), None);
    for (image, expected) in [
        (official(":2.29.0"), Ok(&*newer)),
        // Another repository: the administrator decides from which one to pull.
        (official(":2.31.0"), Ok(&newer)),
        (official("@sha256:00"), Ok(&newer)),
        (official(":latest"), Ok(&newer)),
        ("other:2.1".to_owned(), Ok(&newer)),
        (mirrored(":2.29.0"), Ok(&newer)),
        // Which one is older is unknown, so the administrator's default is used.
        (mirrored(":latest"), Ok(&newer)),
        (mirrored("@sha256:00"), Ok(&newer)),
        (mirrored(":2.30.0@sha256:00"), Ok(&newer)),
        (mirrored(":2.30.0"), Ok("=")),
        (mirrored(":2.31.0"), Err(Keep::OlderDefault)),
        (mirrored(":2.31.0@sha256:00"), Err(Keep::OlderDefault)),
        (mirrored(":1.33.6"), Err(BREAKS)),
        (official(":1.33.6"), Err(BREAKS)),
        ("other:1".to_owned(), Err(BREAKS)),
    ] {
        assert_eq!(follow(&JAVA, &set, &image), expected.map(str::to_owned), "{image}");
    }
}

#[test]
fn an_older_default_of_an_administrator_is_used_only_if_no_image_is_set() {
    let older = official(":2.28.0");
    let set = images(Some(&older), None);
    assert_eq!(set.choose(&JAVA, Stored::default()).image, older);
    assert_eq!(follow(&JAVA, &set, &official(":2.27.0")), Ok(older.clone()));
    assert_eq!(follow(&JAVA, &set, &official(":2.29.0")), Err(Keep::OlderDefault));
    // Setting the public image does not mean that nodes can reach the public registry.
    assert_eq!(follow(&JAVA, &set, &mirrored(":2.27.0")), Err(Keep::OtherRepository));

    let before = mirrored(":1.33.6");
    let set = images(Some(&before), None);
    assert_eq!(follow(&JAVA, &set, &official(":2.30.0")), Err(BREAKS));
    assert_eq!(follow(&JAVA, &set, &official(":1.32.0")), Ok(before));
    let hash = mirrored(":build-7");
    let set = images(Some(&hash), None);
    assert_eq!(follow(&JAVA, &set, &mirrored(":build-6")), Ok(hash.clone()));
    assert_eq!(follow(&JAVA, &set, &official(":2.30.0")), Ok(hash));
    assert_eq!(follow(&JAVA, &set, &official(":1.33.6")), Err(BREAKS), "build-7 may be beyond");
}

#[test]
fn a_registry_of_the_administrator_applies_to_every_language() {
    for registry in ["mirror.example.com:5000", "mirror.example.com/a/b/"] {
        let set = images(None, Some(registry));
        let java = set.image(&JAVA);
        assert_eq!(follow(&JAVA, &set, &official(":2.29.0")), Ok(java.clone()));
        assert_eq!(follow(&JAVA, &set, "other.example.com/java:2.29.0"), Ok(java.clone()));
        assert_eq!(follow(&JAVA, &set, &official(":1.33.6")), Err(BREAKS));
        assert_eq!(follow(&JAVA, &set, &java.replace(":2.30.0", ":2.31.0")), Err(Keep::OlderDefault));
        assert_eq!(follow(&GO, &set, "go:1"), Ok(set.image(&GO)));
    }
    let public = images(None, Some("ghcr.io"));
    assert_eq!(follow(&JAVA, &public, &mirrored(":2.29.0")), Err(Keep::OtherRepository));
    assert_eq!(follow(&JAVA, &public, &official(":2.29.0")), Ok(JAVA.image.to_owned()));
}

#[test]
fn only_java_and_dotnet_have_a_version_with_breaking_changes() {
    let built_in = DefaultImages::default();
    for (language, older, expected) in [
        (&DOTNET, "1.2.0", Err(Keep::Breaking("1.3.0"))),
        (&DOTNET, "1.3.0", Ok(DOTNET.image)),
        (&PYTHON, "0.63b1", Ok(PYTHON.image)),
        (&PYTHON, "0.64b1", Err(Keep::OlderDefault)),
        (&PYTHON, "0.64", Err(Keep::OlderDefault)),
        (&GO, "v0.9.1", Ok(GO.image)),
        (&GO, "v0.25.0", Err(Keep::OlderDefault)),
    ] {
        let (repository, _) = language.image.rsplit_once(':').expect("a tag");
        let image = format!("{repository}:{older}");
        assert_eq!(follow(language, &built_in, &image), expected.map(str::to_owned), "{image}");
    }
}

#[test]
fn a_chosen_or_missing_image_does_not_depend_on_versions() {
    let built_in = DefaultImages::default();
    let old = official(":2.29.0");
    for recorded in [None, Some(JAVA.image), Some("")] {
        let choice = built_in.choose(&JAVA, Stored { image: Some(&old), recorded, ..Stored::default() });
        assert_eq!(choice, Choice { image: old.clone(), why: Why::Chosen }, "{recorded:?}");
    }
    for image in [None, Some("")] {
        for is_blocked in [false, true] {
            let choice = built_in.choose(&JAVA, Stored { image, recorded: Some(""), is_blocked });
            assert_eq!(choice, Choice { image: JAVA.image.to_owned(), why: Why::Default });
        }
    }
}

#[test]
fn the_status_keeps_the_images_of_the_languages_that_it_lists() {
    let record = image_annotation("java");
    let object = |blocked: &str| {
        json!({
            "metadata": {"annotations": {record.clone(): official(":2.29.0")}},
            "spec": {"java": {"image": official(":2.29.0")}},
            "status": {"upgradeBlockedVersions": {blocked: "Automated upgrade blocked"}},
        })
    };
    for images in [DefaultImages::default(), images(Some("own:3"), None)] {
        let why = |object: &Value| images.choose(&JAVA, Stored::of(object, &JAVA)).why;
        let kept = Why::Kept { default: images.image(&JAVA), because: Keep::BlockedByStatus };
        assert_eq!(why(&object("java")), kept);
        assert_eq!(why(&object("python")), Why::Replaced { stored: official(":2.29.0") });
    }
}

#[test]
fn the_operator_upgrades_no_image_of_the_default_repository_across_breaking_changes() {
    for (image, default, expected) in [
        (official(":1.99.9"), JAVA.image.to_owned(), Some("2.0.0")),
        (official(":2.0.0"), JAVA.image.to_owned(), None),
        (official(":latest"), JAVA.image.to_owned(), None),
        (mirrored(":1.99.9"), JAVA.image.to_owned(), None),
        (mirrored(":1.99.9"), mirrored(":2.1"), Some("2.0.0")),
        (mirrored(":1.99.9"), mirrored(":1.99.10"), None),
        (mirrored(":1.99.9"), mirrored(":latest"), None),
    ] {
        assert_eq!(not_upgradable(&JAVA, &image, &default), expected, "{image}");
    }
    assert_eq!(not_upgradable(&GO, "go:1", "go:9"), None);
}

#[test]
fn a_message_names_both_images_and_the_reason() {
    let choose = |image: &str| {
        let stored = Stored { image: Some(image), recorded: Some(image), is_blocked: false };
        images(Some("own:3"), None).choose(&JAVA, stored).to_string()
    };
    assert_eq!(
        choose("own:1"),
        "the recorded default image \"own:1\" is not replaced by the default \"own:3\": 2.0.0 has breaking \
         changes; set the image to upgrade"
    );
    assert_eq!(choose("a:2"), "the recorded default image \"a:2\" is replaced by the default \"own:3\"");
}
