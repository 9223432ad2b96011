//! Containers that are known proxies and helpers (D30).
//!
//! Injectors of service meshes and secrets, log shippers and similar tools add a
//! container to a pod, often before the application's. If
//! no container is named, they are skipped.

/// Names of the regular containers of these products, by
/// purpose. A `*` at the end matches any rest.
const KNOWN: &[&str] = &[
    // Service meshes.
    "istio-proxy",
    "linkerd-proxy",
    "linkerd-debug",
    "envoy",
    "envoy-sidecar",
    "consul-dataplane*",
    "consul-connect-envoy-sidecar",
    "consul-connect-lifecycle-sidecar",
    "kuma-sidecar",
    "nginx-mesh-sidecar",
    "queue-proxy",
    "daprd",
    // Policies, authentication and secrets.
    "opa-istio",
    "opa-envoy",
    "oauth2-proxy",
    "kube-rbac-proxy",
    "vault-agent",
    "azwi-proxy",
    // External connections.
    "cloud-sql-proxy",
    "cloudsql-proxy",
    "csql-*",
    "alloydb-auth-proxy",
    "gke-gcsfuse-sidecar",
    "cloudflared",
    "tailscale",
    "ts-sidecar",
    "traffic-agent",
    // Telemetry.
    "otc-container",
    "jaeger-agent",
    "fluent-bit",
    "fluentbit",
    "fluentd",
    "filebeat",
    "promtail",
    "telegraf",
    "grafana-agent",
    "datadog-agent",
    "datadog-agent-injected",
    "xray-daemon",
    "aws-xray-daemon",
    "aws-otel-collector",
    "cloudwatch-agent",
    "newrelic-infrastructure-sidecar",
    // Files and configuration.
    "config-reloader",
    "git-sync",
];

/// The proxies and helpers of an installation: the built-in names, and configured ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Helpers(Vec<String>);

impl Helpers {
    /// The built-in names and additional ones.
    pub fn with(more: impl IntoIterator<Item = String>) -> Self {
        Self(more.into_iter().collect())
    }

    /// Whether a container of this name is a known proxy or helper.
    pub fn has(&self, name: &str) -> bool {
        let known = KNOWN.iter().copied().chain(self.0.iter().map(String::as_str));
        known.into_iter().any(|pattern| fits(pattern, name))
    }

    /// Parses a name to add; a `*` at its end matches any rest.
    ///
    /// # Errors
    /// A message that says what is valid.
    pub fn parse_name(text: &str) -> Result<String, String> {
        let name = text.trim();
        let stem = name.strip_suffix('*').unwrap_or(name);
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if stem.is_empty() || !stem.bytes().all(is_allowed) {
            return Err(format!(
                "\"{text}\" is not the name of a container; valid: lower-case letters, digits and -, \
                 and a * at the end for any rest, such as my-proxy or my-proxy-*"
            ));
        }
        Ok(name.to_owned())
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |stem| name.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_the_built_in_and_the_added_ones() {
        let helpers = Helpers::with(["my-proxy".to_owned(), "mesh-*".to_owned()]);
        for name in ["istio-proxy", "consul-dataplane", "consul-dataplane-web", "my-proxy", "mesh-a", "mesh-"]
        {
            assert!(helpers.has(name), "{name}");
        }
        for name in ["proxy", "istio-proxy-test", "envoy-admin", "app", "mesh", ""] {
            assert!(!helpers.has(name), "{name}");
        }
    }

    #[test]
    fn every_built_in_name_is_valid_and_unique() {
        for (index, name) in KNOWN.iter().enumerate() {
            assert_eq!(Helpers::parse_name(name).as_deref(), Ok(*name));
            assert!(!KNOWN[..index].contains(name), "{name} is there twice");
        }
        for bad in ["", " ", "*", "a b", "App", "a*b"] {
            let problem = Helpers::parse_name(bad).expect_err(bad);
            assert!(
                problem.contains("is not the name of a container; valid: lower-case letters"),
                "{problem}"
            );
        }
    }
}
