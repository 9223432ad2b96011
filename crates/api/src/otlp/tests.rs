//! Tests of endpoints and protocols that match, and those that do not.

use super::*;

fn said(variables: &[(&'static str, &str)], default: Option<Protocol>) -> Vec<String> {
    let look = |name: &str| match variables.iter().find(|(own, _)| *own == name) {
        Some((_, "?")) => Variable::Hidden,
        Some((_, value)) => Variable::Value(value),
        None => Variable::Unset,
    };
    problems(look, Agent { default, only: None }).iter().map(ToString::to_string).collect()
}

#[test]
fn the_port_is_that_of_the_authority() {
    let default = Some(Protocol::Http);
    for (endpoint, is_wrong) in [
        ("http://c:4317", true),
        ("http://c:4317/v1?a=b:4318", true),
        ("http://c:4318/v1?a=b:4317", false),
        ("http://u:p@[::1]:4317/", true),
        ("http://$(OTEL_NODE_IP):4317", true),
        ("http://c:$(PORT)", false),
        ("http://c", false),
        ("unix:///run/4317", false),
        ("$(ENDPOINT):4317", false),
        ("", false),
    ] {
        assert_eq!(!said(&[(ENDPOINT, endpoint)], default).is_empty(), is_wrong, "{endpoint}");
        assert_eq!(said(&[(ENDPOINT, endpoint)], None), [""; 0], "{endpoint}");
    }
}

#[test]
fn the_message_distinguishes_default_and_configured_protocols() {
    let endpoint = (ENDPOINT, "http://c:4317");
    assert_eq!(
        said(&[endpoint], Some(Protocol::Http)),
        ["OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends http/protobuf by default; \
          set port 4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc"]
    );
    assert_eq!(
        said(&[(ENDPOINT, "http://c:4318"), (PROTOCOL, "grpc")], Some(Protocol::Http)),
        ["OTEL_EXPORTER_OTLP_ENDPOINT has port 4318, but OTEL_EXPORTER_OTLP_PROTOCOL is grpc; \
          set port 4317, or OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf"]
    );
    assert_eq!(said(&[endpoint, (PROTOCOL, "grpc")], Some(Protocol::Http)), [""; 0]);
    assert_eq!(said(&[endpoint], Some(Protocol::Grpc)), [""; 0]);
    assert_eq!(said(&[endpoint, (PROTOCOL, "?")], Some(Protocol::Http)), [""; 0]);
    assert_eq!(said(&[endpoint, (PROTOCOL, "$(P)")], Some(Protocol::Http)), [""; 0]);
    assert_eq!(said(&[(ENDPOINT, "?")], Some(Protocol::Http)), [""; 0]);
}

#[test]
fn each_signal_has_its_own_variables_and_is_checked_only_if_it_is_exported() {
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4317");
    let logs = ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc");
    let all = said(&[(ENDPOINT, "http://c:4318"), traces, logs], Some(Protocol::Http));
    let starts = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has port 4317, but this agent",
        "OTEL_EXPORTER_OTLP_ENDPOINT has port 4318, but OTEL_EXPORTER_OTLP_LOGS_PROTOCOL is grpc",
    ];
    assert_eq!(all.len(), starts.len(), "{all:?}");
    assert!(all.iter().zip(starts).all(|(one, start)| one.starts_with(start)), "{all:?}");
    let off = ("OTEL_TRACES_EXPORTER", "none");
    assert_eq!(said(&[traces, off], Some(Protocol::Http)), [""; 0]);
    assert_eq!(said(&[traces, ("OTEL_TRACES_EXPORTER", "console,otlp")], Some(Protocol::Http)).len(), 1);
}

#[test]
fn a_scheme_that_no_exporter_knows_is_reported() {
    let expected =
        "OTEL_EXPORTER_OTLP_ENDPOINT is \"htp://c:4318\", with an unknown scheme; set it to http://c:4318";
    assert_eq!(said(&[(ENDPOINT, "htp://u:p@c:4318/a")], None), [expected.to_owned()]);
    for known in ["https://c:4318", "unix:///run/otel.sock", "$(SCHEME)://c"] {
        assert_eq!(said(&[(ENDPOINT, known)], None), [""; 0], "{known}");
    }
}

#[test]
fn the_message_shows_no_secret_of_an_endpoint_without_a_scheme() {
    for (endpoint, host) in [("c:4317", "c:4317"), ("u:p@c:4317/token", "c:4317"), ("c", "c")] {
        let expected =
            format!("OTEL_EXPORTER_OTLP_ENDPOINT is \"{host}\", without a scheme; set it to http://{host}");
        assert_eq!(said(&[(ENDPOINT, endpoint)], None), [expected]);
    }
}

#[test]
fn the_advice_for_an_agent_with_one_protocol_is_never_the_other_one() {
    let grpc = Agent { default: Some(Protocol::Grpc), only: Some(Protocol::Grpc) };
    let said = |endpoint| problem_of_directive("Endpoint", endpoint, grpc).map(|problem| problem.to_string());
    let expected = "Endpoint has port 4318, but this agent sends grpc only; set port 4317";
    assert_eq!(said("http://c:4318").as_deref(), Some(expected));
    assert_eq!(said("c:4318").as_deref(), Some(expected));
    assert_eq!(said("c:4317"), None);
    let http = Agent { default: Some(Protocol::Http), only: Some(Protocol::Http) };
    let look = |name| match name {
        ENDPOINT => Variable::Value("http://c:4318"),
        PROTOCOL => Variable::Value("grpc"),
        _ => Variable::Unset,
    };
    let expected = "OTEL_EXPORTER_OTLP_ENDPOINT has port 4318, but OTEL_EXPORTER_OTLP_PROTOCOL is grpc; \
                    set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf";
    assert_eq!(problems(look, http)[0].to_string(), expected);
}
