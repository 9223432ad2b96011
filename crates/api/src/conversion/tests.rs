use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest},
    sample::select,
    strategy::Union,
};
use serde_json::{Value, json};

use super::*;

fn object(version: Version, spec: &Value, annotations: &Value) -> Value {
    let mut metadata = json!({"name": "java", "namespace": "shop"});
    if annotations.as_object().is_some_and(|all| !all.is_empty()) {
        metadata["annotations"] = annotations.clone();
    }
    json!({
        "apiVersion": version.api_version(), "kind": "Instrumentation",
        "metadata": metadata, "spec": spec,
    })
}

fn converted(object: &Value, to: Version) -> Value {
    convert(object, to).expect("an Instrumentation")
}

/// Fields of both versions at each level, mixed, and some of none.
const NAMES: [&[&str]; 4] = [
    &[
        "envConfig",
        "exporter",
        "propagators",
        "sampler",
        "resource",
        "defaults",
        "env",
        "java",
        "nodejs",
        "apacheHttpd",
        "nginx",
        "go",
        "agents",
        "declarativeConfig",
        "selector",
        "inject",
        "foreign",
    ],
    &[
        "exporter",
        "propagators",
        "sampler",
        "env",
        "protocol",
        "endpoint",
        "tls",
        "resourceAttributes",
        "attributes",
        "addK8sUIDAttributes",
        "k8sMetadata",
        "serviceMetadata",
        "useLabelsForResourceAttributes",
        "resources",
        "resourceRequirements",
        "volumeLimitSize",
        "attrs",
        "image",
        "foreign",
    ],
    &["endpoint", "protocol", "tls", "includeUIDs", "enabled", "limits", "foreign"],
    &["secretName", "cpu", "foreign"],
];

fn value(level: usize) -> Union<proptest::strategy::BoxedStrategy<Value>> {
    let leaf = || {
        prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            select(&["", "grpc", "200Mi", "\"\\~/"][..]).prop_map(Value::from),
            Just(json!(null)),
            Just(json!([])),
            Just(json!({})),
            Just(json!([{"name": "A", "value": "1", "foreign": null}, "x"])),
        ]
        .boxed()
    };
    let Some(names) = NAMES.get(level) else { return Union::new([leaf()]) };
    let members = vec((select(*names), value(level + 1)), 0..6);
    let map = members.prop_map(|members| {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
    });
    Union::new_weighted(vec![(1, leaf()), (4, map.boxed())])
}

