//! Flags of the serving certificate, and what comes of them: files, managed, or self-signed.

use std::{future, path::PathBuf, sync::Arc, time::Duration};

use clap::{ArgGroup, Args};
use futures::{FutureExt, future::BoxFuture};
use kube::Client;

use super::{
    duration::duration,
    failure::Failure,
    names::{NameFlags, dns_name, label},
};
use crate::{
    telemetry::Metrics,
    tls::{
        CertificateFiles, CurrentCertificate, DEFAULT_NAMES, SelfSigned,
        managed::{Managed, Place},
    },
};
use otel_webhook_managed_certs::plan::Policy;

/// Where the certificate comes from: one of three.
#[derive(Debug, Args)]
#[command(next_help_heading = "Certificate (one of --tls-cert, --tls-managed and --tls-self-signed)")]
#[command(group = ArgGroup::new("certificate").required(true))]
pub struct CertificateFlags {
    /// File of the serving certificate and its chain (PEM); looked at every second
    #[arg(
        long,
        env = "OTEL_WEBHOOK_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key",
        group = "certificate"
    )]
    tls_cert: Option<PathBuf>,

    /// File of its private key (PEM)
    #[arg(long, env = "OTEL_WEBHOOK_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Make and renew the certificate, keep it in this Secret, and look after caBundle
    #[arg(long, env = "OTEL_WEBHOOK_TLS_MANAGED", value_name = "SECRET", group = "certificate",
        requires = "webhook_configuration", value_parser = dns_name)]
    pub tls_managed: Option<String>,

    /// Make a throw-away certificate for localhost at the start, to try things out
    #[arg(long, env = "OTEL_WEBHOOK_TLS_SELF_SIGNED", group = "certificate")]
    tls_self_signed: bool,

    #[command(flatten)]
    managed: ManagedFlags,

    #[command(flatten)]
    names: NameFlags,
}

/// Flags that count with `--tls-managed` alone.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --tls-managed")]
struct ManagedFlags {
    /// Name of the webhook configurations whose caBundle is looked after, the mutating and the validating
    /// one; may be given several times
    #[arg(long, env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION", value_name = "NAME", value_delimiter = ',',
        requires = "tls_managed", value_parser = dns_name)]
    webhook_configuration: Vec<String>,

    /// The namespace of the Secret and the Service; without it the one of the service account, or of the
    /// kubeconfig's context
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACE", value_name = "NAMESPACE", value_parser = label)]
    namespace: Option<String>,

    /// How long a serving certificate lives; the next one is issued after two thirds of it
    #[arg(long, env = "OTEL_WEBHOOK_TLS_LIFETIME", default_value = "90d", value_name = "DURATION",
        value_parser = duration)]
    tls_lifetime: Duration,

    /// How long the authority lives; the next one is made after two thirds of it
    #[arg(long, env = "OTEL_WEBHOOK_TLS_CA_LIFETIME", default_value = "365d", value_name = "DURATION",
        value_parser = duration)]
    tls_ca_lifetime: Duration,

    /// How long API servers are given to learn of a new authority before a certificate by it is served
    #[arg(long, env = "OTEL_WEBHOOK_TLS_PROPAGATION", default_value = "10s", value_name = "DURATION",
        value_parser = duration)]
    tls_propagation: Duration,
}

/// The certificate that is served, and the task that keeps it as it has to be.
pub struct Certificate {
    pub current: Arc<CurrentCertificate>,
    pub upkeep: BoxFuture<'static, ()>,
}

/// What the upkeep of a certificate needs of the program.
pub struct Surroundings {
    pub metrics: Arc<Metrics>,
    /// Turns true when the program ends.
    pub stopping: tokio::sync::watch::Receiver<bool>,
}

