//! Resource attributes as they are written, and what agents do not read of them.

use otel_webhook_testkit::{
    objects::asking,
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SIDECAR: &str = "opentelemetry-auto-instrumentation";

/// An Instrumentation with these attributes.
fn of_resource(attributes: Value) -> Value {
    json!({"resource": {"resourceAttributes": attributes}})
}

/// A pod that asks for a language and has an annotation for a resource attribute.
fn annotated(language: &str, key: &str, value: &str) -> Value {
    let mut pod = asking(&[language], json!({}));
    pod["metadata"]["annotations"][format!("resource.opentelemetry.io/{key}")] = json!(value);
    pod
}

fn own(value: &str) -> Value {
    json!({"env": [{"name": ATTRIBUTES, "value": value}]})
}

/// The codes of the warnings.
fn warned(injected: &Injected) -> Vec<&'static str> {
    injected.outcome.told().iter().map(otel_webhook_inject::Warning::code).collect()
}

#[test]
fn d34_a_value_makes_no_other_attribute() {
    let hostile = "a,service.namespace=other,b=100%";
    let encoded = "a%2Cservice.namespace%3Dother%2Cb%3D100%25";
    for (language, container) in [
        ("java", "app"),
        ("nodejs", "app"),
        ("python", "app"),
        ("dotnet", "app"),
        ("sdk", "app"),
        ("go", SIDECAR),
    ] {
        let by_resource = with(of_resource(json!({"team": hostile}))).inject(&asking(&[language], json!({})));
        let by_annotation = with(json!({})).inject(&annotated(language, "team", hostile));
        for injected in [by_resource, by_annotation] {
            assert_eq!(injected.attribute(container, "team"), Some(encoded), "{language}");
            assert_eq!(injected.attribute(container, "service.namespace"), Some("shop"), "{language}");
            assert_eq!(injected.outcome.warnings(), [""; 0], "{language}");
        }
    }
    for key in ["service.version", "service.namespace", "service.instance.id"] {
        let injected = with(json!({})).inject(&annotated("java", key, "1,2"));
        assert_eq!(injected.attribute("app", key), Some("1%2C2"), "{key}");
    }
}

#[test]
fn d34_nothing_is_encoded_twice_and_references_stay() {
    let spec = of_resource(json!({"a": "x%2Cy", "b": "$(TEAM),$(OTEL_NODE_IP)"}));
    let injected = with(spec).inject(&asking(&["java", "python"], json!({})));
    assert_eq!(injected.attribute("app", "a"), Some("x%2Cy"));
    assert_eq!(injected.attribute("app", "b"), Some("$(TEAM)%2C$(OTEL_NODE_IP)"));
    let id = "shop.$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME).app";
    assert_eq!(injected.attribute("app", "service.instance.id"), Some(id));
}

#[test]
fn d34_the_containers_own_value_stays() {
    let value = "team=a=b,x=100%,y=%2C";
    let common = json!({"env": [{"name": ATTRIBUTES, "value": value}], "resource": {"resourceAttributes": {"team": ","}}});
    for injected in [
        with(of_resource(json!({"team": ","}))).inject(&asking(&["java"], own(value))),
        with(common).inject(&asking(&["java", "sdk"], json!({}))),
    ] {
        let written = injected.value("app", ATTRIBUTES).expect("a value");
        assert!(written.starts_with(&format!("{value},k8s.container.name=app,")), "{written}");
    }
}

#[test]
fn d34_web_servers_do_not_decode() {
    for language in ["apache-httpd", "nginx"] {
        let injected =
            with(of_resource(json!({"a": "b=c%", "d": "e,f"}))).inject(&asking(&[language], json!({})));
        let written = injected.value("app", ATTRIBUTES).expect("a value");
        assert!(written.starts_with("a=b=c%,d=e,f,k8s."), "{written}");
        let sentence = format!(
            "{language} in app: the value of the resource attribute \"d\" has a comma, which this agent takes for \
             the end of the value; remove it"
        );
        assert_eq!(
            (warned(&injected), injected.outcome.warnings()),
            (vec!["AttributeSplit"], vec![sentence])
        );
    }
}

