//! Differences in which Instrumentations are refused.

use otel_webhook_api::validation::{Verdict, validate};
use otel_webhook_testkit::objects::instrumentation;
use serde_json::{Value, json};

fn verdict(spec: Value) -> Verdict {
    validate(&instrumentation("inst", spec), None)
}

#[test]
fn d22_what_works_is_accepted() {
    for sampler in [
        json!({"type": "parentbased_jaeger_remote", "argument": "endpoint=http://jaeger:14250"}),
        json!({"type": "jaeger_remote", "argument": "endpoint=http://jaeger:14250?a=b"}),
    ] {
        let errors = verdict(json!({"sampler": sampler})).errors;
        assert!(errors.is_empty(), "{sampler}: {errors:?}");
    }
    let without =
        verdict(json!({"sampler": {"type": "jaeger_remote", "argument": "pollingIntervalMs=5000"}}));
    assert!(without.errors.is_empty(), "{:?}", without.errors);
    assert!(
        without.warnings.iter().any(|warning| warning.message.contains("endpoint")),
        "{:?}",
        without.warnings
    );
}

#[test]
fn d22_what_no_pod_could_run_with_is_refused() {
    let ratio = |argument| json!({"sampler": {"type": "traceidratio", "argument": argument}});
    for (spec, field) in [
        (ratio("NaN"), "spec.sampler.argument"),
        (ratio("0x1p-2"), "spec.sampler.argument"),
        (ratio("0_5"), "spec.sampler.argument"),
        (json!({"imagePullPolicy": "Sometimes"}), "spec.imagePullPolicy"),
        (json!({"java": {"volumeLimitSize": "-1Gi"}}), "spec.java.volumeLimitSize"),
        (
            json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            "spec.env[0]",
        ),
        (json!({"env": [{"value": "x"}]}), "spec.env[0].name"),
        (json!({"java": {"extensions": [{"dir": "/e"}]}}), "spec.java.extensions[0].image"),
        (json!({"java": {"extensions": [{"image": "e"}]}}), "spec.java.extensions[0].dir"),
        (
            json!({"java": {"resources": {"limits": {"cpu": "1m"}, "requests": {"cpu": "5"}}}}),
            "spec.java.resources",
        ),
    ] {
        let errors = verdict(spec.clone()).errors;
        assert!(
            errors.iter().any(|error| error.field.starts_with(field)),
            "{spec}: {field} is not in {errors:?}"
        );
    }
}

#[test]
fn d22_an_update_is_refused_only_for_what_was_not_wrong_before() {
    let bad = instrumentation("inst", json!({"imagePullPolicy": "Sometimes"}));
    let kept = validate(&bad, Some(&bad));
    assert!(kept.errors.is_empty() && !kept.warnings.is_empty(), "{kept:?}");
    let worse =
        instrumentation("inst", json!({"imagePullPolicy": "Sometimes", "sampler": {"type": "never"}}));
    let fields: Vec<String> =
        validate(&worse, Some(&bad)).errors.into_iter().map(|error| error.field).collect();
    assert_eq!(fields, ["spec.sampler.type"]);
    let mut leaving = worse.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(validate(&leaving, Some(&bad)).errors.is_empty(), "what is being deleted is let go");
}
