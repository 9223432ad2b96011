//! Agents count against a pod's limit of ephemeral storage.

use otel_webhook_api::{
    defaults::{self, LANGUAGES},
    quantity::Quantity,
    sizes::AgentSizes,
};
use otel_webhook_inject::{InitResources, Note};
use otel_webhook_testkit::{
    objects::{asking, pod},
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

/// What Java's agent takes, and the reserve.
const JAVA: i128 = 24;
const NODEJS: i128 = 132;
const RESERVE: i128 = 10;

fn mebibytes(count: i128) -> String {
    Quantity::mebibytes(count).to_string()
}

fn limited(limit: &str) -> Value {
    json!({"resources": {"limits": {"ephemeral-storage": limit}}})
}

fn java(spec: Value, limit: &str) -> Injected {
    with(json!({"java": spec})).inject(&asking(&["java"], limited(limit)))
}

fn notes(injected: &Injected) -> Vec<String> {
    injected.outcome.findings.iter().flat_map(|finding| &finding.notes).map(ToString::to_string).collect()
}

#[test]
fn d32_a_pod_whose_limit_holds_no_agent_is_left_as_it_is() {
    let injected = java(json!({}), &mebibytes(JAVA + RESERVE - 1));
    assert_eq!(injected.codes(), ["java: EphemeralStorage"]);
    assert!(injected.is_unchanged());
    assert_eq!(
        injected.outcome.warnings(),
        [
            "java: the pod's limit of ephemeral storage is 33Mi (sum of its containers' limits; those with one: app), \
          and the agents need 24Mi, with 10Mi for the pod itself: the kubelet would evict the pod; raise \
          resources.limits[ephemeral-storage] so that the sum is at least 34Mi, or set \
          spec.java.volumeClaimTemplate of the Instrumentation"
        ]
    );
    assert_eq!(java(json!({}), &mebibytes(JAVA + RESERVE)).codes(), ["java/app: Injected"]);
}

#[test]
fn d32_the_limits_of_all_containers_count_together_and_one_limits_the_pod() {
    let two = |app: Value, log: Value| {
        let container = |name: &str, limits: Value| json!({"name": name, "image": "i:1", "resources": {"limits": limits}});
        let spec = json!({"containers": [container("app", app), container("log", log)]});
        with(json!({})).inject(&pod(&[("inject-java", "true")], spec)).codes()
    };
    let storage = |limit: &str| json!({"ephemeral-storage": limit});
    assert_eq!(
        two(json!({}), storage("20Mi")),
        ["java: EphemeralStorage"],
        "the other container is not limited"
    );
    assert_eq!(
        two(storage("20Mi"), storage("20Mi")),
        ["java/app: Injected"],
        "though neither alone holds it"
    );
    assert_eq!(two(json!({"memory": "20Mi"}), json!({})), ["java/app: Injected"]);
}

#[test]
fn d32_languages_go_in_by_the_order_of_the_table_as_long_as_there_is_room() {
    let codes = |limit: i128| {
        let asks = asking(&["java", "nodejs", "python"], limited(&mebibytes(limit)));
        with(json!({})).inject(&asks).codes()
    };
    let all = ["java/app: Injected", "nodejs/app: Injected", "python/app: Injected"];
    assert_eq!(codes(JAVA + NODEJS + 28 + RESERVE), all);
    assert_eq!(
        codes(JAVA + NODEJS + 28 + RESERVE - 1),
        ["java/app: Injected", "nodejs/app: Injected", "python: EphemeralStorage"]
    );
    assert_eq!(
        codes(JAVA + NODEJS + RESERVE - 1),
        ["java/app: Injected", "nodejs: EphemeralStorage", "python/app: Injected"]
    );
    assert_eq!(
        codes(RESERVE),
        ["java: EphemeralStorage", "nodejs: EphemeralStorage", "python: EphemeralStorage"]
    );
}

#[test]
fn d32_extensions_count_and_claims_do_not() {
    let extension = json!({"extensions": [{"image": "e:1", "dir": "/e"}]});
    let limit = mebibytes(JAVA + RESERVE);
    assert_eq!(java(extension.clone(), &limit).codes(), ["java: EphemeralStorage"]);
    assert_eq!(java(extension, &mebibytes(JAVA + 10 + RESERVE)).codes(), ["java/app: Injected"]);
    let claim = json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}});
    let injected = java(claim, "1Mi");
    assert_eq!((injected.codes(), notes(&injected)), (vec!["java/app: Injected".to_owned()], Vec::new()));
}

