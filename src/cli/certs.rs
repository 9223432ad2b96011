//! `certs`: an authority and a certificate for one's own setup, as files.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;

use super::{
    duration::duration,
    failure::Failure,
    names::{NameFlags, label},
    output::finish,
};
use crate::tls::SelfSigned;

/// What `certs` is told.
#[derive(Debug, Args)]
pub struct CertsArgs {
    /// Folder for ca.crt, tls.crt and tls.key; it is made where it is missing
    #[arg(
        short,
        long,
        env = "OTEL_WEBHOOK_CERTS_OUT",
        default_value = ".",
        value_name = "DIR",
        help_heading = "Output"
    )]
    out: PathBuf,

    /// Replace files that are there already
    #[arg(long, help_heading = "Output")]
    force: bool,

    /// How long the certificate lives, and its authority
    #[arg(long, env = "OTEL_WEBHOOK_TLS_LIFETIME", default_value = "365d", value_name = "DURATION",
        value_parser = duration, help_heading = "Output")]
    tls_lifetime: Duration,

    /// Namespace of the Service
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACE", default_value = "otel-webhook", value_name = "NAMESPACE",
        value_parser = label, help_heading = "Names in the certificate")]
    namespace: String,

    #[command(flatten)]
    names: NameFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  For the Service otel-webhook in the namespace otel-webhook:
    otel-webhook certs --out certificates
  For another one, which is reached by an address, too:
    otel-webhook certs --service hooks --namespace monitoring --tls-name 10.0.0.7 --tls-lifetime 730d
  What goes into caBundle, for a script; the rest is written to standard error:
    CA_BUNDLE=$(otel-webhook certs --out certificates)

The authority's key is not kept: nothing else can ever be signed by it. certs/README.md says how to renew.";

/// The private key can be read by its owner alone.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The name of the Secret in what is printed.
const SECRET: &str = "otel-webhook-tls";

/// Runs the subcommand.
///
/// # Errors
/// When a file is there already, or cannot be written.
pub fn run(args: &CertsArgs) -> Result<ExitCode, Failure> {
    let names = args.names.all(&args.namespace);
    let pair = SelfSigned::living(&names, args.tls_lifetime).map_err(Failure::failed)?;
    let files = [
        ("ca.crt", &pair.ca_pem, PUBLIC),
        ("tls.crt", &pair.certificate_pem, PUBLIC),
        ("tls.key", &pair.key_pem, PRIVATE),
    ];
    let paths = files.map(|(name, _, _)| args.out.join(name));
    if !args.force
        && let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok())
    {
        let path = path.display();
        return Err(Failure::failed(format!("{path} is there already; --force replaces it")));
    }
    fs::create_dir_all(&args.out).map_err(|error| failed(&args.out, &error))?;
    for (path, (_, text, mode)) in paths.iter().zip(files) {
        write(path, text, mode).map_err(|error| failed(path, &error))?;
    }
    eprint!("{}", args.next_steps(&names));
    let bundle = BASE64_STANDARD.encode(&pair.ca_pem);
    finish(writeln!(io::stdout(), "{bundle}"), ExitCode::SUCCESS)
}

impl CertsArgs {
    fn next_steps(&self, names: &[String]) -> String {
        let folder = self.out.display();
        let (names, namespace, service) = (names.join(", "), &self.namespace, &self.names.service);
        format!(
            "Written to {folder}: ca.crt, tls.crt and tls.key.
The certificate is for {names}.

What to do next:
  kubectl create namespace {namespace}
  kubectl create secret generic {SECRET} --namespace {namespace} --type kubernetes.io/tls \\
    --from-file {folder}/tls.crt --from-file {folder}/tls.key --from-file {folder}/ca.crt
  helm install otel-webhook charts/otel-webhook --namespace {namespace} --set fullnameOverride={service} \\
    --set certificates.mode=files --set certificates.files.secretName={SECRET} \\
    --set-file certificates.files.caBundle={folder}/ca.crt

Without the chart, caBundle of every webhook has to be:
"
        )
    }
}

/// Beside its place and then moved there: what is there is always complete, and a key never has another
/// mode for a moment.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}
