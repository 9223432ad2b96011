//! What variables can express of a file, for agents that cannot use it (`onUnsupported: env`).

use serde_json::Value;

use crate::{env::Setting, held::held};
use otel_webhook_api::declarative::{Part, parts};

/// What variables express of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expressed {
    /// The variables.
    pub settings: Vec<Setting>,
    /// The paths of what they cannot express.
    pub lost: Vec<String>,
}

held!(Expressed: settings, lost;);

/// Values with a variable each, by their pointers.
pub const VALUES: [(&str, &str); 21] = [
    ("/disabled", "OTEL_SDK_DISABLED"),
    ("/attribute_limits/attribute_count_limit", "OTEL_ATTRIBUTE_COUNT_LIMIT"),
    ("/attribute_limits/attribute_value_length_limit", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    ("/tracer_provider/limits/attribute_count_limit", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
    ("/tracer_provider/limits/attribute_value_length_limit", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
    ("/tracer_provider/limits/event_count_limit", "OTEL_SPAN_EVENT_COUNT_LIMIT"),
    ("/tracer_provider/limits/link_count_limit", "OTEL_SPAN_LINK_COUNT_LIMIT"),
    ("/tracer_provider/limits/event_attribute_count_limit", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT"),
    ("/tracer_provider/limits/link_attribute_count_limit", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT"),
    ("/tracer_provider/processors/0/batch/schedule_delay", "OTEL_BSP_SCHEDULE_DELAY"),
    ("/tracer_provider/processors/0/batch/export_timeout", "OTEL_BSP_EXPORT_TIMEOUT"),
    ("/tracer_provider/processors/0/batch/max_queue_size", "OTEL_BSP_MAX_QUEUE_SIZE"),
    ("/tracer_provider/processors/0/batch/max_export_batch_size", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
    ("/logger_provider/processors/0/batch/schedule_delay", "OTEL_BLRP_SCHEDULE_DELAY"),
    ("/logger_provider/processors/0/batch/export_timeout", "OTEL_BLRP_EXPORT_TIMEOUT"),
    ("/logger_provider/processors/0/batch/max_queue_size", "OTEL_BLRP_MAX_QUEUE_SIZE"),
    ("/logger_provider/processors/0/batch/max_export_batch_size", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE"),
    ("/meter_provider/readers/0/periodic/interval", "OTEL_METRIC_EXPORT_INTERVAL"),
    ("/meter_provider/readers/0/periodic/timeout", "OTEL_METRIC_EXPORT_TIMEOUT"),
    ("/meter_provider/exemplar_filter", "OTEL_METRICS_EXEMPLAR_FILTER"),
    ("/propagator/composite_list", "OTEL_PROPAGATORS"),
];

/// Each signal with the pointers of its first exporter.
const SIGNALS: [(&str, &[&str]); 3] = [
    ("TRACES", &["/tracer_provider/processors/0/batch", "/tracer_provider/processors/0/simple"]),
    ("METRICS", &["/meter_provider/readers/0/periodic"]),
    ("LOGS", &["/logger_provider/processors/0/batch", "/logger_provider/processors/0/simple"]),
];

/// Fields of an OTLP exporter, with the ends of their variables.
const OF_EXPORTER: [(&str, &str); 4] = [
    ("endpoint", "ENDPOINT"),
    ("headers_list", "HEADERS"),
    ("compression", "COMPRESSION"),
    ("timeout", "TIMEOUT"),
];

/// The variables that express a document.
pub fn expressed(document: &Value) -> Expressed {
    let mut found = Found { document, settings: Vec::new(), done: vec!["/file_format".to_owned()] };
    for (pointer, name) in VALUES {
        found.value(pointer, name);
    }
    for (signal, pointers) in SIGNALS {
        found.exporter(signal, pointers);
    }
    found.propagators();
    found.sampler();
    let attributes = document.pointer("/resource/attributes_list").and_then(Value::as_str);
    if attributes.is_some_and(|list| list.starts_with("${OTEL_RESOURCE_ATTRIBUTES") && list.ends_with('}')) {
        // Injection sets this variable.
        found.done.push("/resource/attributes_list".to_owned());
    }
    let mut lost = Vec::new();
    leaves(document, &mut String::new(), &mut |path| {
        let is_done = |done: &String| {
            path.strip_prefix(done.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !found.done.iter().any(is_done) {
            lost.push(path.trim_start_matches('/').replace('/', ".").replace("~1", "/"));
        }
    });
    Expressed { settings: found.settings, lost }
}

struct Found<'d> {
    document: &'d Value,
    settings: Vec<Setting>,
    /// The pointers of what the variables express.
    done: Vec<String>,
}

impl Found<'_> {
    fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.settings.push(Setting { name: name.into(), value: value.into(), from: None });
    }

    fn value(&mut self, pointer: &str, name: &str) {
        if let Some(value) = self.document.pointer(pointer).and_then(literal) {
            self.set(name, value);
            self.done.push(pointer.to_owned());
        }
    }

    fn exporter(&mut self, signal: &str, pointers: &[&str]) {
        let exporters = pointers.iter().map(|pointer| [pointer, "/exporter"].concat());
        let kinds = [("otlp_http", "http/protobuf"), ("otlp_grpc", "grpc"), ("console", "")];
        let found = exporters
            .flat_map(|pointer| kinds.map(|(kind, protocol)| (format!("{pointer}/{kind}"), protocol)));
        let Some((pointer, protocol)) =
            found.into_iter().find(|(pointer, _)| self.document.pointer(pointer).is_some())
        else {
            // Without a provider, or with an exporter that has no variable, nothing is exported.
            return self.set(format!("OTEL_{signal}_EXPORTER"), "none");
        };
        let is_console = protocol.is_empty();
        self.set(format!("OTEL_{signal}_EXPORTER"), if is_console { "console" } else { "otlp" });
        if !is_console {
            self.set(format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"), protocol);
            for (field, end) in OF_EXPORTER {
                self.value(&format!("{pointer}/{field}"), &format!("OTEL_EXPORTER_OTLP_{signal}_{end}"));
            }
        }
        if self.document.pointer(&pointer).is_some_and(otel_webhook_api::is_hollow) {
            self.done.push(pointer);
        }
    }

    fn propagators(&mut self) {
        let pointer = "/propagator/composite";
        let list = self.document.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let names: Vec<_> = list.filter_map(|one| one.as_object()?.keys().next().cloned()).collect();
        if !names.is_empty() && !self.settings.iter().any(|known| known.name == "OTEL_PROPAGATORS") {
            self.set("OTEL_PROPAGATORS", names.join(","));
            self.done.push(pointer.to_owned());
        }
    }

    fn sampler(&mut self) {
        let pointer = "/tracer_provider/sampler";
        let Some(sampler) = self.document.pointer(pointer) else { return };
        let parent = &sampler["parent_based"];
        let is_plain = parent.as_object().is_some_and(|members| members.keys().all(|name| name == "root"));
        let (prefix, root) = if is_plain { ("parentbased_", &parent["root"]) } else { ("", sampler) };
        let ratio = literal(&root["trace_id_ratio_based"]["ratio"]);
        let kind = match root.as_object().and_then(|members| members.keys().next()).map(String::as_str) {
            Some(kind @ ("always_on" | "always_off")) => kind,
            Some("trace_id_ratio_based") if ratio.is_some() => "traceidratio",
            _ => return,
        };
        self.set("OTEL_TRACES_SAMPLER", [prefix, kind].concat());
        if let Some(ratio) = ratio {
            self.set("OTEL_TRACES_SAMPLER_ARG", ratio);
        }
        self.done.push(pointer.to_owned());
    }
}

/// A plain value as the text of a variable. The kubelet knows references without a default only.
fn literal(value: &Value) -> Option<String> {
    let Value::String(text) = value else {
        return (value.is_number() || value.is_boolean()).then(|| value.to_string());
    };
    let mut written = String::new();
    for part in parts(text) {
        match part {
            // `$(` would be a reference for the kubelet.
            Part::Text(text) => written.push_str(&text.replace("$$", "$").replace("$(", "$$(")),
            Part::Reference { name, default: None } => written.extend(["$(", name, ")"]),
            Part::Reference { .. } | Part::Malformed(_) => return None,
        }
    }
    Some(written)
}

/// Calls `then` with the pointer of each value that has no members.
fn leaves(value: &Value, pointer: &mut String, then: &mut dyn FnMut(&str)) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    if members.is_empty() {
        return then(pointer);
    }
    for (name, value) in members {
        let length = pointer.len();
        pointer.extend(["/", &name]);
        leaves(value, pointer, then);
        pointer.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_a_variable_is_expressed_and_the_rest_is_lost() {
        let document = json!({
            "file_format": "1.0",
            "resource": {"attributes_list": "${OTEL_RESOURCE_ATTRIBUTES:-}", "attributes": [{"name": "a", "value": 1}]},
            "propagator": {"composite": [{"tracecontext": null}, {"b3": {}}]},
            "tracer_provider": {
                "limits": {"attribute_count_limit": 64},
                "sampler": {"parent_based": {"root": {"trace_id_ratio_based": {"ratio": 0.25}}}},
                "processors": [
                    {"batch": {"exporter": {"otlp_http": {"endpoint": "${BASE}/v1/traces", "timeout": "${T:-5}"}}}},
                    {"batch": {"exporter": {"console": null}}},
                ],
            },
            "meter_provider": {"readers": [{"periodic": {"exporter": {"otlp_grpc": null}}}], "views": [{"selector": {}}]},
        });
        let Expressed { settings, lost } = expressed(&document);
        let settings: Vec<_> = settings.iter().map(|one| format!("{}={}", one.name, one.value)).collect();
        assert_eq!(
            settings,
            [
                "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=64",
                "OTEL_TRACES_EXPORTER=otlp",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=$(BASE)/v1/traces",
                "OTEL_METRICS_EXPORTER=otlp",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc",
                "OTEL_LOGS_EXPORTER=none",
                "OTEL_PROPAGATORS=tracecontext,b3",
                "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
                "OTEL_TRACES_SAMPLER_ARG=0.25",
            ]
        );
        assert_eq!(
            lost,
            [
                "resource.attributes.0.name",
                "resource.attributes.0.value",
                "tracer_provider.processors.0.batch.exporter.otlp_http.timeout",
                "tracer_provider.processors.1.batch.exporter.console",
                "meter_provider.views.0.selector",
            ]
        );
    }

    #[test]
    fn samplers_with_a_variable_are_expressed() {
        for (sampler, expected) in [
            (json!({"always_on": {}}), Some("always_on")),
            (json!({"always_off": null}), Some("always_off")),
            (json!({"trace_id_ratio_based": {"ratio": 0.5}}), Some("traceidratio")),
            (json!({"parent_based": {"root": {"always_on": {}}}}), Some("parentbased_always_on")),
            (
                json!({"parent_based": {"root": {"always_on": {}}, "local_parent_sampled": {"always_off": {}}}}),
                None,
            ),
            (json!({"composite/development": {"rule_based": {}}}), None),
            (json!({"trace_id_ratio_based": {"ratio": "${R:-1}"}}), None),
        ] {
            let found = expressed(&json!({"tracer_provider": {"sampler": sampler}})).settings;
            let found =
                found.iter().find(|one| one.name == "OTEL_TRACES_SAMPLER").map(|one| one.value.as_str());
            assert_eq!(found, expected, "{sampler}");
        }
    }
}