#[test]
fn d34_a_key_that_cannot_be_written_is_skipped_with_a_warning() {
    let spec = of_resource(json!({"a,service.name": "x", "b=c": "y", "d\n": "z", "": "e", "team": "a"}));
    let injected = with(spec).inject(&asking(&["java"], json!({})));
    let written = injected.value("app", ATTRIBUTES).expect("a value");
    let keys: Vec<_> = written.split(',').map(|pair| pair.split_once('=').expect("a pair").0).collect();
    assert!(keys.contains(&"team"), "{written}");
    assert!(
        keys.iter().all(|key| ["k8s.", "service.", "team"].iter().any(|own| key.starts_with(own))),
        "{written}"
    );
    assert!(!keys.contains(&"service.name"), "{written}");
    let sentence = "java in app: the resource attribute \"\" is skipped (and 3 more): its key is empty or has \",\", \
                    \"=\" or a control character, so that it cannot be written; rename it";
    assert_eq!(
        (warned(&injected), injected.outcome.warnings()),
        (vec!["AttributeSkipped"], vec![sentence.to_owned()])
    );
}

#[test]
fn d34_what_nodejs_discards_is_warned_of() {
    let start = "nodejs in app: this agent discards all resource attributes for one error in OTEL_RESOURCE_ATTRIBUTES: ";
    for (value, problem) in [
        ("team=a=b", "the value of \"team\" has a \"=\" that is not encoded; write %3D".to_owned()),
        (
            "x=1,team=100%",
            "the value of \"team\" has an escape that cannot be decoded; write %25 for a %".to_owned(),
        ),
        (
            "team=%ff",
            "the value of \"team\" has an escape that cannot be decoded; write %25 for a %".to_owned(),
        ),
        ("team", "the entry \"team\" has no \"=\"; set it to key=value".to_owned()),
        (
            &format!("team={}", "a".repeat(256)),
            "the value of \"team\" has 256 characters; valid: at most 255".to_owned(),
        ),
    ] {
        let injected = with(json!({})).inject(&asking(&["nodejs"], own(value)));
        assert_eq!(injected.outcome.warnings(), [format!("{start}{problem}")]);
        assert_eq!(warned(&injected), ["AttributesDiscarded"]);
        assert_eq!(
            with(json!({})).inject(&asking(&["java"], own(value))).outcome.warnings(),
            [""; 0],
            "{value}"
        );
    }
    for value in [",team=a%2C,", "team=%C3%BC", &format!("team={}", "%2C".repeat(255)), "team=$(TEAM)"] {
        assert_eq!(
            with(json!({})).inject(&asking(&["nodejs"], own(value))).outcome.warnings(),
            [""; 0],
            "{value}"
        );
    }
    let hidden =
        json!({"env": [{"name": ATTRIBUTES, "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]});
    assert_eq!(with(json!({})).inject(&asking(&["nodejs"], hidden)).outcome.warnings(), [""; 0]);
}

#[test]
fn d34_the_instance_id_counts_with_the_pods_name() {
    let problem = |name: &str| {
        let mut pod = asking(&["nodejs"], json!({}));
        pod["metadata"]["name"] = json!(name);
        with(json!({})).inject(&pod).outcome.warnings()
    };
    // "shop." and ".app" are nine characters.
    assert_eq!(problem(&"p".repeat(246)), [""; 0]);
    let [warning] = &problem(&"p".repeat(247))[..] else { panic!("one warning") };
    assert!(
        warning.ends_with("the value of \"service.instance.id\" has 256 characters; valid: at most 255"),
        "{warning}"
    );
}

#[test]
fn d34_what_older_images_for_dotnet_do_not_decode_is_warned_of() {
    let image = |tag: &str| format!("mirror.example.com/autoinstrumentation-dotnet:{tag}");
    for (image, value, is_warned) in [
        (image("1.13.0"), "a,b", true),
        (image("1.13.0"), "plain", false),
        (image("1.14.0"), "a,b", false),
        (image("latest"), "a,b", false),
        ("example.com/own:1.0.0".to_owned(), "a,b", false),
    ] {
        let mut spec = of_resource(json!({"team": value}));
        spec["dotnet"] = json!({"image": image});
        let injected = with(spec).inject(&asking(&["dotnet"], json!({})));
        let sentence = format!(
            "dotnet in app: {image} does not decode resource attributes, so that escapes such as %2C stay in the \
             value of \"team\"; use version 1.14.0 or newer"
        );
        let told = injected.outcome.told();
        let of_attributes = told.iter().filter(|one| one.code() == "AttributeNotDecoded");
        let expected: Vec<_> = is_warned.then_some(sentence).into_iter().collect();
        assert_eq!(of_attributes.map(ToString::to_string).collect::<Vec<_>>(), expected);
    }
}
