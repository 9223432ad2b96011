//! `--cross-namespace` on files.

use super::{INSTRUMENTATION, pod, run};

/// The Instrumentation of another namespace, and a Pod that names one there.
fn documents(allowed: &str, named: &str) -> String {
    let metadata = format!(
        "name: secret\n  namespace: infra\n  annotations: {{otel-webhook/allowed-namespaces: \"{allowed}\"}}"
    );
    let object = INSTRUMENTATION.replace("name: inst", &metadata);
    let pod = pod("name: p").replace("\"true\"", &format!("infra/{named}"));
    format!("{object}---\n{pod}")
}

/// What each subcommand says, and the flags that it is given, hold for all.
#[test]
fn every_subcommand_decides_by_the_flag_and_shows_no_name() {
    for command in ["explain", "inject", "validate"] {
        let said = |mode: &str, allowed: &str, named: &str| {
            let arguments = [command, "-f", "-", "-n", "shop", "--cross-namespace", mode];
            let run = run(&arguments, &documents(allowed, named));
            assert_eq!(run.code, 0, "{}{}", run.out, run.err);
            // What is printed of the Instrumentation itself is its author's.
            let lines = run.out.lines().chain(run.err.lines());
            let lines = lines.filter(|line| line.contains("java") && !line.contains("inject-java: infra/"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let known = said("allow", "", "other");
        assert!(known.contains("not found; its namespace has: secret"), "{command}: {known}");
        let hidden = said("granted", "cart", "other");
        let sentence = "\"infra/other\" not found, or not granted to namespace \"shop\"";
        assert!(hidden.contains(sentence) && !hidden.contains("secret"), "{command}: {hidden}");
        assert_eq!(said("granted", "cart", "secret"), hidden.replace("infra/other", "infra/secret"));
        let denied = said("deny", "shop", "other");
        assert!(denied.contains("--cross-namespace=deny"), "{command}: {denied}");
        assert!(!denied.contains("secret"), "{command}: {denied}");
        for (mode, is_used) in [("allow", true), ("granted", true), ("deny", false)] {
            let named = said(mode, "cart, shop", "secret");
            assert_eq!(!named.contains("infra/secret\" "), is_used, "{command} {mode}: {named}");
        }
    }
}

#[test]
fn another_mode_is_named_with_those_there_are() {
    let refused = run(&["explain", "-f", "-", "--cross-namespace", "some"], "");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("[possible values: allow, granted, deny]"), "{}", refused.err);
}

#[test]
fn validate_warns_of_an_entry_that_allows_nobody() {
    let run = run(&["validate", "-f", "-", "--strict"], &documents("shop, team-*", "secret"));
    assert_eq!(run.code, 1);
    let field =
        "  warning  metadata.annotations[otel-webhook/allowed-namespaces]: \"team-*\" is not the name of";
    assert!(run.out.contains(field), "{}", run.out);
}
