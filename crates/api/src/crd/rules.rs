//! The CEL rules that fields have as attributes, and how they are added to a schema of Kubernetes: what validation rejects,
//! as far as the API server can reject it by itself, so that invalid objects are rejected even while the webhook is down.
//!
//! The API server estimates the maximum cost of a rule and rejects a CRD
//! above its limit, so lists and strings that a rule reads are bounded. The
//! bounds are generous. Validation has the same: it reads this schema.
//!
//! A rule that fails to evaluate rejects the object without a useful message. That is why
//! `matches` stands before `double`, and `isQuantity` before `quantity`.

use schemars::Schema;
use serde_json::{Value, json};

use super::{
    names::reserved,
    patterns::{INTERVAL, QUALIFIED_NAME, RATIO},
};

/// What opts pods in has to say which pods.
pub fn opt_in() -> Value {
    let nothing = "!has(self.inject) || size(self.inject) == 0";
    json!([
        rule(
            format!("{nothing} || has(self.selector)"),
            "inject requires a selector; selector: {} selects all pods",
        ),
        rule(format!("!has(self.namespaceSelector) || !({nothing})"), "namespaceSelector requires inject"),
    ])
}

/// The argument of each sampler has its own form.
pub fn sampler() -> Value {
    let of = |kinds: [&str; 2], requirement: &str| {
        let [one, other] = kinds;
        format!(
            "!has(self.type) || !(self.type in ['{one}', '{other}']) || !has(self.argument) || \
             self.argument == '' || {requirement}"
        )
    };
    let ratio = ["traceidratio", "parentbased_traceidratio"];
    let mut rules = vec![rule(
        of(ratio, &in_range("self.argument")),
        "argument must be a number from 0 to 1, such as \"0.25\"",
    )];
    let jaeger = ["jaeger_remote", "parentbased_jaeger_remote"];
    let each = |requirement: &str| of(jaeger, &format!("self.argument.split(',').all(pair, {requirement})"));
    let rate = format!("!pair.startsWith('initialSamplingRate=') || {}", in_range("pair.substring(20)"));
    for (requirement, message) in [
        (
            "pair.contains('=')",
            "argument must be comma-separated key=value pairs, such as \"endpoint=http://jaeger:14250\"",
        ),
        ("pair != 'endpoint='", "argument must have a non-empty endpoint"),
        (
            &format!("!pair.startsWith('pollingIntervalMs=') || pair.substring(18).matches('{INTERVAL}')"),
            "argument must have a whole number for pollingIntervalMs, such as \"5000\"",
        ),
        (&rate, "argument must have a number from 0 to 1 for initialSamplingRate, such as \"0.25\""),
    ] {
        rules.push(rule(each(requirement), message));
    }
    rules.into()
}

/// The condition that a string is a number from 0 to 1.
fn in_range(text: &str) -> String {
    let pattern = RATIO.replace('\\', r"\\");
    format!("({text}.matches('{pattern}') && double({text}) >= 0.0 && double({text}) <= 1.0)")
}

/// A variable has a value or a source of it.
pub fn one_value() -> Value {
    let sources = ["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"];
    let any: Vec<_> = sources.iter().map(|source| format!("has(self.valueFrom.{source})")).collect();
    let text =
        format!("!has(self.value) || self.value == '' || !has(self.valueFrom) || !({})", any.join(" || "));
    json!([rule(text, "value and valueFrom cannot both be set")])
}

/// CPU and memory only: a rule for all names would cost more than the API server allows.
pub fn limits_hold_requests() -> Value {
    let holds = |name: &str| {
        let of = |list: &str| format!("string(self.{list}['{name}'])");
        let (limit, request) = (of("limits"), of("requests"));
        format!(
            "(!('{name}' in self.limits) || !('{name}' in self.requests) || \
             !isQuantity({limit}) || !isQuantity({request}) || \
             quantity({request}).compareTo(quantity({limit})) <= 0)"
        )
    };
    let text =
        format!("!has(self.limits) || !has(self.requests) || ({} && {})", holds("cpu"), holds("memory"));
    rule(text, "requests must not be greater than limits")
}

