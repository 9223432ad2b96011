//! What the variables of the OTLP exporter mean together: whether telemetry would arrive by them.
//!
//! A pod's containers and an Instrumentation are looked at by the same rules.
//! Values of variables are not repeated but for host and port: the rest may be secret.

use std::fmt;

/// The variable of the endpoint of all signals.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// How telemetry is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `grpc`.
    Grpc,
    /// `http/protobuf` or `http/json`.
    Http,
}

/// A variable, as far as it can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'v> {
    /// It is not set.
    Unset,
    /// It has a value.
    Value(&'v str),
    /// It comes from elsewhere.
    Hidden,
}

/// Why telemetry will not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The endpoint is no URL.
    NoScheme {
        /// Where the endpoint is set.
        variable: &'static str,
        /// Its host and port.
        host: String,
    },
    /// The endpoint has the port of the other protocol.
    Port {
        /// Where the endpoint is set.
        variable: &'static str,
        /// The protocol that is used.
        protocol: Protocol,
        /// Where the protocol is set; none where it is the agent's default.
        set_by: Option<&'static str>,
    },
}

/// The variables of one signal.
struct Signal {
    exporter: &'static str,
    endpoint: &'static str,
    protocol: &'static str,
}

const SIGNALS: [Signal; 3] = [
    Signal {
        exporter: "OTEL_TRACES_EXPORTER",
        endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    },
    Signal {
        exporter: "OTEL_METRICS_EXPORTER",
        endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    },
    Signal {
        exporter: "OTEL_LOGS_EXPORTER",
        endpoint: "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
        protocol: "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
    },
];

/// The variable of the protocol of all signals.
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

/// What is wrong with the variables that `look` shows, each thing once. `default` is the
/// protocol of an agent that is told none, where it is known.
pub fn problems<'v>(look: impl Fn(&'static str) -> Seen<'v>, default: Option<Protocol>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for signal in SIGNALS.iter().filter(|signal| is_sent(look(signal.exporter))) {
        // An empty value is as good as none.
        let first = |names: [&'static str; 2]| {
            let seen = names.map(|name| (name, look(name)));
            seen.into_iter().find(|(_, seen)| !matches!(seen, Seen::Unset | Seen::Value("")))
        };
        let Some((variable, Seen::Value(endpoint))) = first([signal.endpoint, ENDPOINT]) else { continue };
        let protocol = match first([signal.protocol, PROTOCOL]) {
            None => default.map(|protocol| (protocol, None)),
            Some((name, Seen::Value(value))) => Protocol::of(value).map(|protocol| (protocol, Some(name))),
            Some(_) => None,
        };
        let problem = problem(variable, endpoint, protocol);
        problems.extend(problem.filter(|problem| !problems.contains(problem)));
    }
    problems
}

/// Whether OTLP is among a signal's exporters; it is what agents take where nothing is said.
fn is_sent(exporters: Seen<'_>) -> bool {
    match exporters {
        Seen::Unset | Seen::Value("") => true,
        Seen::Value(list) => list.split(',').any(|one| one.trim() == "otlp"),
        Seen::Hidden => false,
    }
}

/// What is wrong with an endpoint beside a protocol.
fn problem(
    variable: &'static str,
    endpoint: &str,
    protocol: Option<(Protocol, Option<&'static str>)>,
) -> Option<Problem> {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        // A reference may bring the scheme.
        let host = host(endpoint);
        return (!host.starts_with("$(")).then(|| Problem::NoScheme { variable, host: host.to_owned() });
    };
    let (protocol, set_by) = protocol?;
    let port = host(rest).rsplit_once(':').map(|(_, port)| port)?;
    let is_url = ["http", "https"].contains(&scheme);
    (is_url && port == protocol.other().port()).then_some(Problem::Port { variable, protocol, set_by })
}

/// Host and port of a URL without its scheme.
fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

impl Protocol {
    /// The protocol of a variable's value, if there is such a one.
    fn of(value: &str) -> Option<Self> {
        match value {
            "grpc" => Some(Self::Grpc),
            "http/protobuf" | "http/json" => Some(Self::Http),
            _ => None,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Grpc => Self::Http,
            Self::Http => Self::Grpc,
        }
    }

    /// Where collectors take it.
    fn port(self) -> &'static str {
        match self {
            Self::Grpc => "4317",
            Self::Http => "4318",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "grpc",
            Self::Http => "http/protobuf",
        })
    }
}

impl Problem {
    /// The stable code, in camel case.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoScheme { .. } => "EndpointWithoutScheme",
            Self::Port { .. } => "PortContradictsProtocol",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme { variable, host } => {
                write!(f, "{variable} is \"{host}\", without a scheme; set it to http://{host}")
            }
            Self::Port { variable, protocol, set_by } => {
                let (other, right) = (protocol.other(), protocol.port());
                let wrong = other.port();
                match set_by {
                    Some(name) => write!(f, "{variable} has port {wrong}, but {name} is {protocol}")?,
                    None => {
                        write!(f, "{variable} has port {wrong}, but this agent sends {protocol} by default")?
                    }
                }
                write!(f, "; set port {right}, or {PROTOCOL} to {other}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(variables: &[(&'static str, &str)], default: Option<Protocol>) -> Vec<String> {
        let look = |name: &str| match variables.iter().find(|(own, _)| *own == name) {
            Some((_, "?")) => Seen::Hidden,
            Some((_, value)) => Seen::Value(value),
            None => Seen::Unset,
        };
        problems(look, default).iter().map(ToString::to_string).collect()
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
    fn a_protocol_by_default_and_one_that_is_set_are_told_apart() {
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
    fn each_signal_has_its_own_variables_and_counts_only_if_it_is_sent() {
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
    fn an_endpoint_without_a_scheme_is_shown_without_what_may_be_secret() {
        for (endpoint, host) in [("c:4317", "c:4317"), ("u:p@c:4317/token", "c:4317"), ("c", "c")] {
            let expected = format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT is \"{host}\", without a scheme; set it to http://{host}"
            );
            assert_eq!(said(&[(ENDPOINT, endpoint)], None), [expected]);
        }
    }
}
