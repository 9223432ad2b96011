//! Containers that are known proxies and helpers (D30).
//!
//! Injectors of service meshes and secrets, log shippers and the like put a
//! container of their own into a pod, often before the application's. Where
//! nobody names a container, they are not what is meant.

/// Names that these products give to their regular containers, by what they
/// do. A `*` at the end stands for any rest.
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
    // Connections to what is outside.
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

/// The proxies and helpers of an installation: the built-in names, and more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Helpers(Vec<String>);

impl Helpers {
    /// The built-in names and these.
    pub fn with(more: impl IntoIterator<Item = String>) -> Self {
        Self(more.into_iter().collect())
    }

    /// Whether a container of this name is a known proxy or helper.
    pub fn has(&self, name: &str) -> bool {
        let known = KNOWN.iter().copied().chain(self.0.iter().map(String::as_str));
        known.into_iter().any(|pattern| fits(pattern, name))
    }

    /// Reads a name that is to be added; a `*` at its end stands for any rest.
    ///
    /// # Errors
    /// A sentence that says what a name is made of.
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
    fn known_names_are_those_of_the_list_and_those_that_are_added() {
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
    fn every_name_of_the_list_is_one_that_could_be_added_and_is_there_once() {
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
