//! Checks the variables of the OTLP exporter together: whether telemetry would reach the collector.
//!
//! The same rules apply to the containers of a pod and to an Instrumentation.
//! Messages show only host and port of a value: the rest may be secret.

use std::fmt;

/// The variable that sets the endpoint of all signals.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The schemes of endpoints that exporters know, those of gRPC names among them.
const SCHEMES: [&str; 8] = ["http", "https", "grpc", "grpcs", "unix", "dns", "passthrough", "xds"];

/// The protocol of the exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `grpc`.
    Grpc,
    /// `http/protobuf` or `http/json`.
    Http,
}

/// What is known about the exporter of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The default protocol.
    pub default: Option<Protocol>,
    /// The only protocol that it supports, if it supports only one.
    pub only: Option<Protocol>,
}

impl Agent {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { default: None, only: None };
}

/// A variable, as far as its value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable<'v> {
    /// It is not set.
    Unset,
    /// It has a value.
    Value(&'v str),
    /// It has a source (`valueFrom`), so its value is unknown.
    Hidden,
}

/// Why telemetry will not reach the collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The endpoint is not a URL, or has a scheme that no exporter knows.
    NoScheme {
        /// The scheme, if it has one.
        scheme: Option<String>,
        /// The variable or directive that sets the endpoint.
        variable: &'static str,
        /// Host and port of the endpoint.
        host: String,
    },
    /// The endpoint has the port of the other protocol.
    Port {
        /// The variable or directive that sets the endpoint.
        variable: &'static str,
        /// The protocol that is used.
        protocol: Protocol,
        /// The variable that sets the protocol; `None` if it is the agent's default.
        set_by: Option<&'static str>,
        /// The only protocol that the agent has, if it has only one.
        only: Option<Protocol>,
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

/// The variable that sets the protocol of all signals.
pub const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

/// The valid values of the field `protocol`.
pub const PROTOCOLS: [&str; 3] = ["grpc", "http/protobuf", "http/json"];

/// Where an agent sends one or several signals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The variable with the URL; `None` if none is set and the agent sends to its own host.
    pub variable: Option<&'static str>,
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// The host, a name or an address; empty if the variable refers to another one for it.
    pub host: String,
    /// The port; `None` if the variable refers to another one for it.
    pub port: Option<u16>,
    /// The protocol; `None` if it is not known.
    pub protocol: Option<Protocol>,
}

/// What a variable, or the agent's default, says of a signal.
struct Sent<'v> {
    /// The variable with the endpoint, and its value; `None` if it is not set.
    endpoint: Option<(&'static str, &'v str)>,
    /// The protocol, and the variable that sets it; `None` if it is not known.
    protocol: Option<(Protocol, Option<&'static str>)>,
}

/// Returns what is sent by OTLP with the variables that `look` returns, as far as it is known where to.
fn sent<'v>(look: &impl Fn(&'static str) -> Variable<'v>, agent: Agent) -> impl Iterator<Item = Sent<'v>> {
    SIGNALS.iter().filter(|signal| is_sent(look(signal.exporter))).filter_map(move |signal| {
        // An empty value is treated as not set.
        let first = |names: [&'static str; 2]| {
            let seen = names.map(|name| (name, look(name)));
            seen.into_iter().find(|(_, seen)| !matches!(seen, Variable::Unset | Variable::Value("")))
        };
        let endpoint = match first([signal.endpoint, ENDPOINT]) {
            None => None,
            Some((variable, Variable::Value(endpoint))) => Some((variable, endpoint)),
            Some(_) => return None,
        };
        let protocol = match first([signal.protocol, PROTOCOL]) {
            None => agent.default.map(|protocol| (protocol, None)),
            Some((name, Variable::Value(value))) => {
                Protocol::of(value).map(|protocol| (protocol, Some(name)))
            }
            Some(_) => None,
        };
        Some(Sent { endpoint, protocol })
    })
}

/// Returns the problems of the variables that `look` returns, each once.
pub fn problems<'v>(look: impl Fn(&'static str) -> Variable<'v>, agent: Agent) -> Vec<Problem> {
    let mut problems = Vec::new();
    for Sent { endpoint, protocol } in sent(&look, agent) {
        let Some((variable, endpoint)) = endpoint else { continue };
        let problem = problem(variable, endpoint, protocol, agent.only);
        problems.extend(problem.filter(|problem| !problems.contains(problem)));
    }
    problems
}

/// Returns the endpoints of the variables that `look` returns, each once, as far as they are URLs of HTTP.
pub fn endpoints<'v>(look: impl Fn(&'static str) -> Variable<'v>, agent: Agent) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for Sent { endpoint, protocol } in sent(&look, agent) {
        let protocol = protocol.map(|(protocol, _)| protocol);
        let endpoint = match endpoint {
            Some((variable, url)) => Endpoint::of(variable, url, protocol),
            None => Some(Endpoint {
                variable: None,
                is_tls: false,
                host: "localhost".to_owned(),
                port: protocol.and_then(|protocol| protocol.port().parse().ok()),
                protocol,
            }),
        };
        endpoints.extend(endpoint.filter(|endpoint| !endpoints.contains(endpoint)));
    }
    endpoints
}

