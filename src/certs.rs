//! `certs`: creates a CA and a serving certificate as files.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use clap::Args;

use super::{
    names::{NameFlags, duration, label},
    output::{Failure, finish},
};
use otel_webhook_server::tls::SelfSigned;

/// Flags of `certs`.
#[derive(Debug, Args)]
pub struct CertsArgs {
    /// Directory for ca.crt, tls.crt and tls.key; it is created if missing
    #[arg(
        short,
        long,
        env = "OTEL_WEBHOOK_CERTS_OUT",
        default_value = ".",
        value_name = "DIR",
        help_heading = "Output"
    )]
    out: PathBuf,

    /// Overwrite existing files
    #[arg(long, help_heading = "Output")]
    force: bool,

    /// Lifetime of the certificate and its CA
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
  For Service otel-webhook in namespace otel-webhook:
    otel-webhook certs --out certificates
  For another Service, and an additional IP address:
    otel-webhook certs --service hooks --namespace monitoring --tls-name 10.0.0.7 --tls-lifetime 730d
  In a script; standard output is the value of caBundle, everything else goes to standard error:
    CA_BUNDLE=$(otel-webhook certs --out certificates)

The key of the CA is discarded, so that it cannot sign other certificates. To renew, see certs/README.md.";

/// Only its owner can read the private key.
const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The name of the Secret in the printed commands.
const SECRET: &str = "otel-webhook-tls";

/// Runs the subcommand.
///
/// # Errors
/// If a file exists already, or cannot be written.
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
        return Err(Failure::failed(format!("{path} already exists; to overwrite it, use --force")));
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
            "Created ca.crt, tls.crt and tls.key in {folder}.
The certificate is valid for {names}.

Next steps:
  kubectl create namespace {namespace}
  kubectl create secret generic {SECRET} --namespace {namespace} --type kubernetes.io/tls \\
    --from-file {folder}/tls.crt --from-file {folder}/tls.key --from-file {folder}/ca.crt
  helm install otel-webhook charts/otel-webhook --namespace {namespace} --set fullnameOverride={service} \\
    --set certificates.mode=files --set certificates.files.secretName={SECRET} \\
    --set-file certificates.files.caBundle={folder}/ca.crt

Without the chart, set caBundle of every webhook to:
"
        )
    }
}

/// Writes a temporary file and renames it, so that the file is always complete and a key never has another
/// mode.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = options(mode).open(&beside)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

/// Options to create a file with this mode. On Windows it inherits the permissions of its folder.
fn options(mode: u32) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}
