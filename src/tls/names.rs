//! The names that a serving certificate is for.

use std::net::IpAddr;

/// The names under which a process is reached from its own machine.
pub const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names of a Service, from the shortest to the longest, and `more`, each once.
///
/// API servers ask for `service.namespace.svc`; the others are for people, and for what else calls it.
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

/// A name as certificates have it: an address in its shortest form, a DNS name in lower case.
fn canonical(name: &str) -> String {
    name.parse::<IpAddr>().map_or_else(|_| name.to_ascii_lowercase(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_four_names_and_any_more_that_are_given() {
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
