//! `crd`: prints the CustomResourceDefinition of Instrumentation.

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;
use serde_json::{Value, json};

use super::{
    default::Format,
    names::{dns_name, label},
    output::{Failure, finish},
};
use otel_webhook_api::{Version, crd};
use otel_webhook_server::Endpoint;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Create or update the CRD:
    otel-webhook crd | kubectl apply --server-side -f -
  Serve v1beta1 as well, converted by the webhook:
    otel-webhook crd --served v1alpha1,v1beta1 --ca-bundle ca.crt | kubectl apply --server-side -f -";

/// Flags of `crd`.
#[derive(Debug, Args)]
pub struct CrdArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml, help_heading = "Output")]
    output: Format,

    /// Versions that the API server serves
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "v1alpha1",
        help_heading = "Versions"
    )]
    served: Vec<Version>,

    /// Version in which the API server stores objects, one of --served; by default the first of them
    #[arg(long, value_name = "VERSION", help_heading = "Versions")]
    storage: Option<Version>,

    #[command(flatten)]
    conversion: ConversionFlags,
}

/// Flags of the webhook that converts between versions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Conversion, if several versions are served")]
struct ConversionFlags {
    /// Service of the webhook that converts
    #[arg(long, value_name = "NAME", default_value = "otel-webhook-conversion", value_parser = label)]
    conversion_service: String,

    /// Namespace of the Service
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACE", value_name = "NAMESPACE", default_value = "otel-webhook",
        value_parser = label)]
    namespace: String,

    /// Port of the Service
    #[arg(long, value_name = "PORT", default_value_t = 443, value_parser = clap::value_parser!(u16).range(1..))]
    conversion_port: u16,

    /// Base URL of a webhook outside of the cluster, such as <https://192.0.2.7:9443>, instead of the Service
    #[arg(long, value_name = "URL", value_parser = https, conflicts_with_all = ["conversion_service", "conversion_port"])]
    conversion_url: Option<String>,

    /// File with the CA bundle (PEM) that verifies the webhook. Without it, `serve --tls-managed` or cert-manager
    /// has to set caBundle
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,

    /// Certificate of cert-manager, as NAMESPACE/NAME, whose CA cert-manager sets as caBundle
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = certificate, conflicts_with = "ca_bundle")]
    inject_ca_from: Option<String>,
}

fn certificate(text: &str) -> Result<String, String> {
    let is_valid =
        text.split_once('/').is_some_and(|(one, other)| label(one).is_ok() && dns_name(other).is_ok());
    is_valid.then(|| text.to_owned()).ok_or_else(|| "expected NAMESPACE/NAME".to_owned())
}

fn https(text: &str) -> Result<String, String> {
    let uri = text.parse::<hyper::Uri>().ok().filter(|uri| uri.scheme_str() == Some("https"));
    let is_base = uri.is_some_and(|uri| uri.host().is_some() && uri.query().is_none());
    is_base
        .then(|| text.trim_end_matches('/').to_owned())
        .ok_or_else(|| "expected a URL with https".to_owned())
}

/// Runs the subcommand.
///
/// # Errors
/// If the flags contradict each other, the CA bundle cannot be read, or the output cannot be written.
pub fn run(args: &CrdArgs) -> Result<ExitCode, Failure> {
    let crd = args.crd()?;
    let text = match args.output {
        Format::Yaml => yaml(&crd),
        Format::Json => format!("{crd}\n"),
    };
    finish(io::stdout().write_all(text.as_bytes()), ExitCode::SUCCESS)
}

/// Returns the CustomResourceDefinition as YAML.
pub fn yaml(crd: &Value) -> String {
    serde_saphyr::to_string(crd).expect("plain JSON is YAML")
}

impl CrdArgs {
    fn crd(&self) -> Result<Value, Failure> {
        let storage = self.storage.unwrap_or(self.served[0]);
        if !self.served.contains(&storage) {
            let served: Vec<_> = self.served.iter().map(|version| version.name()).collect();
            let problem =
                format!("--storage is {}, which is not served; valid: {}", storage.name(), served.join(", "));
            return Err(Failure::unreadable(problem));
        }
        let mut crd = crd::of(&self.served, storage);
        if crd["spec"]["versions"].as_array().is_some_and(|versions| versions.len() > 1) {
            crd["spec"]["conversion"] = self.conversion.conversion()?;
            if let Some(certificate) = &self.conversion.inject_ca_from {
                crd["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": certificate});
            }
        }
        Ok(crd)
    }
}

impl ConversionFlags {
    fn conversion(&self) -> Result<Value, Failure> {
        let path = Endpoint::Convert.path();
        let mut client = match &self.conversion_url {
            Some(url) => json!({"url": format!("{url}{path}")}),
            None => json!({"service": {
                "namespace": self.namespace, "name": self.conversion_service, "port": self.conversion_port,
                "path": path,
            }}),
        };
        if let Some(path) = &self.ca_bundle {
            let pem = fs::read(path)
                .map_err(|error| Failure::unreadable(format!("--ca-bundle {}: {error}", path.display())))?;
            client["caBundle"] = BASE64_STANDARD.encode(pem).into();
        }
        Ok(json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }))
    }
}
