//! Spans of the kubelet's HTTP probes (`spec.probes: drop`).
//!
//! An agent that samples by rules drops them by the kubelet's user agent, Python's by their paths. The others cannot.

use serde_json::{Value, json};

use super::{env::Env, injection::Plan, language::LanguageId, note::Note, pod::Container};

/// The list of regular expressions for the URLs of requests that the agent for Python does not trace.
const EXCLUDED: &str = "OTEL_PYTHON_EXCLUDED_URLS";

/// The sentence about an agent that cannot, with the rule of a Collector, which can. The agents for Node.js and Python
/// name the attribute as earlier semantic conventions do.
pub const NOT_DROPPED: &str = "the agent cannot drop spans of probes (spec.probes); a Collector can: processors: \
    {filter/probes: {traces: {span: ['IsMatch(attributes[\"user_agent.original\"], \"^kube-probe/\")', \
    'IsMatch(attributes[\"http.user_agent\"], \"^kube-probe/\")']}}}";

/// Drops the spans of a container's probes by variables. Returns a note if that cannot be done.
pub fn drop_by_variables<'p>(plan: &Plan<'_>, container: &Container<'p>, env: &mut Env<'p>) -> Option<Note> {
    let paths = container.probed_paths();
    if !plan.instrumentation.drops_probes || paths.is_empty() {
        return None;
    }
    // The value of a reference is unknown, and may be an optional one.
    let is_reference = env.get(EXCLUDED).is_some_and(|own| own.from.is_some());
    if plan.language.id != LanguageId::Python || is_reference {
        return Some(Note::ProbesNotDropped);
    }
    let urls: Vec<_> = paths.iter().map(|path| ["://[^/]+", &quoted(path), "$"].concat()).collect();
    env.extend(EXCLUDED, |own| {
        own.filter(|own| !own.is_empty())
            .into_iter()
            .chain(urls.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(",")
    });
    None
}

/// A path as a part of a regular expression. A comma would begin another one.
fn quoted(path: &str) -> String {
    let mut text = String::new();
    for letter in path.chars() {
        match letter {
            ',' => text.push('.'),
            '$' => text.push_str("[$]"),
            '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '\\' => {
                text.extend(['\\', letter]);
            }
            plain => text.push(plain),
        }
    }
    text
}

/// A document with a rule that drops the spans; `None` if its sampler cannot be a part of rules.
pub fn with_rule(document: &Value) -> Option<Value> {
    let sampler = &document["tracer_provider"]["sampler"];
    let parent = sampler.get("parent_based");
    let root = match (sampler, parent) {
        (Value::Null, _) => json!({"always_on": {}}),
        (_, Some(parent)) => composable(&parent["root"])?,
        (own, None) => composable(own)?,
    };
    let rules = json!([
        {"attribute_patterns": {"key": "user_agent.original", "included": ["kube-probe/*"]}, "sampler": {"always_off": {}}},
        {"sampler": root},
    ]);
    let rules = json!({"composite/development": {"rule_based": {"rules": rules}}});
    let mut document = document.clone();
    let provider = document.get_mut("tracer_provider")?;
    match (sampler, parent) {
        (Value::Null, _) => provider["sampler"] = json!({"parent_based": {"root": rules}}),
        (_, Some(_)) => provider["sampler"]["parent_based"]["root"] = rules,
        (_, None) => provider["sampler"] = rules,
    }
    Some(document)
}

/// A sampler as a part of rules.
fn composable(sampler: &Value) -> Option<Value> {
    let (kind, fields) = sampler.as_object()?.iter().next()?;
    match kind.as_str() {
        "always_on" | "always_off" => Some(json!({kind: {}})),
        "trace_id_ratio_based" => Some(json!({"probability": {"ratio": fields["ratio"]}})),
        "composite/development" => Some(fields.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_for_the_regular_expression() {
        for (path, expected) in [
            ("/healthz", "/healthz"),
            ("/a.b+c?d=1", r"/a\.b\+c\?d=1"),
            ("/a,b", "/a.b"),
            (r"/(a|b)[$]\", r"/\(a\|b\)\[[$]\]\\"),
        ] {
            assert_eq!(quoted(path), expected, "{path}");
        }
    }

    #[test]
    fn samplers_are_kept_behind_the_rule() {
        let rules = |then: Value| {
            json!({"composite/development": {"rule_based": {"rules": [
                {
                    "attribute_patterns": {"key": "user_agent.original", "included": ["kube-probe/*"]},
                    "sampler": {"always_off": {}},
                },
                {"sampler": then},
            ]}}})
        };
        for (sampler, expected) in [
            (Value::Null, Some(json!({"parent_based": {"root": rules(json!({"always_on": {}}))}}))),
            (json!({"always_off": null}), Some(rules(json!({"always_off": {}})))),
            (
                json!({"parent_based": {"root": {"trace_id_ratio_based": {"ratio": 0.5}}}}),
                Some(json!({"parent_based": {"root": rules(json!({"probability": {"ratio": 0.5}}))}})),
            ),
            (json!({"jaeger_remote/development": {}}), None),
        ] {
            let found = with_rule(&json!({"tracer_provider": {"sampler": sampler}}));
            assert_eq!(found.map(|found| found["tracer_provider"]["sampler"].clone()), expected, "{sampler}");
        }
        assert_eq!(with_rule(&json!({"file_format": "1.0"})), None, "there are no spans");
    }
}
