use super::succeed;
use otel_webhook_api::defaults::LANGUAGES;
use serde_json::Value;

#[test]
fn version_names_what_the_program_was_built_from_and_for() {
    let about: Value =
        serde_json::from_str(&succeed(&["version", "-o", "json"], "").out).expect("one object");
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    // As `make release` does, and nothing else.
    assert_eq!(about["commit"], option_env!("OTEL_WEBHOOK_COMMIT").unwrap_or("unknown"));
    let target = about["build"]["target"].as_str().expect("a target");
    assert!(target.starts_with(std::env::consts::ARCH), "{target}");
    assert_eq!(about["build"]["profile"], if cfg!(debug_assertions) { "debug" } else { "release" });
    assert_eq!(about["build"]["features"], serde_json::json!([]));
    let images = about["agentImages"].as_object().expect("an object");
    assert_eq!(images.len(), LANGUAGES.len());
    for language in LANGUAGES {
        assert_eq!(images[language.language], language.image);
    }
}

#[test]
fn version_as_text_has_the_same() {
    let text = succeed(&["version"], "").out;
    let java = &LANGUAGES[0];
    let lines = [
        format!("otel-webhook {}", env!("CARGO_PKG_VERSION")),
        format!("  {}: {}", java.language, java.image),
    ];
    for line in lines {
        assert!(text.lines().any(|own| own == line), "{line:?} is not in:\n{text}");
    }
}

#[test]
fn man_pages_are_written_for_each_subcommand() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    succeed(&["man-pages", out.to_str().expect("UTF-8")], "");
    let page = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    assert!(page("otel-webhook.1").contains("otel\\-webhook\\-serve(1)"), "{}", page("otel-webhook.1"));
    assert!(page("otel-webhook-serve.1").contains("\\-\\-default\\-image"));
}
