//! Values of flags: names, those in a certificate among them, and durations such as `90d`, `12h` and `30s`.

use std::{net::IpAddr, time::Duration};

use clap::Args;
use jiff::{Span, SpanRelativeTo};

use otel_webhook_server::tls;

/// The names in a serving certificate that the program issues.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names in the certificate")]
pub struct NameFlags {
    /// Name of the webhook's Service
    #[arg(long, env = "OTEL_WEBHOOK_SERVICE", default_value = "otel-webhook", value_name = "NAME",
        value_parser = label)]
    pub service: String,

    /// DNS domain of the cluster
    #[arg(long, env = "OTEL_WEBHOOK_CLUSTER_DOMAIN", default_value = "cluster.local", value_name = "DOMAIN",
        value_parser = dns_name)]
    cluster_domain: String,

    /// Additional DNS name or IP address; may be repeated
    #[arg(long, env = "OTEL_WEBHOOK_TLS_NAME", value_name = "NAME", value_delimiter = ',',
        value_parser = certificate_name)]
    tls_name: Vec<String>,
}

impl NameFlags {
    /// Returns all names, for a Service in this namespace.
    pub fn all(&self, namespace: &str) -> Vec<String> {
        tls::service_names(&self.service, namespace, &self.cluster_domain, &self.tls_name)
    }
}

/// Parses a DNS label (RFC 1123), such as the name of a Service or a namespace.
///
/// # Errors
/// The message says which format is expected.
pub fn label(text: &str) -> Result<String, String> {
    if is_label(text) {
        return Ok(text.to_owned());
    }
    Err("expected up to 63 lower-case letters, digits and \"-\", beginning and ending with a letter or a digit".to_owned())
}

/// Parses a DNS subdomain (RFC 1123), such as the name of a Secret.
///
/// # Errors
/// The message says which format is expected.
pub fn dns_name(text: &str) -> Result<String, String> {
    if text.len() <= 253 && text.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("expected lower-case letters, digits, \"-\" and \".\", such as cluster.local".to_owned())
}

fn certificate_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("*.").unwrap_or(text).to_ascii_lowercase();
    if text.parse::<IpAddr>().is_ok() || dns_name(&name).is_ok() {
        return Ok(text.to_owned());
    }
    Err("expected a DNS name or an IP address, such as hooks.example.com or 10.0.0.7".to_owned())
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Parses a duration greater than zero. A day has 24 hours.
///
/// # Errors
/// The message says which format is expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 90d, 12h, 30s or 500ms".to_owned();
    let span: Span = text.parse().map_err(|_| expected())?;
    // Months and years have no fixed length.
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| expected())?;
    let duration = Duration::try_from(signed).map_err(|_| expected())?;
    if duration.is_zero() {
        return Err("expected a duration greater than zero".to_owned());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dns_names_and_ip_addresses_are_accepted() {
        for name in ["hooks.example.com", "*.example.com", "Hooks", "10.0.0.7", "::1"] {
            assert_eq!(certificate_name(name).as_deref(), Ok(name));
        }
        for name in ["", "a b", "https://a", "naïve", "-a", "a.", "*"] {
            let error = certificate_name(name).expect_err(name);
            assert!(error.starts_with("expected a DNS name or an IP address"), "{error}");
        }
        assert!(label("a.b").is_err() && label(&"a".repeat(64)).is_err());
    }

    #[test]
    fn units_from_days_to_milliseconds_are_parsed() {
        for (text, seconds) in [("90d", 90 * 86400), ("12h", 43200), ("1h30m", 5400), ("30s", 30)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for text in ["", "90", "1y", "3mo", "-5s", "ninety days"] {
            let error = duration(text).expect_err(text);
            assert_eq!(error, "expected a duration such as 90d, 12h, 30s or 500ms", "{text}");
        }
        assert_eq!(duration("0s"), Err("expected a duration greater than zero".to_owned()));
    }
}
