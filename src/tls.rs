//! Flags of the serving certificate, which is from files, managed, or self-signed, and of client certificates.

use std::{future, path::PathBuf, sync::Arc, time::Duration};

use clap::{ArgGroup, Args, builder::NonEmptyStringValueParser};
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use tokio::sync::watch;

use super::{
    names::{NameFlags, dns_name, duration, label},
    output::Failure,
};
use otel_webhook_managed_certs::{certificate::ServingCertificate, plan::Policy};
use otel_webhook_server::tls::{
    CurrentCertificate, CurrentClients, DEFAULT_NAMES, Files, INTERVAL, SelfSigned,
    managed::{Managed, Place},
};
use otel_webhook_telemetry::Metrics;

/// Flags of the source of the certificate, one of three.
#[derive(Debug, Args)]
#[command(next_help_heading = "Certificate (one of --tls-cert, --tls-managed and --tls-self-signed)")]
#[command(group = ArgGroup::new("certificate").required(true))]
pub struct CertificateFlags {
    /// File of the serving certificate and its chain (PEM); reloaded within a second of a change
    #[arg(
        long,
        env = "OTEL_WEBHOOK_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key",
        group = "certificate"
    )]
    tls_cert: Option<PathBuf>,

    /// File of the private key (PEM)
    #[arg(long, env = "OTEL_WEBHOOK_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Issue and rotate the certificate, store it in this Secret, and keep caBundle up to date
    #[arg(long, env = "OTEL_WEBHOOK_TLS_MANAGED", value_name = "SECRET", group = "certificate",
        requires = "webhook_configuration", value_parser = dns_name)]
    pub tls_managed: Option<String>,

    /// Issue a temporary certificate for localhost at startup, for testing
    #[arg(long, env = "OTEL_WEBHOOK_TLS_SELF_SIGNED", group = "certificate")]
    tls_self_signed: bool,

    #[command(flatten)]
    managed: ManagedFlags,

    #[command(flatten)]
    names: NameFlags,

    #[command(flatten)]
    pub clients: ClientCaFlags,
}

/// Flags that apply only with `--tls-managed`.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --tls-managed")]
struct ManagedFlags {
    /// Name of the mutating and the validating webhook configuration in which caBundle is kept up
    /// to date; may be repeated
    #[arg(long, env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION", value_name = "NAME", value_delimiter = ',',
        requires = "tls_managed", value_parser = dns_name)]
    webhook_configuration: Vec<String>,

    /// Service through which API servers call the webhook to convert between versions, in the same namespace: its name is
    /// in the certificate, and caBundle of the CRD is kept up to date if the CRD names it
    #[arg(long, env = "OTEL_WEBHOOK_CONVERSION_SERVICE", value_name = "NAME", requires = "tls_managed",
        value_parser = label)]
    conversion_service: Option<String>,

    /// Lifetime of a serving certificate; it is rotated after two thirds of it
    #[arg(long, env = "OTEL_WEBHOOK_TLS_LIFETIME", default_value = "90d", value_name = "DURATION",
        value_parser = duration)]
    tls_lifetime: Duration,

    /// Lifetime of the CA; it is rotated after two thirds of it
    #[arg(long, env = "OTEL_WEBHOOK_TLS_CA_LIFETIME", default_value = "365d", value_name = "DURATION",
        value_parser = duration)]
    tls_ca_lifetime: Duration,

    /// Time for API servers to observe a new CA bundle, before a certificate of the new CA is served
    #[arg(long, env = "OTEL_WEBHOOK_TLS_PROPAGATION", default_value = "10s", value_name = "DURATION",
        value_parser = duration)]
    tls_propagation: Duration,
}

/// The serving certificate, and the task that reloads or rotates it.
pub struct Certificate {
    pub current: Arc<CurrentCertificate>,
    pub upkeep: BoxFuture<'static, ()>,
}

/// What that task needs of the program.
pub struct Surroundings {
    pub metrics: Arc<Metrics>,
    /// Becomes true when the program ends.
    pub stopping: watch::Receiver<bool>,
}

impl CertificateFlags {
    /// Checks combinations of flags that the parser cannot check.
    ///
    /// # Errors
    /// The message names the flags, their values and what is expected.
    pub fn check(&self) -> Result<(), Failure> {
        let ManagedFlags { tls_lifetime, tls_ca_lifetime, tls_propagation, .. } = &self.managed;
        // To the parser, a variable with the value false is the same as the flag.
        if self.tls_managed.is_none() && self.tls_cert.is_none() && !self.tls_self_signed {
            return Err(Failure::unreadable(
                "OTEL_WEBHOOK_TLS_SELF_SIGNED is false, and there is no other certificate; set --tls-cert, \
                 --tls-managed or --tls-self-signed",
            ));
        }
        if self.tls_managed.is_none() {
            return Ok(());
        }
        if tls_lifetime > tls_ca_lifetime {
            return Err(Failure::unreadable(format!(
                "--tls-lifetime {tls_lifetime:?} is longer than --tls-ca-lifetime {tls_ca_lifetime:?}: \
                 a certificate cannot outlive its CA"
            )));
        }
        if *tls_propagation >= *tls_lifetime / 3 {
            return Err(Failure::unreadable(format!(
                "--tls-propagation {tls_propagation:?} is not shorter than a third of --tls-lifetime \
                 {tls_lifetime:?}: a certificate would expire before the next one may be served"
            )));
        }
        Ok(())
    }

