//! Directives of web servers, with values that users set.

use otel_webhook_testkit::{
    objects::asking,
    surroundings::{Injected, with},
};
use serde_json::{Value, json};

/// Each server: language, field, variable with the configuration, prefix and end of directives.
const SERVERS: [(&str, &str, &str, &str, &str); 2] = [
    ("apache-httpd", "apacheHttpd", "OTEL_APACHE_AGENT_CONF", "ApacheModule", ""),
    ("nginx", "nginx", "OTEL_NGINX_AGENT_CONF", "NginxModule", ";"),
];

/// A pod with this name of its service.
fn named(language: &str, service: &str) -> Value {
    let mut pod = asking(&[language], json!({}));
    pod["metadata"]["annotations"]["resource.opentelemetry.io/service.name"] = json!(service);
    pod
}

/// The lines of the module's configuration.
fn lines(injected: &Injected, variable: &str) -> Vec<String> {
    let attach = ["otel-agent-attach-apache", "otel-agent-attach-nginx"];
    let attach = attach.into_iter().find(|name| injected.container(name).is_some()).expect("injected");
    injected.value(attach, variable).expect("a value").lines().map(str::to_owned).collect()
}

#[test]
fn a_value_is_one_argument_of_its_directive() {
    for (language, field, variable, prefix, end) in SERVERS {
        let attrs = json!([{"name": format!("{prefix}OtelExporterOtlpHeaders"), "value": "a=\"b c\"\\"},
            {"name": "Other", "value": "one 'two three'"}]);
        let plain = with(json!({})).inject(&named(language, "web"));
        let quoted = with(json!({field: {"attrs": attrs}})).inject(&named(language, "a \"b\" c"));
        let expected = [
            (&plain, format!("{prefix}ServiceName web{end}")),
            (&quoted, format!("{prefix}ServiceName \"a \\\"b\\\" c\"{end}")),
            (&quoted, format!("{prefix}OtelExporterOtlpHeaders \"a=\\\"b c\\\"\\\\\"{end}")),
            (&quoted, format!("Other one 'two three'{end}")),
        ];
        for (injected, line) in expected {
            let found = lines(injected, variable);
            assert!(found.contains(&line), "{line} is not in {found:?}");
        }
    }
    let ended = with(json!({})).inject(&named("nginx", "a; load_module b.so"));
    let line = "NginxModuleServiceName \"a; load_module b.so\";".to_owned();
    assert!(lines(&ended, "OTEL_NGINX_AGENT_CONF").contains(&line));
}

#[test]
fn a_control_character_skips_the_language_and_the_reason_names_the_field() {
    let problem = "has a control character in its value; valid: one line of text";
    for (language, field, _, prefix, _) in SERVERS {
        let attrs = json!([{"name": "A", "value": "b"}, {"name": "Own", "value": "a\nLoadModule b"}]);
        let endpoint = json!({"exporter": {"endpoint": "http://c:4317\nA"}});
        for (spec, service, sentence) in [
            (
                json!({}),
                "web\nLoadModule a b",
                format!("the name of the service: the directive \"{prefix}ServiceName\" {problem}"),
            ),
            (
                endpoint,
                "web",
                format!("spec.exporter.endpoint: the directive \"{prefix}OtelExporterEndpoint\" {problem}"),
            ),
        ] {
            let injected = with(spec).inject(&named(language, service));
            assert_eq!(injected.codes(), [format!("{language}/app: DirectiveInvalid")]);
            assert_eq!(injected.outcome.warnings(), [format!("{language} in app: {sentence}")]);
            assert!(injected.is_unchanged());
        }
        let injected = with(json!({field: {"attrs": attrs}})).inject(&named(language, "web"));
        assert!(injected.is_unchanged());
        let warnings = injected.outcome.warnings();
        assert!(
            warnings[0].contains(&format!("spec.{field}.attrs[1].value: has a control character")),
            "{warnings:?}"
        );
    }
}

#[test]
fn the_next_container_is_used_if_the_first_has_a_value_that_cannot_be_written() {
    let mut pod = asking(&["nginx"], json!({}));
    // Without any owner and name, the service has the name of its container.
    pod["metadata"].as_object_mut().expect("an object").remove("generateName");
    pod["spec"]["containers"][0]["name"] = json!("a\u{1}b");
    pod["spec"]["containers"].as_array_mut().expect("a list").push(json!({"name": "web", "image": "web:1"}));
    pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/container-names"] = json!("a\u{1}b,web");
    let injected = with(json!({})).inject(&pod);
    assert_eq!(injected.codes(), ["nginx/a\u{1}b: DirectiveInvalid", "nginx/web: Injected"]);
    assert!(injected.container("web").expect("it").to_string().contains("otel-nginx-conf-dir"));
}
