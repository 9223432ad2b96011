//! The file that configures SDKs as the variables of an Instrumentation do (`otel-webhook config migrate`).

use serde_json::{Map, Value, json};

use super::variables::VALUES;
use otel_webhook_api::{
    declarative::{FIELD, format_of, is_read_with_file, schema},
    is_hollow,
};

/// A specification with a file in place of variables.
#[derive(Debug, PartialEq)]
pub struct Migrated {
    /// The specification.
    pub spec: Value,
    /// What has no counterpart, and was not carried over.
    pub left: Vec<String>,
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Migrates a specification; `None` if it has a file already.
pub fn migrated(spec: &Value) -> Option<Migrated> {
    if !is_hollow(&spec[FIELD]) || !(spec.is_object() || spec.is_null()) {
        return None;
    }
    let mut new = spec.as_object().cloned().unwrap_or_default();
    let mut left = Vec::new();
    let exporter = new.shift_remove("exporter").unwrap_or_default();
    let propagators = new.shift_remove("propagators").unwrap_or_default();
    let sampler = new.shift_remove("sampler").unwrap_or_default();
    let mut env = new.shift_remove("env").and_then(|env| env.as_array().cloned()).unwrap_or_default();
    let mut file = json!({
        "file_format": "1.0",
        "resource": {"detection/development": {"detectors": [{"container": {}}, {"host": {}}, {"process": {}}, {"service": {}}]}},
        "propagator": {"composite_list": named(&propagators)},
        "tracer_provider": {"sampler": sampler_of(&sampler, &mut left)},
    });
    if let Some(endpoint) =
        exporter["endpoint"].as_str().filter(|one| !one.is_empty() && !has(&env, ENDPOINT))
    {
        env.push(json!({"name": ENDPOINT, "value": endpoint}));
    }
    let of_exporter = exporter_fields(&env, &exporter["tls"], &mut left);
    for (signal, path, field) in [
        ("traces", "/tracer_provider/processors", "batch"),
        ("metrics", "/meter_provider/readers", "periodic"),
        ("logs", "/logger_provider/processors", "batch"),
    ] {
        set(&mut file, path, json!([{field: {"exporter": of_exporter(signal)}}]));
    }
    env.retain(|variable| !is_moved(variable, &mut file, &mut left));
    if !env.is_empty() {
        new.insert("env".into(), env.into());
    }
    new.insert(FIELD.into(), file);
    Some(Migrated { spec: new.into(), left })
}

/// Without any, agents use these; a file without a propagator has none.
fn named(propagators: &Value) -> String {
    let names: Vec<_> = propagators.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { "tracecontext,baggage".to_owned() } else { names.join(",") }
}

fn sampler_of(sampler: &Value, left: &mut Vec<String>) -> Value {
    let kind = sampler["type"].as_str().unwrap_or_default();
    let ratio = sampler["argument"].as_str().and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
    let (has_parent, root) = match kind.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, kind),
    };
    let root = match root {
        // The default of SDKs.
        "" => return json!({"parent_based": {"root": {"always_on": {}}}}),
        "always_on" | "always_off" => json!({root: {}}),
        "traceidratio" => json!({"trace_id_ratio_based": {"ratio": ratio}}),
        other => {
            left.push(format!("spec.sampler: {other} has no stable counterpart; all traces are sampled"));
            return json!({"parent_based": {"root": {"always_on": {}}}});
        }
    };
    if has_parent { json!({"parent_based": {"root": root}}) } else { root }
}

/// What makes the exporter of a signal.
fn exporter_fields(env: &[Value], tls: &Value, left: &mut Vec<String>) -> impl Fn(&str) -> Value + use<> {
    let is_grpc = value(env, PROTOCOL) == Some("grpc");
    let has_headers = has(env, HEADERS);
    let mut files = Map::new();
    for field in ["ca_file", "cert_file", "key_file"] {
        match tls[field].as_str().filter(|path| !path.is_empty()) {
            Some(path) if path.starts_with('/') => drop(files.insert(field.to_owned(), path.into())),
            Some(_) => left.push(format!(
                "spec.exporter.tls.{field}: the file of a Secret or ConfigMap is not mounted for a file; mount it in the pod, \
                 and set its path"
            )),
            None => {}
        }
    }
    move |signal| {
        let mut fields = Map::new();
        let endpoint = if is_grpc {
            format!("${{{ENDPOINT}:-http://localhost:4317}}")
        } else {
            format!("${{{ENDPOINT}:-http://localhost:4318}}/v1/{signal}")
        };
        fields.insert("endpoint".into(), endpoint.into());
        if has_headers {
            fields.insert("headers_list".into(), format!("${{{HEADERS}}}").into());
        }
        if !files.is_empty() {
            fields.insert("tls".into(), files.clone().into());
        }
        json!({if is_grpc { "otlp_grpc" } else { "otlp_http" }: fields})
    }
}

