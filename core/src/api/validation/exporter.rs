//! Where telemetry is sent: what is allowed, but would not arrive.

use serde_json::Value;

use super::{Verdict, secret};
use crate::api::defaults::LANGUAGES;

const ENDPOINT: &str = "spec.exporter.endpoint";

/// Warns of what does not fit together.
pub fn check(verdict: &mut Verdict, spec: &Value) {
    let exporter = &spec["exporter"];
    let endpoint = exporter["endpoint"].as_str().unwrap_or_default();
    check_tls(verdict, endpoint, &exporter["tls"]);
    if secret::has_password(endpoint) {
        let message = "has a password in it, for everyone to read who may see Instrumentations";
        verdict.warn("plain-credential", ENDPOINT, message);
    }
    check_ports(verdict, spec, endpoint);
}

fn check_tls(verdict: &mut Verdict, endpoint: &str, tls: &Value) {
    let is_set = |field: &str| tls[field].as_str().is_some_and(|name| !name.is_empty());
    let is_https = endpoint.starts_with("https://");
    for (present, missing) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
        if is_set(present) && !is_set(missing) {
            let field = format!("spec.exporter.tls.{missing}");
            verdict.warn(
                "tls-cert-without-key",
                field,
                format!("is not set, but {present} is; agents need both"),
            );
        }
    }
    if tls.is_object() && !is_https {
        let message = "does not begin with https://, so agents ignore spec.exporter.tls";
        verdict.warn("tls-without-https", ENDPOINT, message);
    }
    if is_https && tls.is_null() {
        let message = "begins with https://, but spec.exporter.tls is not set; agents trust the CAs of their own images";
        verdict.warn("https-without-tls", ENDPOINT, message);
    }
}

/// The port and the protocol of every target, and of the languages that say otherwise.
fn check_ports(verdict: &mut Verdict, spec: &Value, endpoint: &str) {
    let common = Target::default().with("spec.env", &spec["env"]);
    let common = Target { endpoint: common.endpoint.or(Some((ENDPOINT.to_owned(), endpoint))), ..common };
    common.check(verdict);
    for language in LANGUAGES {
        let field = format!("spec.{}.env", language.field);
        let own = common.clone().with(&field, &spec[language.field]["env"]);
        if own != common {
            own.check(verdict);
        }
    }
}

/// What decides how a target sends: each with the field that says it.
#[derive(Clone, Default, PartialEq)]
struct Target<'s> {
    endpoint: Option<(String, &'s str)>,
    protocol: Option<(String, &'s str)>,
}

impl<'s> Target<'s> {
    fn with(mut self, field: &str, env: &'s Value) -> Self {
        let variable = |name: &str| {
            let variables = env.as_array()?.iter().enumerate();
            let (index, value) = variables.into_iter().find(|(_, variable)| variable["name"] == name)?;
            Some((format!("{field}[{index}]"), value["value"].as_str()?))
        };
        self.endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or(self.endpoint);
        self.protocol = variable("OTEL_EXPORTER_OTLP_PROTOCOL").or(self.protocol);
        self
    }

    fn check(&self, verdict: &mut Verdict) {
        let (Some((field, endpoint)), Some((_, protocol))) = (&self.endpoint, &self.protocol) else { return };
        let (fits, other) = match (port(endpoint), *protocol) {
            (Some("4317"), "http/protobuf" | "http/json") => ("4318", "4317"),
            (Some("4318"), "grpc") => ("4317", "4318"),
            _ => return,
        };
        let message = format!(
            "has port {other}, but OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}, which collectors take at {fits}"
        );
        verdict.warn("endpoint-port-contradicts-protocol", field, message);
    }
}

fn port(endpoint: &str) -> Option<&str> {
    let (_, rest) = endpoint.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once(':').map(|(_, port)| port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_authority() {
        for (endpoint, expected) in [
            ("http://c:4317", Some("4317")),
            ("http://c:4318/v1?a=b:1", Some("4318")),
            ("http://u:p@[::1]:4317/", Some("4317")),
            ("http://$(OTEL_NODE_IP):4317", Some("4317")),
            ("http://c", None),
            ("::::", None),
        ] {
            assert_eq!(port(endpoint), expected, "{endpoint}");
        }
    }
}
