//! The endpoints for Instrumentations, by HTTP.

use hyper::StatusCode;
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{Settings, reason::ObjectName};
use otel_webhook_server::admission::Admission;
use otel_webhook_testkit::{files::captured, objects::instrumentation as object};
use serde_json::{Value, json};

use crate::routes::{self, Webhook, patched};

const MUTATE: &str = "/mutate-opentelemetry-io-v1alpha1-instrumentation";
const VALIDATE: &str = "/validate-opentelemetry-io-v1alpha1-instrumentation";
const RESOURCE: &str = "instrumentations.opentelemetry.io";

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    routes::review(operation, RESOURCE, object, old)
}

fn create(object: &Value) -> Value {
    routes::create(RESOURCE, object)
}

/// The routes, with these Instrumentations in the store.
fn router(stored: &[Value]) -> Webhook {
    router_with(stored, Settings::default())
}

fn router_with(stored: &[Value], settings: Settings) -> Webhook {
    let images =
        DefaultImages { registry: Some("mirror.example.com".to_owned()), ..DefaultImages::default() };
    Webhook::adjusted(stored, settings, |admission: Admission| admission.with_images(images))
}

async fn answer(webhook: &Webhook, path: &str, review: &Value) -> Value {
    webhook.response(path, review).await
}

#[tokio::test]
async fn captured_reviews_are_completed_and_allowed() {
    let router = router(&[]);
    for name in ["instrumentation-create", "instrumentation-update"] {
        let review: Value = serde_json::from_str(&captured(name)).expect("JSON");
        let answered = answer(&router, MUTATE, &review).await;
        assert_eq!((&answered["allowed"], &answered["patchType"]), (&json!(true), &json!("JSONPatch")));
        let after = patched(&review["request"]["object"], &answered);
        assert_eq!(
            after["spec"]["nodejs"]["image"],
            "mirror.example.com/open-telemetry/opentelemetry-operator/autoinstrumentation-nodejs:0.78.0"
        );
        assert_eq!(after["spec"]["java"]["image"], "autoinstrumentation-java:2.4.0-release");

        let mut second = review.clone();
        second["request"]["object"] = after;
        let again = answer(&router, MUTATE, &second).await;
        assert!(again.get("patch").is_none(), "{again}");
        let verdict = answer(&router, VALIDATE, &second).await;
        assert_eq!(verdict["allowed"], true, "{verdict}");
    }
}

#[tokio::test]
async fn a_refusal_is_worded_as_the_api_server_does() {
    let router = router(&[]);
    let bad =
        object("order", json!({"sampler": {"type": "always-on"}, "env": [{"value": "x"}], "priority": "1"}));
    let verdict = answer(&router, VALIDATE, &create(&bad)).await;
    assert_eq!(verdict["allowed"], false);
    let status = &verdict["status"];
    assert_eq!(
        (&status["code"], &status["reason"], &status["status"]),
        (&json!(422), &json!("Invalid"), &json!("Failure"))
    );
    let sampler = "\"always-on\" is not a sampler (did you mean \"always_on\"?); valid: always_on, always_off, \
                   traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio, \
                   jaeger_remote, parentbased_jaeger_remote, xray";
    let priority = "\"1\" is text; valid: a whole number";
    assert_eq!(
        status["message"],
        format!(
            "Instrumentation.opentelemetry.io \"order\" is invalid: [spec.sampler.type: {sampler}, \
             spec.env[0].name: is missing, spec.priority: {priority}]"
        )
    );
    assert_eq!(
        status["details"],
        json!({
            "group": "opentelemetry.io", "kind": "Instrumentation", "name": "order",
            "causes": [
                {"reason": "FieldValueNotSupported", "message": sampler, "field": "spec.sampler.type"},
                {"reason": "FieldValueRequired", "message": "is missing", "field": "spec.env[0].name"},
                {"reason": "FieldValueTypeInvalid", "message": priority, "field": "spec.priority"},
            ],
        })
    );
    let one = object("order", json!({"propagators": ["x"]}));
    let message = answer(&router, VALIDATE, &create(&one)).await["status"]["message"].take();
    assert!(message.as_str().expect("text").contains("is invalid: spec.propagators[0]: \"x\""), "{message}");
}

