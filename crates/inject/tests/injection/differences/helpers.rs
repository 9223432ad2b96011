//! Known proxies and helpers are not what is meant where no container is named.

use otel_webhook_inject::{Finding, Note, helpers::Helpers, shown::Names};
use otel_webhook_testkit::{
    objects::pod,
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

const ASKS: [(&str, &str); 1] = [("inject-java", "true")];

fn containers(names: &[&str]) -> Value {
    let containers = names.iter().map(|name| json!({"name": name, "image": "example.com/image:1"}));
    json!({"containers": containers.collect::<Vec<_>>()})
}

fn inject(names: &[&str]) -> Injected {
    with(json!({})).inject(&pod(&ASKS, containers(names)))
}

fn notes(injected: &Injected) -> Vec<&Note> {
    injected.outcome.findings.iter().flat_map(|finding: &Finding| &finding.notes).collect()
}

#[test]
fn d30_known_proxies_and_helpers_are_skipped_and_named() {
    let injected = inject(&["istio-proxy", "vault-agent", "app", "worker"]);
    assert_eq!(injected.codes(), ["java/app: Injected"]);
    let expected = Note::HelpersSkipped {
        container: "app".to_owned(),
        skipped: Names::of(["istio-proxy", "vault-agent"]),
    };
    assert_eq!(notes(&injected), [&expected]);
    assert_eq!(
        expected.to_string(),
        "no container is named, so \"app\" was selected; known proxies and helpers are skipped (istio-proxy, vault-agent)"
    );
    let first = inject(&["app", "istio-proxy"]);
    assert_eq!(first.codes(), ["java/app: Injected"]);
    assert_eq!(notes(&first), Vec::<&Note>::new(), "nothing is skipped before the first");
}

#[test]
fn d30_where_there_are_only_helpers_the_first_is_taken_with_a_warning() {
    let injected = inject(&["envoy", "fluent-bit"]);
    assert_eq!(injected.codes(), ["java/envoy: Injected"]);
    let warnings = injected.outcome.warnings();
    let [text] = &warnings[..] else { panic!("one warning: {warnings:?}") };
    assert!(
        text.contains(
            "only known proxies and helpers (envoy, fluent-bit); \"envoy\", the first, was selected"
        ),
        "{text}"
    );
    assert!(text.contains("instrumentation.opentelemetry.io/container-names"), "{text}");
}

#[test]
fn d30_a_name_counts_however_it_is_given() {
    let both = containers(&["istio-proxy", "app"]);
    let listed = [ASKS[0], ("java-container-names", "istio-proxy")];
    let injected = with(json!({})).inject(&pod(&listed, both.clone()));
    assert_eq!(injected.codes(), ["java/istio-proxy: Injected"]);
    let mut annotated = pod(&ASKS, both);
    annotated["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = json!("istio-proxy");
    let injected = with(json!({})).inject(&annotated);
    assert_eq!(injected.codes(), ["java/istio-proxy: Injected"]);
    assert_eq!(notes(&injected), Vec::<&Note>::new());
}

#[test]
fn d30_an_installation_adds_names_of_its_own() {
    let mut around = with(json!({}));
    let asks = pod(&ASKS, containers(&["mesh-1", "app"]));
    assert_eq!(around.inject(&asks).codes(), ["java/mesh-1: Injected"]);
    around.settings.helpers = Helpers::with(["mesh-*".to_owned()]);
    assert_eq!(around.inject(&asks).codes(), ["java/app: Injected"]);
}

/// SDK-only injection leaves no container that marks the pod; the next review finds the same container.
#[test]
fn d30_a_proxy_that_another_webhook_adds_first_changes_nothing() {
    for language in ["java", "sdk"] {
        let around = with(json!({}));
        let ask = format!("inject-{language}");
        let asks = [(ask.as_str(), "true")];
        for (before, added) in [("app", "istio-proxy"), ("envoy", "linkerd-proxy"), ("envoy", "app")] {
            let mut after = around.inject(&pod(&asks, containers(&[before]))).pod;
            let proxy = json!({"name": added, "image": "proxy:1"});
            after["spec"]["containers"].as_array_mut().expect("containers").insert(0, proxy);
            let again = around.inject(&after);
            assert!(again.is_unchanged(), "{language}, {added} before {before}: {:?}", again.outcome.patch);
        }
    }
}