impl Endpoint {
    /// Parses a URL. `None` if it has another scheme, or none.
    fn of(variable: &'static str, url: &str, protocol: Option<Protocol>) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (is_tls, default) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        let authority = host(rest);
        // The colons of an IPv6 address are within brackets.
        let split = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let (host, port) = split.map_or((authority, Some(default)), |(host, port)| (host, port.parse().ok()));
        let is_known = !host.contains("$(");
        let host = if is_known { host.trim_matches(['[', ']']) } else { "" };
        Some(Self { variable: Some(variable), is_tls, host: host.to_owned(), port, protocol })
    }
}

/// Returns the problem of the endpoint of a directive, which needs no scheme.
pub fn problem_of_directive(directive: &'static str, endpoint: &str, agent: Agent) -> Option<Problem> {
    let protocol = agent.default.map(|protocol| (protocol, None));
    let scheme = if endpoint.contains("://") { "" } else { "http://" };
    problem(directive, &[scheme, endpoint].concat(), protocol, agent.only)
}

/// Whether OTLP is among the exporters of a signal; it is the default of agents.
fn is_sent(exporters: Variable<'_>) -> bool {
    match exporters {
        Variable::Unset | Variable::Value("") => true,
        Variable::Value(list) => list.split(',').any(|one| one.trim() == "otlp"),
        Variable::Hidden => false,
    }
}

/// Returns the problem of an endpoint with a protocol.
fn problem(
    variable: &'static str,
    endpoint: &str,
    protocol: Option<(Protocol, Option<&'static str>)>,
    only: Option<Protocol>,
) -> Option<Problem> {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        // A reference may contain the scheme.
        let host = host(endpoint);
        return (!host.starts_with("$(")).then(|| Problem::NoScheme {
            scheme: None,
            variable,
            host: host.to_owned(),
        });
    };
    if !SCHEMES.contains(&scheme) && !scheme.contains("$(") {
        let (scheme, host) = (Some(scheme.to_owned()), host(rest).to_owned());
        return Some(Problem::NoScheme { scheme, variable, host });
    }
    let (protocol, set_by) = protocol?;
    let port = host(rest).rsplit_once(':').map(|(_, port)| port)?;
    let is_url = ["http", "https"].contains(&scheme);
    (is_url && port == protocol.other().port()).then_some(Problem::Port { variable, protocol, set_by, only })
}

/// Host and port of a URL without its scheme.
fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

impl Protocol {
    /// The protocol of a variable's value, if it is valid.
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

    /// Whether a port is the usual one of the other protocol.
    pub fn contradicts(self, port: u16) -> bool {
        self.other().port().parse() == Ok(port)
    }

    /// The usual port of collectors.
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
    /// The variable or directive that sets the endpoint.
    pub fn variable(&self) -> &'static str {
        match self {
            Self::NoScheme { variable, .. } | Self::Port { variable, .. } => variable,
        }
    }

    /// Says what is wrong with the endpoint, and what to do. `who` are the names of the agents that send to
    /// it; without names it is "this agent".
    pub fn sentence(&self, who: &[&str]) -> String {
        let (protocol, set_by, only) = match self {
            Self::NoScheme { scheme: None, host, .. } => {
                return format!("is \"{host}\", without a scheme; set it to http://{host}");
            }
            Self::NoScheme { scheme: Some(scheme), host, .. } => {
                return format!("is \"{scheme}://{host}\", with an unknown scheme; set it to http://{host}");
            }
            Self::Port { protocol, set_by, only, .. } => (*protocol, *set_by, *only),
        };
        let sender = match who {
            [] => "this agent sends".to_owned(),
            [one] => format!("{one} sends"),
            several => format!("{} send", several.join(", ")),
        };
        let (other, right) = (protocol.other(), protocol.port());
        let why = match set_by {
            Some(name) => format!("{name} is {protocol}"),
            None if only == Some(protocol) => format!("{sender} {protocol} only"),
            None => format!("{sender} {protocol} by default"),
        };
        let advice = match only {
            None => format!("set port {right}, or {PROTOCOL} to {other}"),
            Some(only) if only == protocol => format!("set port {right}"),
            Some(only) => format!("set {} to {only}", set_by.unwrap_or(PROTOCOL)),
        };
        format!("has port {}, but {why}; {advice}", other.port())
    }

    /// Whether two agents have the same problem, even if the advice differs.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Port { variable, protocol, set_by, .. },
                Self::Port { variable: v, protocol: p, set_by: s, .. },
            ) => (variable, protocol, set_by) == (v, p, s),
            _ => self == other,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.variable(), self.sentence(&[]))
    }
}

#[cfg(test)]
mod tests;