/// Whether a variable is in the file now, or has no effect with one.
fn is_moved(variable: &Value, file: &mut Value, left: &mut Vec<String>) -> bool {
    let name = variable["name"].as_str().unwrap_or_default();
    if !name.starts_with("OTEL_") || [ENDPOINT, HEADERS].contains(&name) || is_read_with_file(name) {
        return false;
    }
    if name == PROTOCOL {
        return true;
    }
    let Some((pointer, _)) = VALUES.iter().find(|(_, known)| *known == name) else {
        left.push(format!("spec.env[{name}]: agents with a file ignore it, and it is not carried over"));
        return true;
    };
    let text = match variable["value"].as_str() {
        Some(text) if !text.contains("$(") => text.replace('$', "$$"),
        _ => {
            // The variable stays, and the file refers to it.
            set(file, pointer, format!("${{{name}}}").into());
            return false;
        }
    };
    let names = pointer.split('/').skip(1);
    let is_text = format_of(file)
        .and_then(|format| schema(format).below(names))
        .is_none_or(|node| node.allows("string"));
    let written = if is_text {
        text.into()
    } else {
        serde_json::from_str(&text).unwrap_or_else(|_| text.clone().into())
    };
    set(file, pointer, written);
    true
}

fn has(env: &[Value], name: &str) -> bool {
    env.iter().any(|variable| variable["name"] == name)
}

fn value<'e>(env: &'e [Value], name: &str) -> Option<&'e str> {
    env.iter().find(|variable| variable["name"] == name)?["value"].as_str()
}

/// Sets a value at a pointer; objects on the way are made.
fn set(file: &mut Value, pointer: &str, value: Value) {
    let place = pointer.split('/').skip(1).fold(file, |place, name| match name.parse::<usize>() {
        Ok(index) if place.is_array() => &mut place[index],
        _ => &mut place[name],
    });
    *place = value;
}

#[cfg(test)]
mod tests {
    use otel_webhook_api::validation::validate;

    use super::*;
    use crate::declarative::expressed;

    #[test]
    fn the_file_says_what_the_variables_said() {
        let spec = json!({
            "exporter": {"endpoint": "http://c:4318", "tls": {"ca_file": "/ca.crt", "cert_file": "tls.crt"}},
            "propagators": ["tracecontext", "b3"],
            "sampler": {"type": "parentbased_traceidratio", "argument": "0.25"},
            "env": [
                {"name": "TEAM", "value": "a"},
                {"name": "OTEL_BSP_SCHEDULE_DELAY", "value": "100"},
                {"name": "OTEL_METRIC_EXPORT_INTERVAL", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
                {"name": "OTEL_JAVAAGENT_DEBUG", "value": "true"},
                {"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "http/protobuf"},
                {"name": "OTEL_SEMCONV_STABILITY_OPT_IN", "value": "http"},
            ],
            "java": {"image": "own:1"},
        });
        let Migrated { spec, left } = migrated(&spec).expect("variables");
        let names: Vec<_> = spec["env"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(
            names,
            ["TEAM", "OTEL_METRIC_EXPORT_INTERVAL", "OTEL_JAVAAGENT_DEBUG", "OTEL_EXPORTER_OTLP_ENDPOINT"]
        );
        assert_eq!(
            left,
            [
                "spec.exporter.tls.cert_file: the file of a Secret or ConfigMap is not mounted for a file; mount it in the \
                 pod, and set its path",
                "spec.env[OTEL_SEMCONV_STABILITY_OPT_IN]: agents with a file ignore it, and it is not carried over",
            ]
        );
        let file = &spec[FIELD];
        assert_eq!(file["tracer_provider"]["processors"][0]["batch"]["schedule_delay"], 100);
        assert_eq!(
            file["meter_provider"]["readers"][0]["periodic"]["interval"],
            "${OTEL_METRIC_EXPORT_INTERVAL}"
        );
        let verdict = validate(&json!({"metadata": {"name": "a"}, "spec": spec}), None);
        assert!(verdict.is_allowed() && verdict.warnings.is_empty(), "{verdict:?}");
        let back = expressed(file).settings;
        let back = |name: &str| back.iter().find(|one| one.name == name).map(|one| one.value.as_str());
        assert_eq!(back("OTEL_TRACES_SAMPLER"), Some("parentbased_traceidratio"));
        assert_eq!(back("OTEL_TRACES_SAMPLER_ARG"), Some("0.25"));
        assert_eq!(back("OTEL_PROPAGATORS"), Some("tracecontext,b3"));
        assert_eq!(migrated(&spec), None, "it has a file");
    }

    #[test]
    fn each_sampler_has_its_counterpart_or_is_reported() {
        for (kind, expected, reported) in [
            ("", json!({"parent_based": {"root": {"always_on": {}}}}), 0),
            ("always_off", json!({"always_off": {}}), 0),
            ("traceidratio", json!({"trace_id_ratio_based": {"ratio": 0.5}}), 0),
            ("parentbased_always_off", json!({"parent_based": {"root": {"always_off": {}}}}), 0),
            ("jaeger_remote", json!({"parent_based": {"root": {"always_on": {}}}}), 1),
        ] {
            let mut left = Vec::new();
            assert_eq!(sampler_of(&json!({"type": kind, "argument": "0.5"}), &mut left), expected, "{kind}");
            assert_eq!(left.len(), reported, "{kind}");
        }
    }
}
