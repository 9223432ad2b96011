//! `crd` with versions.

use super::{run, succeed};
use otel_webhook_api::crd;
use serde_json::{Value, json};

fn printed(flags: &[&str]) -> Value {
    let text = succeed(&[&["crd", "-o", "json"], flags].concat(), "").out;
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn one_version_needs_no_conversion() {
    assert_eq!(printed(&[]), crd::crd());
    let next = printed(&["--served", "v1beta1"]);
    assert_eq!(next["spec"]["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&next["spec"]["versions"][0]["name"], next["spec"].get("conversion")),
        (&json!("v1beta1"), None)
    );
}

#[test]
fn the_webhook_converts_between_versions() {
    let both = ["--served", "v1alpha1,v1beta1", "--storage", "v1beta1"];
    let crd = printed(&[&both[..], &["--namespace", "home", "--inject-ca-from", "home/serving"]].concat());
    let stored = |index: usize| crd["spec"]["versions"][index]["storage"].clone();
    assert_eq!([stored(0), stored(1)], [false, true]);
    let expected = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service":
            {"namespace": "home", "name": "otel-webhook-conversion", "port": 443, "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    }});
    assert_eq!(crd["spec"]["conversion"], expected);
    assert_eq!(crd["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "home/serving");
    let outside = printed(&[&both[..], &["--conversion-url", "https://192.0.2.7:9443/"]].concat());
    let client = &outside["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(*client, json!({"url": "https://192.0.2.7:9443/convert"}));
}

#[test]
fn what_is_not_served_cannot_be_stored() {
    for (flags, words) in [
        (
            &["--served", "v1alpha1", "--storage", "v1beta1"][..],
            "--storage is v1beta1, which is not served; valid: v1alpha1",
        ),
        (&["--served", "v2"], "valid: v1alpha1, v1beta1"),
        (&["--conversion-url", "http://192.0.2.7"], "expected a URL with https"),
    ] {
        let run = run(&[&["crd"], flags].concat(), "");
        assert_ne!(run.code, 0);
        assert!(run.err.contains(words), "{}", run.err);
    }
}
