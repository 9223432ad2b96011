use serde_json::json;

use super::*;

fn object(spec: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "spec": spec})
}

fn bad() -> Value {
    object(&json!({"sampler": {"type": "sometimes"}, "env": [{"name": "A"}, {"value": "x"}]}))
}

fn fields(verdict: &Verdict) -> Vec<&str> {
    verdict.errors.iter().map(|error| &*error.field).collect()
}

#[test]
fn all_errors_are_found_in_the_order_of_the_fields() {
    assert_eq!(fields(&validate(&bad(), None)), ["spec.sampler.type", "spec.env[1].name"]);
}

#[test]
fn errors_of_the_old_object_become_warnings() {
    let mut new = bad();
    new["metadata"]["annotations"] = json!({"a": "b"});
    let verdict = validate(&new, Some(&bad()));
    assert!(verdict.is_allowed());
    let kept: Vec<_> = verdict.warnings.iter().filter(|one| one.kind == "was-there-before").collect();
    assert_eq!(
        kept.iter().map(|one| &*one.field).collect::<Vec<_>>(),
        ["spec.sampler.type", "spec.env[1].name"]
    );
}

#[test]
fn positions_may_shift_but_a_second_error_of_a_kind_is_new() {
    let mut new = bad();
    new["spec"]["env"] = json!([{"value": "x"}, {"name": "A"}, {"value": "y"}]);
    assert_eq!(fields(&validate(&new, Some(&bad()))), ["spec.env[2].name"]);
}

#[test]
fn another_invalid_value_is_a_new_error() {
    let mut new = bad();
    new["spec"]["sampler"]["type"] = json!("never");
    assert_eq!(fields(&validate(&new, Some(&bad()))), ["spec.sampler.type"]);
}

#[test]
fn an_object_that_is_being_deleted_is_never_rejected() {
    let mut new = bad();
    new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(validate(&new, Some(&object(&json!({})))), Verdict::default());
}

#[test]
fn objects_need_names() {
    let error = |metadata: Value| validate(&json!({"metadata": metadata}), None).errors;
    assert!(error(json!({"generateName": "a-"})).is_empty());
    assert_eq!(error(json!({}))[0].to_string(), "metadata.name: is missing; every object needs a name");
    let message = "metadata.name: \"A_b\" is not a name; valid: lower-case letters, digits, - and .";
    assert_eq!(error(json!({"name": "A_b"}))[0].to_string(), message);
}

#[test]
fn each_invalid_entry_of_the_allowed_namespaces_has_a_warning() {
    let warnings = |list: &str| {
        let mut object = object(&json!({"sampler": {"type": "always_on"}}));
        object["metadata"]["annotations"] = json!({"otel-webhook/allowed-namespaces": list});
        let verdict = validate(&object, None);
        assert!(verdict.is_allowed(), "{verdict:?}");
        verdict.warnings
    };
    assert_eq!(warnings("shop, cart,"), []);
    assert_eq!(warnings("*"), []);
    let [one, other] = &warnings("shop, team-*, Cart")[..] else { panic!("two warnings") };
    assert_eq!(one.kind, "allowed-namespaces");
    assert_eq!(
        one.to_string(),
        "metadata.annotations[otel-webhook/allowed-namespaces]: \"team-*\" is not the name of a namespace, so \
         it allows none; valid: a comma-separated list of namespaces (lower-case letters, digits and -, at most \
         63 characters each), or \"*\" for all"
    );
    assert!(other.message.starts_with("\"Cart\" is not the name of a namespace"), "{other}");
}

#[test]
fn a_value_that_does_not_say_whether_to_pause_has_a_warning() {
    let warnings = |value: &str| {
        let mut object = object(&json!({"sampler": {"type": "always_on"}}));
        object["metadata"]["annotations"] = json!({"otel-webhook/paused": value});
        let verdict = validate(&object, None);
        assert!(verdict.is_allowed(), "{verdict:?}");
        verdict.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for value in ["true", "True", "false", ""] {
        assert_eq!(warnings(value), [""; 0], "{value:?}");
    }
    assert_eq!(
        warnings("yes"),
        [
            "metadata.annotations[otel-webhook/paused]: is \"yes\", which pauses nothing; set it to \"true\" to pause \
          injection, or remove it"
        ]
    );
}

#[test]
fn warnings_never_show_the_value_of_a_variable() {
    let spec = json!({
        "exporter": {"endpoint": "http://user:hunter2@c:4317"},
        "env": [
            {"name": "DB_PASSWORD", "value": "hunter2"},
            {"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "http/protobuf"},
            {"name": "JAVA_TOOL_OPTIONS", "value": "-Dpassword=hunter2", "valueFrom": {"fieldRef": {"fieldPath": "a"}}},
        ],
    });
    let verdict = validate(&object(&spec), None);
    assert!(verdict.warnings.len() > 4 && verdict.errors.len() == 1, "{verdict:?}");
    assert!(!format!("{verdict:?}").contains("hunter2"), "{verdict:?}");
}

#[test]
fn a_directive_is_one_line_with_a_name() {
    let attrs = json!([
        {"name": "NginxModuleResolveBackends", "value": "a \"b\" c;"},
        {"name": "a b", "value": "c"},
        {"name": "A", "value": "b\nload_module c"},
    ]);
    for part in ["apacheHttpd", "nginx"] {
        let errors = validate(&object(&json!({part: {"attrs": attrs}})), None).errors;
        let found: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                format!(
                    "spec.{part}.attrs[1].name: \"a b\" is not the name of a directive; valid: letters, digits and _"
                ),
                format!(
                    "spec.{part}.attrs[2].value: has a control character, which could begin another directive; \
                     valid: one line of text"
                ),
            ]
        );
    }
}