impl CertificateFlags {
    /// Whether the flags fit together, as far as the parser cannot tell.
    ///
    /// # Errors
    /// Names the flags, their values and what would be right.
    pub fn check(&self) -> Result<(), Failure> {
        let ManagedFlags { tls_lifetime, tls_ca_lifetime, tls_propagation, .. } = &self.managed;
        // A variable that says no is as good as a flag to the parser.
        if self.tls_managed.is_none() && self.tls_cert.is_none() && !self.tls_self_signed {
            return Err(Failure::unreadable(
                "OTEL_WEBHOOK_TLS_SELF_SIGNED is false, and nothing else gives a certificate; give --tls-cert, \
                 --tls-managed or --tls-self-signed",
            ));
        }
        if self.tls_managed.is_none() {
            return Ok(());
        }
        if tls_lifetime > tls_ca_lifetime {
            return Err(Failure::unreadable(format!(
                "--tls-lifetime {tls_lifetime:?} is longer than --tls-ca-lifetime {tls_ca_lifetime:?}: \
                 no certificate outlives its authority"
            )));
        }
        if *tls_propagation >= *tls_lifetime / 3 {
            return Err(Failure::unreadable(format!(
                "--tls-propagation {tls_propagation:?} has to be shorter than a third of --tls-lifetime \
                 {tls_lifetime:?}: a certificate would expire before the next one may be served"
            )));
        }
        Ok(())
    }

    /// The certificate by these flags. `on_ready` is called once it can be used by API servers, as far as
    /// that is known. `client` is for managed certificates.
    ///
    /// # Errors
    /// When there is no certificate to begin with.
    pub async fn start(
        &self,
        client: Option<Client>,
        around: Surroundings,
        on_ready: impl FnOnce() + Send + 'static,
    ) -> Result<Certificate, Failure> {
        let Surroundings { metrics, stopping } = around;
        if let (Some(secret), Some(client)) = (&self.tls_managed, client) {
            let current = Arc::new(CurrentCertificate::none(Arc::clone(&metrics)));
            let (place, policy) = self.managed(secret, client.default_namespace());
            let managed = Managed::new(client, &place, policy, Arc::clone(&current), metrics);
            return Ok(Certificate { current, upkeep: managed.run(on_ready).boxed() });
        }
        on_ready();
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            let mut files = CertificateFiles::new(certificate, key);
            let first = files.load().await.map_err(Failure::failed)?;
            let current = Arc::new(CurrentCertificate::new(first, Arc::clone(&metrics)));
            let upkeep = files.follow(Arc::clone(&current), metrics, CertificateFiles::INTERVAL, stopping);
            return Ok(Certificate { current, upkeep: upkeep.boxed() });
        }
        tracing::warn!("serving a throw-away certificate: no API server will trust it");
        let pair = SelfSigned::generate(&DEFAULT_NAMES).map_err(Failure::failed)?;
        let current = CurrentCertificate::new(pair.serving().map_err(Failure::failed)?, metrics);
        Ok(Certificate { current: Arc::new(current), upkeep: future::pending().boxed() })
    }

    fn managed(&self, secret: &str, default_namespace: &str) -> (Place, Policy) {
        let flags = &self.managed;
        let namespace = flags.namespace.as_deref().unwrap_or(default_namespace).to_owned();
        let policy = Policy {
            names: self.names.all(&namespace),
            lifetime: flags.tls_lifetime,
            authority_lifetime: flags.tls_ca_lifetime,
            propagation: flags.tls_propagation,
        };
        let configurations = flags.webhook_configuration.clone();
        (Place { namespace, secret: secret.to_owned(), configurations }, policy)
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
    fn a_certificate_that_is_switched_off_is_none() {
        let Line { mut certificate } = Line::parse_from(["serve", "--tls-self-signed"]);
        certificate.check().expect("one of three");
        certificate.tls_self_signed = false;
        let problem = certificate.check().expect_err("none").to_string();
        assert!(problem.starts_with("OTEL_WEBHOOK_TLS_SELF_SIGNED is false"), "{problem}");
    }
}
