//! Tests of the list of variables: extension, repetition, optional references.

use super::*;

fn env(json: &str) -> Env<'_> {
    Env::new(serde_json::from_str(json).expect("variables"))
}

fn shown(env: &Env<'_>) -> Vec<String> {
    let show = |entry: &Entry<'_>| match entry.from {
        Some(_) => format!("{} from", entry.name),
        None => format!("{}={}", entry.name, entry.value),
    };
    env.entries().iter().map(show).collect()
}

#[test]
fn a_reference_is_kept_under_another_name() {
    let mut env = env(
        r#"[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"m","key":"k"}}},{"name":"B","value":"$(A)"}]"#,
    );
    env.extend("A", |old| format!("{} more", old.unwrap_or_default()));
    assert_eq!(shown(&env), ["OTEL_INJECT_ORIGINAL_A from", "A=$(OTEL_INJECT_ORIGINAL_A) more", "B=$(A)"]);
}

#[test]
fn the_last_of_a_repeated_variable_is_extended() {
    let mut env = env(r#"[{"name":"A","value":"1"},{"name":"A","value":"2"}]"#);
    env.extend("A", |old| format!("{}+", old.unwrap_or_default()));
    assert_eq!(shown(&env), ["A=1", "A=2+"]);
}

#[test]
fn an_optional_reference_is_not_extended() {
    for kind in ["secretKeyRef", "configMapKeyRef", "fileKeyRef"] {
        let json = format!(r#"[{{"name":"A","valueFrom":{{"{kind}":{{"key":"k","optional":true}}}}}}]"#);
        let refused = env(&json).check_extensible("A", &[]).expect_err("optional");
        assert_eq!(refused.code(), "OptionalReference");
    }
}