fn annotations() -> impl Strategy<Value = Value> {
    let texts = [
        r#"{"javaVolumeSizeLimit":"1Gi"}"#,
        r#"{"javaVolumeSizeLimit":"1Gi","javaEnv":[]}"#,
        r#"{"nginxAttrs":null,"goVolumeSizeLimit":{}}"#,
        "[1]",
        "{",
        "",
        r#"{"v1beta1":[]}"#,
        r#"{"v1alpha1":[{"path":["metadata","name"],"value":"other"}]}"#,
        r#"{"v1beta1":3,"replaced":"x"}"#,
    ];
    let names = [ALPHA_FIELDS, CONVERSION_ANNOTATION, "example.com/a"];
    prop_oneof![
        1 => Just(json!(null)),
        4 => vec((select(names.to_vec()), select(texts.to_vec())), 0..3).prop_map(|entries| {
            entries.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect::<Map<_, _>>().into()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_object_comes_back(spec in value(0), annotations in annotations(), version in select(&Version::ALL[..])) {
        let before = object(version, &spec, &annotations);
        let other = converted(&before, version.other());
        assert_eq!(other["apiVersion"], version.other().api_version());
        let after = converted(&other, version);
        assert_eq!(after, before, "by way of {other}");
        // What the conversion wrote stays as it is, too.
        assert_eq!(converted(&after, version.other()), other);
    }
}

#[test]
fn the_fields_of_v1alpha1_have_their_paths_in_v1beta1() {
    let alpha = object(
        Version::V1alpha1,
        &json!({
            "exporter": {"endpoint": "http://c:4317", "tls": {"ca_file": "ca.crt"}},
            "propagators": ["b3"], "sampler": {"argument": "0.5"}, "env": [{"name": "A", "value": "1"}],
            "resource": {"resourceAttributes": {"team": "a"}, "addK8sUIDAttributes": true},
            "selector": {}, "inject": ["java"], "imagePullPolicy": "Always",
            "java": {"image": "j:1", "resources": {"limits": {"cpu": "1"}}, "volumeLimitSize": "1Gi"},
            "nginx": {"resourceRequirements": {}, "attrs": [{"name": "A", "value": "b"}], "configFile": "/n"},
        }),
        &json!({}),
    );
    let beta = converted(&alpha, Version::V1beta1);
    assert_eq!(
        beta["spec"],
        json!({
            "envConfig": {
                "exporter": {"endpoint": "http://c:4317", "tls": {"ca_file": "ca.crt"}},
                "propagators": ["b3"], "sampler": {"argument": "0.5"},
            },
            "env": [{"name": "A", "value": "1"}],
            "resource": {"attributes": {"team": "a"}, "k8sMetadata": {"includeUIDs": true}},
            "selector": {}, "inject": ["java"], "imagePullPolicy": "Always",
            "java": {"image": "j:1", "resources": {"limits": {"cpu": "1"}}},
            "nginx": {"resources": {}, "configFile": "/n"},
        })
    );
    let fields = beta["metadata"]["annotations"][ALPHA_FIELDS].as_str().expect("an annotation");
    assert_eq!(
        serde_json::from_str::<Value>(fields).expect("JSON"),
        json!({"javaVolumeSizeLimit": "1Gi", "nginxAttrs": [{"name": "A", "value": "b"}]})
    );
    assert_eq!(converted(&beta, Version::V1alpha1), alpha);
}

#[test]
fn what_v1alpha1_has_no_field_for_survives_an_edit_of_the_rest() {
    let spec = json!({
        "envConfig": {
            "exporter": {"endpoint": "http://c:4318", "protocol": "http/protobuf"},
            "env": [{"name": "A", "value": "1"}],
        },
        "resource": {"k8sMetadata": {"enabled": false}, "serviceMetadata": {"enabled": false}},
    });
    let mut alpha = converted(&object(Version::V1beta1, &spec, &json!(null)), Version::V1alpha1);
    assert_eq!(alpha["spec"], json!({"exporter": {"endpoint": "http://c:4318"}, "resource": {}}));
    alpha["spec"]["exporter"]["endpoint"] = json!("http://d:4318");
    alpha["spec"]["sampler"] = json!({"type": "always_on"});
    alpha["spec"]["resource"] = json!({"resourceAttributes": {"team": "a"}});
    let mut expected = spec;
    expected["envConfig"]["exporter"]["endpoint"] = json!("http://d:4318");
    expected["envConfig"]["sampler"] = json!({"type": "always_on"});
    expected["resource"]["attributes"] = json!({"team": "a"});
    let beta = converted(&alpha, Version::V1beta1);
    assert_eq!((&beta["spec"], &beta["metadata"]["annotations"]), (&expected, &json!(null)));
}

#[test]
fn labels_as_attributes_have_another_meaning_than_service_metadata() {
    let alpha = object(
        Version::V1alpha1,
        &json!({"defaults": {"useLabelsForResourceAttributes": true}}),
        &json!({"a": "b"}),
    );
    let beta = converted(&alpha, Version::V1beta1);
    assert_eq!(beta["spec"], json!({}));
    assert_eq!(converted(&beta, Version::V1alpha1), alpha);
}

#[test]
fn an_annotation_of_no_conversion_changes_nothing_and_is_kept() {
    let entry = |path: Value, value: Value| json!({"v1beta1": [{"path": path, "value": value}]}).to_string();
    let long: Vec<_> = std::iter::once("spec").chain(std::iter::repeat_n("a", 100_000)).collect();
    for text in [
        "not JSON".to_owned(),
        "[".repeat(100_000),
        "x".repeat(1 << 20),
        entry(json!(["metadata", "name"]), json!("other")),
        entry(json!(["metadata", "annotations", "a"]), json!(5)),
        entry(json!(["apiVersion"]), json!("v1")),
        entry(json!([]), json!({})),
        entry(json!("spec"), json!({})),
        entry(json!(long), json!({})),
        json!({"v1beta1": {"spec": 1}}).to_string(),
        json!({"v1alpha1": [{"path": ["spec"]}]}).to_string(),
        json!({"v1beta1": [], "replaced": json!({"v1alpha1": [{"path": ["spec"]}]}).to_string()}).to_string(),
    ] {
        let spec = json!({"exporter": {"endpoint": "http://c:4317"}});
        let alpha = object(Version::V1alpha1, &spec, &json!({CONVERSION_ANNOTATION: text}));
        assert!(has_foreign_note(&alpha), "{text:.80}");
        let beta = converted(&alpha, Version::V1beta1);
        assert_eq!(beta["spec"], json!({"envConfig": spec}), "{text:.80}");
        assert_eq!(converted(&beta, Version::V1alpha1), alpha, "{text:.80}");
    }
}

#[test]
fn an_object_that_is_no_instrumentation_is_an_error() {
    for (object, expected) in [
        (json!({"kind": "Pod"}), r#"kind: "Pod" cannot be converted; valid: Instrumentation"#),
        (
            json!({"kind": "Instrumentation", "apiVersion": "opentelemetry.io/v1"}),
            "apiVersion: \"opentelemetry.io/v1\" is not known; \
             valid: opentelemetry.io/v1alpha1, opentelemetry.io/v1beta1",
        ),
        (
            json!({"kind": "Instrumentation", "apiVersion": "opentelemetry.io/v1beta1", "metadata": []}),
            "metadata has the wrong type; valid: an object",
        ),
    ] {
        assert_eq!(
            convert(&object, Version::V1alpha1).map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
    }
}
