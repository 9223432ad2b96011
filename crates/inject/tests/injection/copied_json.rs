//! What is copied from a review into a patch is valid JSON, whatever the reader of the pod skipped.

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{Input, Outcome, Settings, build, decide, language::LanguageSet, pod::Pod};
use otel_webhook_testkit::{
    known::Known,
    objects::{NAMESPACE, instrumentation},
};
use serde_json::json;

/// A string that is JSON by its grammar, but not Unicode.
const SURROGATE: &str = r#""\ud800""#;

/// Lists in lists.
fn nested(levels: usize) -> String {
    ["[".repeat(levels), "]".repeat(levels)].concat()
}

/// What comes of a pod that asks for a language, with these members of its container.
fn inject(language: &str, members: &str) -> Outcome {
    let known = Known::of(&[instrumentation("inst", json!({}))], &DefaultImages::default());
    let text = format!(
        r#"{{"metadata": {{"name": "p", "annotations": {{"instrumentation.opentelemetry.io/inject-{language}": "true"}}}},
            "spec": {{"containers": [{{"name": "app", "image": "a:1", {members}}}]}}}}"#
    );
    let pod = Pod::parse(&text).expect("the reader skips it");
    let settings = Settings { languages: LanguageSet::all(), ..Settings::default() };
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue: &known.catalogue, settings: &settings };
    build(decide(input), &known.owners)
}

/// The parts of a container that are copied, with a value in the place of `@`.
const COPIED: [(&str, &[&str]); 5] = [
    (r#""securityContext": {"seLinuxOptions": {"level": @}}"#, &["java", "python", "apache-httpd", "nginx"]),
    (r#""env": [{"name": "A", "valueFrom": {"x": @}}]"#, &["java", "apache-httpd", "nginx", "sdk"]),
    (r#""env": [{"name": "A", "value": "a", "x": @}]"#, &["apache-httpd", "nginx"]),
    (r#""envFrom": [{"prefix": "a", "x": @}]"#, &["apache-httpd", "nginx"]),
    (r#""volumeMounts": [{"name": "a", "mountPath": "/a", "x": @}]"#, &["apache-httpd", "nginx"]),
];

#[test]
fn a_container_with_a_part_that_cannot_be_copied_is_skipped_with_a_reason() {
    for (part, languages) in COPIED {
        for language in languages {
            for (value, problem) in [
                (SURROGATE.to_owned(), "hex escape"),
                (nested(80), "nested more than 64 levels deep"),
                (nested(10_000), "recursion limit exceeded"),
            ] {
                let outcome = inject(language, &part.replace('@', &value));
                let [finding] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
                let said = finding.to_string();
                assert_eq!(finding.reason.code(), "ContainerUnreadable", "{part}: {said}");
                assert!(
                    said.starts_with(&format!("{language} in app: container \"app\" cannot be read: ")),
                    "{said}"
                );
                assert!(said.contains(problem), "{part}: {said}");
                assert!(!outcome.patch.text().contains("/spec/"), "{}", outcome.patch);
            }
        }
    }
}

#[test]
fn what_can_be_copied_makes_a_patch_that_can_be_read() {
    for (part, languages) in COPIED {
        for language in languages {
            for value in [nested(50), r#""\ud83d\ude00""#.to_owned(), "1e300".to_owned()] {
                let outcome = inject(language, &part.replace('@', &value));
                assert_eq!(outcome.findings[0].reason.code(), "Injected", "{language} {part}");
                assert!(!outcome.patch.operations().0.is_empty());
            }
        }
    }
}

#[test]
fn what_is_not_copied_does_not_matter() {
    for part in [r#""lifecycle": @"#, r#""args": [@]"#, r#""livenessProbe": {"x": @}"#] {
        for value in [SURROGATE.to_owned(), nested(10_000)] {
            for language in ["java", "nginx"] {
                let outcome = inject(language, &part.replace('@', &value));
                assert_eq!(outcome.findings[0].reason.code(), "Injected", "{part}");
                assert!(!outcome.patch.operations().0.is_empty());
            }
        }
    }
}
