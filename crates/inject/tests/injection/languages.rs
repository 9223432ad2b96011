//! What holds for the table of languages, and for everything that names all of them.

use std::collections::BTreeSet;

use otel_webhook_api::{
    defaults::{self, LANGUAGES as DEFAULTS},
    quantity::Quantity,
    sizes::AgentSizes,
    validation::validate,
};
use otel_webhook_inject::language::{LANGUAGES, LanguageSet};
use otel_webhook_testkit::{
    objects::{asking, instrumentation},
    surroundings::with,
};
use serde_json::{Value, json};

#[test]
fn the_default_languages_are_those_of_the_operator_and_agents_of_instrumentations() {
    assert_eq!(LanguageSet::default().names(), "java,nodejs,python,dotnet,apache-httpd,sdk,agent");
}

#[test]
fn the_stamp_stays_out_where_annotations_have_no_room_left() {
    let mut around = with(json!({}));
    around.settings.stamp = true;
    around.settings.safe_to_evict = true;
    for (length, has_stamp) in [(200_000, true), (261_900, false)] {
        let mut pod = asking(&["java"], json!({}));
        pod["metadata"]["annotations"]["own"] = "a".repeat(length).into();
        let injected = around.inject(&pod);
        assert_eq!(injected.codes(), ["java/app: Injected"]);
        let annotations = injected.pod["metadata"]["annotations"].as_object().expect("some");
        assert_eq!(annotations.contains_key("otel-webhook/status"), has_stamp);
        let size: usize =
            annotations.iter().map(|(key, value)| key.len() + value.as_str().expect("text").len()).sum();
        assert!(size <= 256 * 1024, "{size}");
        assert_eq!(injected.pod["metadata"]["labels"]["otel-webhook/injected"], "true");
    }
}

#[test]
fn validation_warns_of_every_variable_that_a_language_extends() {
    for variable in LANGUAGES.iter().flat_map(|language| language.extended) {
        let spec = json!({"env": [{"name": variable, "value": "x"}]});
        let verdict = validate(&instrumentation("inst", spec), None);
        assert!(
            verdict.warnings.iter().any(|warning| warning.kind == "extended-variable"),
            "{variable} is missing in EXTENDED of crates/api/src/validation/variables.rs"
        );
    }
}

#[test]
fn the_schema_of_the_chart_has_every_language() {
    let schema = include_str!("../../../../charts/otel-webhook/values.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let injection = &schema["properties"]["injection"]["properties"];
    let keys = |value: &str| -> BTreeSet<String> {
        injection[value]["properties"].as_object().expect("an object").keys().cloned().collect()
    };
    let names = |list: Vec<&str>| -> BTreeSet<String> { list.into_iter().map(str::to_owned).collect() };
    let enabled: BTreeSet<String> =
        serde_json::from_value(injection["languages"]["items"]["enum"].clone()).expect("a list of names");
    let all = LANGUAGES.iter().map(|language| language.name).chain(["all"]).collect();
    let with_image = defaults::LANGUAGES.iter().map(|language| language.language).collect();
    let copied = defaults::LANGUAGES.iter().filter(|language| !language.size.is_zero());
    let with_size = copied.map(|language| language.language).chain(["extension"]).collect();
    for (value, found, expected) in [
        ("languages", enabled, names(all)),
        ("images", keys("images"), names(with_image)),
        ("agentSizes", keys("agentSizes"), names(with_size)),
    ] {
        assert_eq!(found, expected, "injection.{value} in charts/otel-webhook/values.schema.json");
    }
}

#[test]
fn the_documents_name_the_annotations_of_every_language() {
    let page = include_str!("../../../../docs/guides/opt-in.md");
    for language in LANGUAGES {
        for annotation in [language.inject, language.containers].iter().chain(language.annotations) {
            assert!(
                page.contains(&format!("`{annotation}`")),
                "docs/guides/opt-in.md does not have {annotation}"
            );
        }
    }
}

#[test]
fn the_documented_sizes_are_those_that_count() {
    let page = include_str!("../../../../docs/operations/sizes.md");
    let (_, page) = page.split_once("\n## The sizes\n").expect("the sizes");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter_map(|(languages, rest)| Some((languages, rest.split_once(" | ")?.0)))
        .collect();
    let sizes = AgentSizes::default();
    for language in DEFAULTS.iter().filter(|language| !language.size.is_zero()) {
        let row = rows.iter().find(|(names, _)| names.split(", ").any(|name| name == language.language));
        let (_, size) = row.unwrap_or_else(|| {
            panic!("docs/operations/sizes.md has no row for {} in its table of sizes", language.language)
        });
        assert_eq!(
            *size,
            sizes.of(language, 0).to_string(),
            "docs/operations/sizes.md, row of {}",
            language.language
        );
    }
    let extension = rows.iter().find(|(name, _)| *name == "each extension of java").expect("a row");
    let one = Quantity::parse(extension.1).expect("a quantity");
    assert_eq!(sizes.of(&defaults::JAVA, 1), defaults::JAVA.size.plus(one));
}
