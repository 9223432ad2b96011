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

/// What is known of how an agent exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The protocol that it takes where nothing is said.
    pub default: Option<Protocol>,
    /// The only protocol that it has, if it has only one.
    pub only: Option<Protocol>,
}

impl Agent {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { default: None, only: None };
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

/// The variable of the protocol of all signals.
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

/// What is wrong with the variables that `look` shows to an agent, each thing once.
pub fn problems<'v>(look: impl Fn(&'static str) -> Seen<'v>, agent: Agent) -> Vec<Problem> {
    let mut problems = Vec::new();
    for signal in SIGNALS.iter().filter(|signal| is_sent(look(signal.exporter))) {
        // An empty value is as good as none.
        let first = |names: [&'static str; 2]| {
            let seen = names.map(|name| (name, look(name)));
            seen.into_iter().find(|(_, seen)| !matches!(seen, Seen::Unset | Seen::Value("")))
        };
        let Some((variable, Seen::Value(endpoint))) = first([signal.endpoint, ENDPOINT]) else { continue };
        let protocol = match first([signal.protocol, PROTOCOL]) {
            None => agent.default.map(|protocol| (protocol, None)),
            Some((name, Seen::Value(value))) => Protocol::of(value).map(|protocol| (protocol, Some(name))),
            Some(_) => None,
        };
        let problem = problem(variable, endpoint, protocol, agent.only);
        problems.extend(problem.filter(|problem| !problems.contains(problem)));
    }
    problems
}

/// What is wrong with the endpoint of a directive, which may do without a scheme.
pub fn problem_of_directive(directive: &'static str, endpoint: &str, agent: Agent) -> Option<Problem> {
    let protocol = agent.default.map(|protocol| (protocol, None));
    let scheme = if endpoint.contains("://") { "" } else { "http://" };
    problem(directive, &[scheme, endpoint].concat(), protocol, agent.only)
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
    only: Option<Protocol>,
) -> Option<Problem> {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        // A reference may bring the scheme.
        let host = host(endpoint);
        return (!host.starts_with("$(")).then(|| Problem::NoScheme { variable, host: host.to_owned() });
    };
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

impl Problem {
    /// The variable or directive that sets the endpoint.
    pub fn variable(&self) -> &'static str {
        match self {
            Self::NoScheme { variable, .. } | Self::Port { variable, .. } => variable,
        }
    }

    /// What is wrong with the endpoint, and what to do. `who` sends it: the agents' names, or none for the one
    /// that is spoken of.
    pub fn sentence(&self, who: &[&str]) -> String {
        let (protocol, set_by, only) = match self {
            Self::NoScheme { host, .. } => {
                return format!("is \"{host}\", without a scheme; set it to http://{host}");
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
            None if only == Some(protocol) => format!("{sender} {protocol} alone"),
            None => format!("{sender} {protocol} by default"),
        };
        let advice = match only {
            None => format!("set port {right}, or {PROTOCOL} to {other}"),
            Some(only) if only == protocol => format!("set port {right}"),
            Some(only) => format!("set {} to {only}", set_by.unwrap_or(PROTOCOL)),
        };
        format!("has port {}, but {why}; {advice}", other.port())
    }

    /// Whether it is the same for two agents, however they could be helped.
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
