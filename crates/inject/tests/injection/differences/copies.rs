//! What init containers copy, and from which folder of an image an agent is loaded.

use otel_webhook_testkit::{
    objects::asking,
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

const AGENT: &str = "opentelemetry-auto-instrumentation";
const DIGEST: &str = "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

/// A pod with an agent from an image.
fn injected(language: &str, image: &str) -> Injected {
    let injected = with(json!({language: {"image": image}})).inject(&asking(&[language], json!({})));
    assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
    injected
}

/// The options of the command of an init container, and the codes of the warnings.
fn copied(injected: &Injected, container: &str) -> (Vec<String>, Vec<&'static str>) {
    let command = &injected.container(container).expect("the init container")["command"];
    let words = command.as_array().expect("a command").iter().filter_map(Value::as_str);
    let options = words.filter(|word| word.starts_with('-')).map(str::to_owned).collect();
    (options, injected.outcome.told().iter().map(otel_webhook_inject::Warning::code).collect())
}

#[test]
fn d40_a_copy_replaces_what_it_copied_before_if_the_image_has_the_operators_name() {
    for (language, forced, operators) in
        [("java", "-f", ""), ("nodejs", "-rf", "-r"), ("python", "-rf", "-r"), ("dotnet", "-rf", "-r")]
    {
        let name = format!("autoinstrumentation-{language}");
        for image in [
            format!("{name}:9"),
            format!("mirror.example.com:5000/agents/{name}:9"),
            format!("registry.example.com/{name}@{DIGEST}"),
        ] {
            let (options, warnings) = copied(&injected(language, &image), &format!("{AGENT}-{language}"));
            assert_eq!((options, warnings), (vec![forced.to_owned()], vec![]), "{image}");
        }
        for image in [
            format!("registry.example.com/adot-{name}:9"),
            format!("registry.example.com/{name}-own:9"),
            format!("{name}/own:9"),
            "registry.example.com/autoinstrumentation-ruby:9".to_owned(),
        ] {
            let (options, warnings) = copied(&injected(language, &image), &format!("{AGENT}-{language}"));
            let expected: Vec<_> = [operators].into_iter().filter(|word| !word.is_empty()).collect();
            assert_eq!(options, expected, "{image}");
            // A single file has no links.
            let expected: &[&str] = if language == "java" { &[] } else { &["CopyMayFailAgain"] };
            assert_eq!(warnings, expected, "{image}");
        }
    }
}

#[test]
fn d40_the_warning_says_what_to_do_and_is_for_copies_alone() {
    let injected = |delivery: &str| {
        let spec = json!({"delivery": delivery, "nodejs": {"image": "example.com/own:1"}});
        with(spec).inject(&asking(&["nodejs"], json!({}))).outcome.warnings()
    };
    assert_eq!(
        injected("initContainer"),
        [
            "nodejs in app: after a restart of the node the pod may not start: cp -r of example.com/own:1 may not \
          replace the links that it copied before; if its cp knows -f, give the repository the name of the \
          operator's, such as autoinstrumentation-nodejs; image volumes copy nothing"
        ]
    );
    assert_eq!(injected("imageVolume"), [""; 0]);
}

#[test]
fn d40_an_extension_is_copied_by_the_same_rule() {
    let extensions = json!([{"image": "extension:1", "dir": "/e"}, {"image": "own/autoinstrumentation-java:1", "dir": "/e"}]);
    let injected = with(json!({"java": {"extensions": extensions}})).inject(&asking(&["java"], json!({})));
    let options = |index: usize| copied(&injected, &format!("{AGENT}-extension-{index}"));
    assert_eq!(options(0), (vec!["-r".to_owned()], vec![]));
    assert_eq!(options(1), (vec!["-rf".to_owned()], vec![]));
}

/// The clone of Apache HTTPD runs the operator's command in the image of the application.
#[test]
fn d40_links_in_the_configuration_of_a_web_server_are_warned_of() {
    let conf = "/usr/local/apache2/conf";
    for (language, mount, is_warned) in [
        ("apache-httpd", json!({"name": "c", "mountPath": conf}), true),
        ("apache-httpd", json!({"name": "c", "mountPath": format!("{conf}/extra")}), true),
        (
            "apache-httpd",
            json!({"name": "c", "mountPath": format!("{conf}/a.conf"), "subPath": "a.conf"}),
            false,
        ),
        ("apache-httpd", json!({"name": "c", "mountPath": format!("{conf}-other")}), false),
        ("nginx", json!({"name": "c", "mountPath": "/etc/nginx"}), false),
    ] {
        let injected = with(json!({})).inject(&asking(&[language], json!({"volumeMounts": [mount]})));
        assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
        let codes: Vec<_> = injected.outcome.told().iter().map(otel_webhook_inject::Warning::code).collect();
        let expected: &[&str] = if is_warned { &["CopyMayFailAgain"] } else { &[] };
        assert_eq!(codes, expected, "{language} {mount}");
    }
}

#[test]
fn d43_older_images_for_dotnet_have_other_folders() {
    let folder = |image: &str, platform: &str| {
        let mut pod = asking(&["dotnet"], json!({}));
        pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/otel-dotnet-auto-runtime"] =
            json!(platform);
        let injected = with(json!({"dotnet": {"image": image}})).inject(&pod);
        let path = injected.value("app", "CORECLR_PROFILER_PATH").expect("the profiler").to_owned();
        let rest = path.strip_prefix("/otel-auto-instrumentation-dotnet/").expect("in the agent's folder");
        rest.strip_suffix("/OpenTelemetry.AutoInstrumentation.Native.so").expect("the library").to_owned()
    };
    for (image, glibc, musl) in [
        ("example.com/autoinstrumentation-dotnet:1.15.0", "linux-x64", "linux-musl-x64"),
        ("autoinstrumentation-dotnet:1.2.0", "linux-x64", "linux-musl-x64"),
        ("example.com/autoinstrumentation-dotnet:1.16.0", "linux", "linux-musl"),
        ("autoinstrumentation-dotnet:latest", "linux", "linux-musl"),
        ("example.com/own:1.2.0", "linux", "linux-musl"),
    ] {
        assert_eq!(folder(image, "linux-x64"), glibc, "{image}");
        assert_eq!(folder(image, "linux-musl-x64"), musl, "{image}");
    }
}