pub fn selector(selector: &mut Value) {
    let members = &mut selector["properties"];
    set(members, "matchLabels", json!({"maxProperties": 64}));
    let labels = &mut members["matchLabels"];
    let keys = format!("self.all(key, key.matches('{}'))", QUALIFIED_NAME.replace('\\', r"\\"));
    add_rule(labels, rule(keys, "every key must be a label key, such as \"app.kubernetes.io/name\""));
    set(members, "matchExpressions", json!({"maxItems": 64}));
    let expression = &mut members["matchExpressions"]["items"];
    set(&mut expression["properties"], "values", json!({"maxItems": 256}));
    let values = "(has(self.values) && size(self.values) > 0) == (self.operator in ['In', 'NotIn'])";
    let message = "values must be set for In and NotIn, and for no other operator";
    add_rule(expression, rule(values, message));
}

/// An empty claim template is treated as not set. CEL cannot recognise every
/// empty form, but only those that nobody writes by accident are missing.
pub fn claim_or_limit() -> Value {
    let claim = "self.volumeClaimTemplate";
    let spec = format!("{claim}.spec");
    let text = format!(
        "!has(self.volumeLimitSize) || !has({claim}) || !has({spec}) || \
         !(has({spec}.storageClassName) || has({spec}.volumeName) || has({spec}.volumeMode) || \
         (has({spec}.accessModes) && size({spec}.accessModes) > 0) || \
         (has({spec}.resources) && has({spec}.resources.requests) && size({spec}.resources.requests) > 0))"
    );
    rule(text, "volumeClaimTemplate and volumeLimitSize cannot both be set")
}

/// The name of an agent is none that opts in to something else.
pub fn agent() -> Value {
    let names: Vec<_> = reserved().map(|name| format!("'{name}'")).collect();
    let reserved = format!("!(self.name in [{}])", names.join(", "));
    let message = "name must not be that of a language, \"agent\", \"true\" or \"false\"";
    json!([rule(reserved, message), claim_or_limit()])
}

/// A variable is extended by its separator.
pub fn agent_variable() -> Value {
    let is_extended = "(has(self.mode) && self.mode in ['append', 'prepend'])";
    json!([
        rule(
            format!("has(self.separator) == {is_extended}"),
            "separator must be set for the modes append and prepend, and for no other",
        ),
        rule(
            format!("self.name != 'OTEL_RESOURCE_ATTRIBUTES' || !{is_extended}"),
            "OTEL_RESOURCE_ATTRIBUTES is extended by injection; use spec.resource.resourceAttributes",
        ),
    ])
}

/// Requires members of the items of a list. In the types they have a default, so that one item without them does not make
/// the whole resource unreadable.
pub fn required(names: &'static [&'static str]) -> impl Fn(&mut Schema) {
    move |schema| {
        schema.insert("required".into(), json!(names));
        for name in names {
            let member = schema.pointer_mut(&format!("/properties/{name}")).and_then(Value::as_object_mut);
            member.expect("a member of the schema").shift_remove("default");
        }
    }
}

/// Sets keywords of a member, if it exists.
pub fn set(members: &mut Value, name: &str, keywords: Value) {
    if let (Some(node), Value::Object(keywords)) =
        (members.get_mut(name).and_then(Value::as_object_mut), keywords)
    {
        node.extend(keywords);
    }
}

/// Adds a rule to an object of the schema.
pub fn add_rule(node: &mut Value, rule: Value) {
    let node = node.as_object_mut().expect("every rule is for an object of the schema");
    let rules = node.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    rules.as_array_mut().expect("a list of rules").push(rule);
}

/// A rule with its message.
pub fn rule(rule: impl Into<String>, message: &str) -> Value {
    json!({"rule": rule.into(), "message": message})
}