#[test]
fn privileges_of_init_containers_are_warned_of() {
    let warned = |context: Value| {
        let spec = json!({"sampler": {"type": "always_on"}, "initContainerSecurityContext": context});
        let verdict = validate(&object(&spec), None);
        assert!(verdict.is_allowed(), "{verdict:?}");
        verdict.warnings
    };
    let found = warned(json!({"privileged": true, "runAsUser": 0, "allowPrivilegeEscalation": true,
        "capabilities": {"add": ["SYS_ADMIN"]}}));
    let fields: Vec<_> =
        found.iter().map(|one| one.field.trim_start_matches("spec.initContainerSecurityContext.")).collect();
    assert_eq!(fields, ["privileged", "runAsUser", "allowPrivilegeEscalation", "capabilities.add"]);
    assert!(found.iter().all(|one| one.kind == "privileged-init-containers"), "{found:?}");
    assert_eq!(
        found[3].message,
        "SYS_ADMIN gives the init containers of every pod that uses this Instrumentation more privileges than copying an \
         agent needs; remove it (--init-containers-privileged=deny skips such pods)"
    );
    assert_eq!(warned(json!({"runAsUser": 1, "privileged": false, "capabilities": {"drop": ["ALL"]}})), []);
}

fn beta(spec: &Value) -> Value {
    json!({
        "apiVersion": "opentelemetry.io/v1beta1", "kind": "Instrumentation", "metadata": {"name": "a"}, "spec": spec,
    })
}

#[test]
fn errors_of_v1beta1_name_its_own_fields() {
    let spec = json!({
        "envConfig": {
            "exporter": {"endpoint": 5, "protocol": "http"}, "sampler": {"type": "sometimes"}, "env": [{"value": "x"}],
        },
        "resource": {"k8sMetadata": {"enabled": "no"}},
        "nodejs": {"image": "a:1", "resources": {"limits": {"cpu": "x"}}},
    });
    let verdict = validate(&beta(&spec), None);
    let mut found = fields(&verdict);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "spec.envConfig.env[0].name",
            "spec.envConfig.exporter.endpoint",
            "spec.envConfig.exporter.protocol",
            "spec.envConfig.sampler.type",
            "spec.nodejs.resources.limits.cpu",
            "spec.resource.k8sMetadata.enabled",
        ],
        "{verdict:#?}"
    );
}

#[test]
fn fields_of_v1alpha1_are_unknown_in_v1beta1() {
    let verdict = validate(&beta(&json!({"exporter": {"endpoint": "http://c:4317"}, "foreign": 1})), None);
    let warnings: Vec<_> = verdict.warnings.iter().map(|warning| (&*warning.kind, &*warning.field)).collect();
    assert_eq!(warnings, [("unknown-field", "spec.exporter"), ("unknown-field", "spec.foreign")]);
}

#[test]
fn the_protocol_of_v1beta1_is_compared_with_the_port() {
    let spec = json!({"envConfig": {"exporter": {"endpoint": "http://c:4317", "protocol": "http/protobuf"}}});
    let verdict = validate(&beta(&spec), None);
    let [warning] = verdict.warnings.as_slice() else { panic!("{verdict:#?}") };
    assert_eq!(
        (&*warning.kind, &*warning.field),
        ("endpoint-port-contradicts-protocol", "spec.envConfig.exporter.endpoint")
    );
}

#[test]
fn a_missing_image_is_a_warning_in_v1beta1() {
    let verdict = validate(&beta(&json!({"java": {}, "python": {"image": "a:1"}})), None);
    let warnings: Vec<_> = verdict.warnings.iter().map(|warning| (&*warning.kind, &*warning.field)).collect();
    assert_eq!(warnings, [("image-required:java", "spec.java.image")]);
}

#[test]
fn a_file_is_exclusive_with_the_environment() {
    let config = json!({
        "exporter": {"endpoint": "http://c:4317"}, "env": [{"name": "OTEL_LOG_LEVEL", "value": "info"}],
    });
    let spec = json!({"declarativeConfig": {"file_format": "1.0"}, "envConfig": config});
    let verdict = validate(&beta(&spec), None);
    assert_eq!(fields(&verdict), ["spec.envConfig.exporter", "spec.envConfig.env"], "{verdict:#?}");
}

#[test]
fn an_annotation_of_no_conversion_is_a_warning() {
    let mut object = beta(&json!({}));
    object["metadata"]["annotations"] = json!({"otel-webhook/conversion": "{"});
    let warnings = validate(&object, None).warnings;
    assert_eq!(warnings[0].field, "metadata.annotations[otel-webhook/conversion]");
}
