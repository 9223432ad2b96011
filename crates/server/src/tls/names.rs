//! The names in a serving certificate.

use std::net::IpAddr;

/// The names of the local host.
pub const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns the names of a Service, from the shortest to the longest, and `more`, without duplicates.
///
/// API servers use `service.namespace.svc`; the others are for other clients.
pub fn service_names(service: &str, namespace: &str, domain: &str, more: &[String]) -> Vec<String> {
    let own = [
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.{domain}"),
    ];
    let mut names = Vec::new();
    for name in own.into_iter().chain(more.iter().cloned()) {
        let name = canonical(&name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns a name in canonical form: an IP address in its shortest form, a DNS name in lower case.
fn canonical(name: &str) -> String {
    name.parse::<IpAddr>().map_or_else(|_| name.to_ascii_lowercase(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_four_names_and_additional_ones() {
        let more = ["0:0::1", "Hooks.Example.com", "otel-webhook"].map(str::to_owned);
        assert_eq!(
            service_names("otel-webhook", "monitoring", "cluster.local", &more),
            [
                "otel-webhook",
                "otel-webhook.monitoring",
                "otel-webhook.monitoring.svc",
                "otel-webhook.monitoring.svc.cluster.local",
                "::1",
                "hooks.example.com",
            ]
        );
    }
}
