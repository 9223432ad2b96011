//! What is answered when Instrumentations that opt pods in are applied.

use otel_webhook_inject::{Settings, reason::ObjectName};
use serde_json::{Value, json};

use super::{VALIDATE, answer, create, object, review, router, router_with};

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
async fn what_an_instrumentation_opts_in_is_told_when_it_is_applied() {
    let opting = object(
        "order",
        json!({"inject": ["java"], "selector": {"matchLabels": {"app": "a"}}, "sampler": {"type": "always_on"}}),
    );
    let verdict = answer(&router(&[]), VALIDATE, &create(&opting)).await;
    let [warning] = &verdict["warnings"].as_array().expect("warnings")[..] else { panic!("{verdict}") };
    let start =
        "spec.inject: injects java into every new pod that spec.selector matches in namespace \"shop\"";
    assert!(warning.as_str().is_some_and(|warning| warning.starts_with(start)), "{warning}");
    let verdict = answer(&router(&[]), VALIDATE, &review("UPDATE", &opting, &opting)).await;
    assert_eq!(verdict["warnings"], Value::Null, "{verdict}");
}
