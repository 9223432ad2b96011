//! Bounds, patterns and CEL rules: what validation rejects, as far as the API
//! server can reject it by itself, so that invalid objects are rejected even
//! while the webhook is down.
//!
//! The API server estimates the maximum cost of a rule and rejects a CRD
//! above its limit, so lists and strings that a rule reads are bounded. The
//! bounds are generous. Validation has the same: it reads this schema.
//!
//! A rule that fails to evaluate rejects the object without a useful message. That is why
//! `matches` stands before `double`, and `isQuantity` before `quantity`.

use serde_json::{Value, json};

use super::{
    agents::agents,
    patterns::{CONFIG_PATH, IMAGE, INTERVAL, OBJECT_NAME, QUALIFIED_NAME, RATIO, VARIABLE},
    pod,
};
use crate::defaults::LANGUAGES;

/// Adds everything to the schema of the whole resource.
pub fn add(schema: &mut Value) {
    opt_in(&mut schema["properties"]["spec"]);
    conditions(&mut schema["properties"]["status"]["properties"]["conditions"]);
    let spec = &mut schema["properties"]["spec"]["properties"];
    // Typed clients write a policy that is not set as "".
    set(spec, "imagePullPolicy", json!({"enum": ["Always", "IfNotPresent", "Never", ""]}));
    pod::security_context(&mut spec["initContainerSecurityContext"]);
    sampler(&mut spec["sampler"]);
    selector(&mut spec["selector"]);
    selector(&mut spec["namespaceSelector"]);
    variables(&mut spec["env"]);
    let tls = &mut spec["exporter"]["properties"]["tls"]["properties"];
    for object in ["secretName", "configMapName"] {
        set(tls, object, json!({"pattern": OBJECT_NAME, "maxLength": pod::LONGEST_NAME}));
    }
    agents(&mut spec["agents"]);
    for language in LANGUAGES {
        let field = &mut spec[language.field];
        add_rule(field, pod::claim_or_limit());
        let members = &mut field["properties"];
        let resources = &mut members[language.resources];
        add_rule(resources, limits_hold_requests());
        pod::resources(resources);
        pod::claim(&mut members["volumeClaimTemplate"]);
        if members["securityContext"].is_object() {
            pod::security_context(&mut members["securityContext"]);
        }
        set(members, "image", json!({"pattern": IMAGE}));
        variables(&mut members["env"]);
        for path in ["configPath", "configFile"] {
            set(members, path, json!({"pattern": CONFIG_PATH, "maxLength": 256}));
        }
        if members["attrs"].is_object() {
            variables(&mut members["attrs"]);
        }
        if members["extensions"].is_object() {
            set(members, "extensions", json!({"maxItems": 64}));
            let extension = &mut members["extensions"]["items"]["properties"];
            set(extension, "image", json!({"minLength": 1, "pattern": IMAGE}));
            set(extension, "dir", json!({"minLength": 1}));
        }
    }
}

/// Clients that apply a condition of another type keep ours, and we theirs.
fn conditions(list: &mut Value) {
    let node = list.as_object_mut().expect("a list of the schema");
    node.insert("x-kubernetes-list-type".into(), json!("map"));
    node.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
    list["items"]["required"] = json!(["type"]);
    list["items"]["properties"]["type"]
        .as_object_mut()
        .expect("a member of the schema")
        .shift_remove("nullable");
}

/// What opts pods in has to say which pods.
fn opt_in(spec: &mut Value) {
    let nothing = "!has(self.inject) || size(self.inject) == 0";
    add_rule(
        spec,
        rule(
            format!("{nothing} || has(self.selector)"),
            "inject requires a selector; selector: {} selects all pods",
        ),
    );
    add_rule(
        spec,
        rule(format!("!has(self.namespaceSelector) || !({nothing})"), "namespaceSelector requires inject"),
    );
}

fn sampler(sampler: &mut Value) {
    set(&mut sampler["properties"], "argument", json!({"maxLength": 1024}));
    let of = |kinds: [&str; 2], requirement: &str| {
        let [one, other] = kinds;
        format!(
            "!has(self.type) || !(self.type in ['{one}', '{other}']) || !has(self.argument) || \
             self.argument == '' || {requirement}"
        )
    };
    let ratio = ["traceidratio", "parentbased_traceidratio"];
    add_rule(
        sampler,
        rule(
            of(ratio, &in_range("self.argument")),
            "argument must be a number from 0 to 1, such as \"0.25\"",
        ),
    );
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
        add_rule(sampler, rule(each(requirement), message));
    }
}

/// The condition that a string is a number from 0 to 1.
fn in_range(text: &str) -> String {
    let pattern = RATIO.replace('\\', r"\\");
    format!("({text}.matches('{pattern}') && double({text}) >= 0.0 && double({text}) <= 1.0)")
}

fn variables(list: &mut Value) {
    let node = list.as_object_mut().expect("a list of variables");
    node.insert("maxItems".into(), json!(1024));
    let variable = &mut list["items"];
    set(&mut variable["properties"], "name", json!({"minLength": 1, "pattern": VARIABLE}));
    pod::source(&mut variable["properties"]["valueFrom"]);
    let sources = ["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"];
    let any: Vec<_> = sources.iter().map(|source| format!("has(self.valueFrom.{source})")).collect();
    let text =
        format!("!has(self.value) || self.value == '' || !has(self.valueFrom) || !({})", any.join(" || "));
    add_rule(variable, rule(text, "value and valueFrom cannot both be set"));
}

/// CPU and memory only: a rule for all names would cost more than the API server allows.
fn limits_hold_requests() -> Value {
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

fn selector(selector: &mut Value) {
    pod::selector(selector);
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