    /// Starts with the certificate of these flags. Calls `on_ready` once API servers can verify it, as far as this
    /// is known. `client` and `namespace`, that of the Secret and the Service, are used for managed certificates.
    ///
    /// # Errors
    /// If there is no certificate to start with.
    pub async fn start(
        &self,
        client: Option<Client>,
        namespace: Option<&str>,
        around: Surroundings,
        on_ready: impl FnOnce() + Send + 'static,
    ) -> Result<Certificate, Failure> {
        let Surroundings { metrics, stopping } = around;
        if let (Some(secret), Some(client)) = (&self.tls_managed, client) {
            let namespace = namespace.unwrap_or(client.default_namespace());
            let current = Arc::new(CurrentCertificate::none(Arc::clone(&metrics)));
            let (place, policy) = self.managed(secret, namespace);
            let managed = Managed::new(client, &place, policy, Arc::clone(&current), metrics);
            return Ok(Certificate { current, upkeep: managed.run(on_ready).boxed() });
        }
        on_ready();
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let mut files = Files::certificate(certificate, key);
            let first = files.load().await.map_err(Failure::failed)?;
            let current = Arc::new(CurrentCertificate::new(first, Arc::clone(&metrics)));
            let (serving, file) = (Arc::clone(&current), certificate.clone());
            let replace = move |certificate: ServingCertificate| {
                let not_after = certificate.not_after();
                tracing::info!(file = %file.display(), not_after, "serving a new certificate");
                serving.replace(certificate);
            };
            let upkeep = files.follow(replace, metrics, INTERVAL, stopping);
            return Ok(Certificate { current, upkeep: upkeep.boxed() });
        }
        tracing::warn!("serving a temporary self-signed certificate, which no API server trusts");
        let pair = SelfSigned::generate(&DEFAULT_NAMES).map_err(Failure::failed)?;
        let current = CurrentCertificate::new(pair.serving().map_err(Failure::failed)?, metrics);
        Ok(Certificate { current: Arc::new(current), upkeep: future::pending().boxed() })
    }

    fn managed(&self, secret: &str, namespace: &str) -> (Place, Policy) {
        let flags = &self.managed;
        let mut names = self.names.all(namespace);
        names.extend(flags.conversion_service.iter().map(|service| format!("{service}.{namespace}.svc")));
        let policy = Policy {
            names,
            lifetime: flags.tls_lifetime,
            authority_lifetime: flags.tls_ca_lifetime,
            propagation: flags.tls_propagation,
        };
        let place = Place {
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            configurations: flags.webhook_configuration.clone(),
            conversion: flags.conversion_service.clone(),
        };
        (place, policy)
    }
}

/// Flags of the clients that may connect.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients of the webhook port")]
pub struct ClientCaFlags {
    /// Accept only clients with a certificate of this CA bundle (PEM); reloaded within a second of a change. By
    /// default, every client is accepted: API servers show a certificate only if their admission configuration
    /// has one
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Accept only clients with this common name, DNS name or URI in their certificate; may be repeated; by default,
    /// with any name
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_NAME", value_name = "NAME", value_delimiter = ',',
        requires = "client_ca", value_parser = NonEmptyStringValueParser::new())]
    client_name: Vec<String>,
}

/// The clients that may connect, and the task that reloads their CA.
pub struct Clients {
    pub current: Arc<CurrentClients>,
    pub upkeep: BoxFuture<'static, ()>,
}

impl ClientCaFlags {
    /// Starts with the client CA of these flags, if there is one. `stopping` becomes true when the program ends.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub async fn start(
        &self,
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Option<Clients>, Failure> {
        let Some(path) = &self.client_ca else { return Ok(None) };
        let mut file = Files::client_ca(path);
        let ca = file.load().await.map_err(|error| Failure::failed(format!("--client-ca {error}")))?;
        let current = Arc::new(CurrentClients::new(ca, self.client_name.clone()));
        let (clients, path) = (Arc::clone(&current), path.clone());
        let replace = move |ca| {
            tracing::info!(file = %path.display(), "verifying clients by a new CA");
            clients.replace(ca);
        };
        let upkeep = file.follow(replace, metrics, INTERVAL, stopping);
        Ok(Some(Clients { current, upkeep: upkeep.boxed() }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        certificate: CertificateFlags,
    }

    #[test]
    fn a_disabled_certificate_does_not_satisfy_the_requirement() {
        let Line { mut certificate } = Line::parse_from(["serve", "--tls-self-signed"]);
        certificate.check().expect("one of three");
        certificate.tls_self_signed = false;
        let problem = certificate.check().expect_err("none").to_string();
        assert!(problem.starts_with("OTEL_WEBHOOK_TLS_SELF_SIGNED is false"), "{problem}");
    }
}