#[test]
fn d32_the_modules_of_web_servers_count_and_the_sidecar_of_go_does_not() {
    for (language, field) in [("apache-httpd", "spec.apacheHttpd"), ("nginx", "spec.nginx")] {
        let inject = |limit: i128| with(json!({})).inject(&asking(&[language], limited(&mebibytes(limit))));
        let skipped = inject(159);
        assert_eq!(skipped.codes(), [format!("{language}: EphemeralStorage")]);
        // Nginx takes no claim, so none is recommended.
        let claim = format!("{field}.volumeClaimTemplate");
        let warnings = skipped.outcome.warnings();
        assert_eq!(warnings[0].contains(&claim), language == "apache-httpd", "{warnings:?}");
        assert_eq!(inject(160).codes(), [format!("{language}/app: Injected")]);
    }
    for language in ["go", "sdk"] {
        let injected = with(json!({})).inject(&asking(&[language], limited("1Mi")));
        assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
    }
}

#[test]
fn d32_little_room_is_said() {
    let close = java(json!({}), &mebibytes(JAVA + 49));
    assert_eq!(
        notes(&close),
        [
            "the agents take 24Mi of the pod's 73Mi of ephemeral storage; 49Mi is left for logs and files, and the \
          kubelet evicts the pod when it uses more; raise resources.limits[ephemeral-storage]"
        ]
    );
    assert_eq!(notes(&java(json!({}), &mebibytes(JAVA + 50))), Vec::<String>::new());
    assert_eq!(notes(&with(json!({})).inject(&asking(&["java"], json!({})))), Vec::<String>::new());
}

#[test]
fn d32_a_volume_that_is_smaller_than_its_agent_is_said() {
    let unlimited = |spec: Value| with(json!({"java": spec})).inject(&asking(&["java"], json!({})));
    let small = unlimited(json!({"volumeLimitSize": "23Mi"}));
    assert_eq!(small.codes(), ["java/app: Injected"]);
    assert_eq!(
        notes(&small),
        [
            "the agent needs 24Mi, more than the size limit of its volume (23Mi), so the kubelet may evict the \
          pod; raise spec.java.volumeLimitSize, or set spec.java.volumeClaimTemplate"
        ]
    );
    for fine in ["24Mi", "0"] {
        assert_eq!(notes(&unlimited(json!({"volumeLimitSize": fine}))), Vec::<String>::new(), "{fine}");
    }
}

/// The init containers of `--init-resources=exact` would limit the pod themselves.
#[test]
fn d32_a_limit_of_the_init_containers_counts_where_it_is_taken_as_it_is() {
    let limits = json!({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "33Mi"});
    let mut around = with(json!({"java": {"resources": {"limits": limits}}}));
    let unlimited = asking(&["java"], json!({}));
    let skipped = around.inject(&unlimited);
    assert_eq!(skipped.codes(), ["java: EphemeralStorage"]);
    let warnings = skipped.outcome.warnings();
    assert!(warnings[0].contains("those with one: the init container of the agent"), "{warnings:?}");
    let large = around.inject(&asking(&["java"], limited("1Gi")));
    assert_eq!(large.codes(), ["java/app: Injected"], "the larger limit counts");
    around.settings.init_resources = InitResources::Neutral;
    assert_eq!(around.inject(&unlimited).codes(), ["java/app: Injected"], "they do not limit the pod");
}

#[test]
fn d32_an_installation_has_sizes_of_its_own() {
    let mut around = with(json!({}));
    let asks = asking(&["java"], limited(&mebibytes(JAVA + RESERVE)));
    around.settings.sizes = AgentSizes::with([("java".to_owned(), Quantity::mebibytes(JAVA + 1))]);
    assert_eq!(around.inject(&asks).codes(), ["java: EphemeralStorage"]);
    around.settings.sizes = AgentSizes::with([("java".to_owned(), Quantity::mebibytes(201))]);
    let injected = around.inject(&asking(&["java"], json!({})));
    let is_small = |note: &Note| matches!(note, Note::VolumeLimitTooSmall { limit, .. } if limit == "200Mi");
    assert!(injected.outcome.findings[0].notes.iter().any(is_small), "{:?}", injected.outcome.findings);
}

#[test]
fn the_documented_sizes_are_those_that_count() {
    let page = include_str!("../../../../../docs/sizes.md");
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .filter_map(|(languages, rest)| Some((languages, rest.split_once(" | ")?.0)))
        .collect();
    let sizes = AgentSizes::default();
    for language in LANGUAGES.iter().filter(|language| !language.size.is_zero()) {
        let row = rows.iter().find(|(names, _)| names.split(", ").any(|name| name == language.language));
        let (_, size) = row.unwrap_or_else(|| {
            panic!("docs/sizes.md has no row for {} in its table of sizes", language.language)
        });
        assert_eq!(*size, sizes.of(language, 0).to_string(), "docs/sizes.md, row of {}", language.language);
    }
    let extension = rows.iter().find(|(name, _)| *name == "each extension of java").expect("a row");
    let one = Quantity::parse(extension.1).expect("a quantity");
    assert_eq!(sizes.of(&defaults::JAVA, 1), defaults::JAVA.size.plus(one));
}