#[tokio::test]
async fn defaulting_refuses_nothing_but_tells_every_error() {
    let bad = object("order", json!({"sampler": {"type": "sometimes"}, "env": [{"value": "x"}]}));
    let answered = answer(&router(&[]), MUTATE, &create(&bad)).await;
    assert_eq!(answered["allowed"], true);
    let warnings = answered["warnings"].as_array().expect("warnings");
    assert!(
        warnings[0].as_str().expect("text").starts_with("spec.sampler.type: \"sometimes\" is not a sampler")
    );
    assert_eq!(warnings[1], "spec.env[0].name: is missing");
    assert!(warnings.iter().all(|warning| warning.as_str().expect("text").chars().count() <= 256));
}

#[tokio::test]
async fn what_was_bad_before_may_be_annotated_and_what_goes_may_go() {
    let router = router(&[]);
    let old = object("order", json!({"sampler": {"type": "sometimes"}}));
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({"a": "b"});
    let verdict = answer(&router, VALIDATE, &review("UPDATE", &new, &old)).await;
    assert_eq!(verdict["allowed"], true);
    assert!(verdict["warnings"][0].as_str().expect("text").contains("sometimes"), "{verdict}");

    new["spec"]["priority"] = json!("high");
    let verdict = answer(&router, VALIDATE, &review("UPDATE", &new, &old)).await;
    assert_eq!(verdict["status"]["details"]["causes"].as_array().map(Vec::len), Some(1), "{verdict}");

    new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let verdict = answer(&router, VALIDATE, &review("UPDATE", &new, &old)).await;
    assert_eq!(verdict["allowed"], true);

    let verdict = answer(&router, MUTATE, &review("DELETE", &Value::Null, &old)).await;
    assert_eq!(verdict, json!({"uid": "u-1", "allowed": true}));
}

#[tokio::test]
async fn the_deletion_of_what_pods_use_is_allowed_with_a_warning() {
    let router = router(&[]);
    let warning = |who: &str| {
        json!([format!(
            "{who} agents of Instrumentation shop/order: without it, new pods start without agents, and a restart \
             removes them; otel-webhook status lists the pods"
        )])
    };
    let counts = |counts: Value| json!({"pods": counts});
    for (status, expected) in [
        (Value::Null, warning("running pods may have")),
        (counts(json!({"matched": 3, "injected": 1, "missed": 2})), warning("1 running pod has")),
        (counts(json!({"injected": 4, "stale": 2, "unconfirmed": 1})), warning("7 running pods have")),
        (counts(json!({"matched": 2, "missed": 2})), Value::Null),
        (counts(json!({})), Value::Null),
    ] {
        let mut old = object("order", json!({}));
        old["status"] = status.clone();
        let verdict = answer(&router, VALIDATE, &review("DELETE", &Value::Null, &old)).await;
        assert_eq!((&verdict["allowed"], &verdict["warnings"]), (&json!(true), &expected), "{status}");
    }
    let mut going = object("order", json!({}));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let verdict = answer(&router, VALIDATE, &review("DELETE", &Value::Null, &going)).await;
    assert_eq!(verdict, json!({"uid": "u-1", "allowed": true}), "a finalizer is removed");
}

