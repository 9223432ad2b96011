//! Warnings about deletions and changes of Instrumentations that running pods use, by what the controller counted.

use serde_json::Value;

use otel_webhook_api::validation::Verdict;

/// Returns a warning about an Instrumentation that is deleted; `None` if no pod uses it.
pub fn deleted(old: &Value) -> Option<String> {
    let metadata = &old["metadata"];
    // A controller removes a finalizer later.
    if !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let who = users(old)?;
    let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
    Some(format!(
        "{who} agents of Instrumentation {namespace}/{name}: without it, new pods start without agents, and a restart \
         removes them; otel-webhook status lists the pods"
    ))
}

/// Warns about what an update takes away from the pods that use an Instrumentation. Which of them opt in by an annotation,
/// and lose nothing with `spec.inject`, is not known.
pub fn changed(verdict: &mut Verdict, new: &Value, old: &Value) {
    let Some((field, what)) = withdrawn(&new["spec"], &old["spec"]) else { return };
    let Some(who) = users(old) else { return };
    let message = format!(
        "{who} agents of this Instrumentation: {what}, and a restart removes what a new pod would not get; \
         otel-webhook status lists the pods"
    );
    verdict.warn("takes-away", field, message);
}

/// Returns which running pods use an Instrumentation; `None` if there are none.
fn users(old: &Value) -> Option<String> {
    let counts = &old["status"]["pods"];
    let of = |state: &str| counts[state].as_u64().unwrap_or_default();
    match (counts.is_object(), of("injected") + of("stale") + of("unconfirmed")) {
        (false, _) => Some("running pods may have".to_owned()),
        (true, 0) => None,
        (true, 1) => Some("1 running pod has".to_owned()),
        (true, count) => Some(format!("{count} running pods have")),
    }
}

/// Returns what a new specification takes away from pods, with the field.
fn withdrawn(new: &Value, old: &Value) -> Option<(&'static str, String)> {
    let missing = |field: &str, name: fn(&Value) -> Option<&str>| -> Vec<String> {
        let names = |spec: &Value| -> Vec<String> {
            let all = spec[field].as_array().into_iter().flatten().filter_map(name);
            all.map(str::to_owned).collect()
        };
        let kept = names(new);
        names(old).into_iter().filter(|name| !kept.contains(name)).collect()
    };
    let languages = missing("inject", Value::as_str);
    if !languages.is_empty() {
        return Some((
            "spec.inject",
            format!("its selector no longer opts pods in to {}", languages.join(", ")),
        ));
    }
    let agents = missing("agents", |agent| agent["name"].as_str());
    if !agents.is_empty() {
        return Some(("spec.agents", format!("it no longer has {}", agents.join(", "))));
    }
    let is_opting_in = old["inject"].as_array().is_some_and(|languages| !languages.is_empty());
    let selectors = [("selector", "spec.selector"), ("namespaceSelector", "spec.namespaceSelector")];
    let (_, path) = selectors.into_iter().find(|(field, _)| new[*field] != old[*field])?;
    is_opting_in.then(|| (path, format!("{path} may no longer match them")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_update_takes_away_from_running_pods_is_reported() {
        let selector = json!({"matchLabels": {"runtime": "jvm"}});
        let spec = json!({
            "inject": ["java", "python"], "selector": selector, "agents": [{"name": "ruby"}, {"name": "php"}],
        });
        let by = |changes: Value| {
            let mut changed = spec.clone();
            json_patch::merge(&mut changed, &changes);
            changed
        };
        let counted =
            |injected: u64| json!({"spec": spec, "status": {"pods": {"injected": injected, "stale": 1}}});
        for (changes, expected) in [
            (
                json!({"inject": ["java"]}),
                "spec.inject: 2001 running pods have agents of this Instrumentation: its \
              selector no longer opts pods in to python, and a restart removes what a new pod would not get; \
              otel-webhook status lists the pods",
            ),
            (json!({"agents": [{"name": "php"}]}), "it no longer has ruby"),
            (json!({"selector": {"matchLabels": {"tier": "web"}}}), "spec.selector may no longer match them"),
            (json!({"inject": ["java", "python", "nodejs"], "env": []}), ""),
        ] {
            let mut verdict = Verdict::default();
            changed(&mut verdict, &json!({"spec": by(changes)}), &counted(2_000));
            let warned: Vec<_> = verdict.warnings.iter().map(ToString::to_string).collect();
            assert!(verdict.is_allowed());
            assert_eq!(warned.is_empty(), expected.is_empty(), "{warned:?}");
            assert!(warned.join("\n").contains(expected), "{warned:?}");
        }
        let mut unused = Verdict::default();
        let old = json!({"spec": spec, "status": {"pods": {"injected": 0}}});
        changed(&mut unused, &json!({"spec": by(json!({"inject": ["java"]}))}), &old);
        assert_eq!(unused.warnings.len(), 0);
    }
}