#[tokio::test]
async fn a_tie_with_another_of_the_namespace_is_told() {
    let cart = json!({"selector": {"matchLabels": {"app": "cart"}}});
    let router = router(&[object("open", json!({})), object("cart", cart.clone())]);
    for (name, spec, rival) in [
        ("order", json!({}), Some("open")),
        ("open", json!({}), None),
        ("order", json!({"priority": 1}), None),
        ("order", cart, Some("cart")),
        ("order", json!({"selector": {"matchLabels": {"app": "order"}}}), None),
        ("order", json!({"selector": {"matchLabels": {"tier": "a"}}}), Some("cart")),
    ] {
        let verdict = answer(&router, VALIDATE, &create(&object(name, spec.clone()))).await;
        let warnings = verdict["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ties: Vec<_> = warnings.filter(|text| text.contains("ties with")).collect();
        let expected = rival.map(|rival| format!("spec.selector: ties with \"{rival}\""));
        assert_eq!(ties.len(), usize::from(expected.is_some()), "{spec}: {ties:?}");
        assert!(expected.is_none_or(|expected| ties[0].starts_with(&expected)), "{ties:?}");
    }
}

const REPOSITORY: &str = "open-telemetry/opentelemetry-operator/autoinstrumentation-java";

/// One that was stored with a default image of Java.
fn with_recorded(tag: &str) -> Value {
    let image = format!("ghcr.io/{REPOSITORY}:{tag}");
    let mut object = object("order", json!({"sampler": {"type": "always_on"}, "java": {"image": image}}));
    object["metadata"]["annotations"] =
        json!({"instrumentation.opentelemetry.io/default-auto-instrumentation-java-image": image});
    object
}

#[tokio::test]
async fn an_image_that_is_replaced_is_told_to_whoever_applies() {
    let router = router(&[]);
    let old = with_recorded("2.29.0");
    let answered = answer(&router, MUTATE, &create(&old)).await;
    let after = patched(&old, &answered);
    let image = format!("mirror.example.com/{REPOSITORY}:2.30.0");
    assert_eq!(after["spec"]["java"]["image"], image);
    let warning = format!(
        "spec.java.image: the recorded default image \"ghcr.io/{REPOSITORY}:2.29.0\" is replaced by the default \"{image}\""
    );
    let cut: String = warning.chars().take(240).collect();
    let warnings = answered["warnings"].as_array().expect("warnings");
    assert!(warnings.len() == 1 && warnings[0].as_str().expect("text").starts_with(&cut), "{warnings:?}");
    for path in [MUTATE, VALIDATE] {
        let again = answer(&router, path, &create(&after)).await;
        assert!(again.get("warnings").is_none() && again.get("patch").is_none(), "{again}");
    }
}

#[tokio::test]
async fn an_image_that_is_not_upgraded_is_warned_of_as_by_the_operator() {
    let router = router(&[]);
    let old = with_recorded("1.33.6");
    let after = patched(&old, &answer(&router, MUTATE, &create(&old)).await);
    assert_eq!(after["spec"]["java"]["image"], old["spec"]["java"]["image"]);
    let verdict = answer(&router, VALIDATE, &create(&after)).await;
    let warning = format!(
        "spec.java.image: \"ghcr.io/{REPOSITORY}:1.33.6\" is at a version that cannot be automatically upgraded: 2.0.0 has breaking \
         changes of HTTP semantic conventions; set the image to upgrade"
    );
    assert_eq!((&verdict["allowed"], &verdict["warnings"]), (&json!(true), &json!([warning])));
}

/// The API server keeps the status that is stored, so what a client sends of it does not count.
#[tokio::test]
async fn the_stored_status_blocks_upgrades_and_a_sent_one_does_not() {
    let router = router(&[]);
    let plain = with_recorded("2.29.0");
    let mut blocked = plain.clone();
    blocked["status"] = json!({"upgradeBlockedVersions": {"java": "Automated upgrade blocked"}});
    let image = |object: &Value, answered: &Value| patched(object, answered)["spec"]["java"]["image"].clone();
    let kept = answer(&router, MUTATE, &review("UPDATE", &plain, &blocked)).await;
    assert_eq!(image(&plain, &kept), plain["spec"]["java"]["image"]);
    let verdict = answer(&router, VALIDATE, &review("UPDATE", &plain, &blocked)).await;
    let warning = verdict["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("status.upgradeBlockedVersions names java"), "{warning}");
    for review in [create(&blocked), review("UPDATE", &blocked, &plain)] {
        let replaced = answer(&router, MUTATE, &review).await;
        assert_eq!(image(&blocked, &replaced), format!("mirror.example.com/{REPOSITORY}:2.30.0"));
    }
}

#[tokio::test]
async fn a_list_of_allowed_namespaces_that_allows_nobody_is_taken_with_a_warning() {
    let mut allowing = object("open", json!({"sampler": {"type": "always_on"}}));
    allowing["metadata"]["annotations"] = json!({"otel-webhook/allowed-namespaces": "cart, team-*"});
    let verdict = answer(&router(&[]), VALIDATE, &create(&allowing)).await;
    assert_eq!(verdict["allowed"], true);
    let [warning] = &verdict["warnings"].as_array().expect("warnings")[..] else { panic!("{verdict}") };
    let start =
        "metadata.annotations[otel-webhook/allowed-namespaces]: \"team-*\" is not the name of a namespace";
    assert!(warning.as_str().is_some_and(|warning| warning.starts_with(start)), "{warning}");
}

#[tokio::test]
async fn what_cannot_be_judged_is_not_let_in() {
    let router = router(&[]);
    let good = create(&object("order", json!({})));
    let with = |pointer: &str, value: Value| {
        let mut review = good.clone();
        *review.pointer_mut(pointer).expect("a field") = value;
        review.to_string()
    };
    for (body, reason) in [
        ("{".to_owned(), "the body is not an AdmissionReview"),
        (
            with("/apiVersion", json!("admission.k8s.io/v1beta1")),
            "\"admission.k8s.io/v1beta1\" is not supported",
        ),
        (with("/request/uid", json!("")), "request.uid: is missing"),
        (with("/request/object", json!(null)), "request.object: is missing; CREATE requires it"),
        (
            with("/request/resource", json!({"group": "", "resource": "pods"})),
            "request.resource: \"pods.\" is not supported by this endpoint; valid: instrumentations.opentelemetry.io",
        ),
    ] {
        for path in [MUTATE, VALIDATE] {
            let (status, text) = router.post(path, body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            let refusal: Value = serde_json::from_str(&text).expect("a Status");
            assert!(refusal["message"].as_str().expect("text").contains(reason), "{text}");
        }
    }
}

#[tokio::test]
async fn namespaces_are_selected_only_in_the_namespace_of_the_default() {
    let spec = json!({"inject": ["java"], "selector": {}, "namespaceSelector": {}, "sampler": {"type": "always_on"}});
    let selecting = object("order", spec);
    let expected = |place: &str| {
        format!(
            "spec.namespaceSelector: selects pods of other namespaces, which is allowed only in the namespace of \
             --default-instrumentation ({place}); remove it to inject into pods of namespace \"shop\""
        )
    };
    let mut changed = selecting.clone();
    changed["spec"]["priority"] = json!(1);
    for (default, refused) in [
        (Some("platform"), Some(expected("namespace \"platform\""))),
        (None, Some(expected("this installation has none"))),
        (Some("shop"), None),
    ] {
        let default =
            default.map(|namespace| ObjectName { namespace: namespace.into(), name: "default".into() });
        let router = router_with(&[], Settings { default_instrumentation: default, ..Settings::default() });
        let verdict = answer(&router, VALIDATE, &create(&selecting)).await;
        assert_eq!(verdict["allowed"], refused.is_none(), "{verdict}");
        let message = verdict["status"]["message"].as_str().unwrap_or_default();
        assert!(refused.as_deref().is_none_or(|sentence| message.contains(sentence)), "{message}");
        // It can still be changed, and be corrected.
        let verdict = answer(&router, VALIDATE, &review("UPDATE", &changed, &selecting)).await;
        assert_eq!(verdict["allowed"], true, "{verdict}");
        let warnings = verdict["warnings"].to_string();
        assert_eq!(warnings.contains("allowed only in the namespace of"), refused.is_some(), "{warnings}");
    }
}

#[tokio::test]
async fn one_that_is_too_large_is_allowed_with_a_warning() {
    let router = router(&[]);
    let sized = |size: usize| object("order", json!({"env": [{"name": "A", "value": "a".repeat(size)}]}));
    let answered = answer(&router, VALIDATE, &create(&sized(1_300_000))).await;
    assert_eq!(answered["allowed"], true);
    let text = "spec: its JSON has 1.3Mi, and the maximum is 128Ki (--max-instrumentation-size); the webhook does not use \
                this Instrumentation";
    let warnings = answered["warnings"].as_array().expect("a list");
    assert!(
        warnings.iter().any(|warning| warning.as_str().is_some_and(|said| said.contains(text))),
        "{warnings:?}"
    );
    let fits = answer(&router, VALIDATE, &create(&sized(100_000))).await;
    assert!(!fits["warnings"].to_string().contains("its JSON has"), "{fits}");
}
