//! Certificates for one's own setup.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use otel_webhook_managed_certs::certificate::{NamedPem, ServingCertificate};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::{Run, run};

const FILES: [&str; 3] = ["ca.crt", "tls.crt", "tls.key"];

fn certs(folder: &Path, flags: &[&str]) -> Run {
    let folder = folder.to_str().expect("a path of text");
    run(&[&["certs", "--out", folder], flags].concat(), "")
}

fn read(folder: &Path) -> [String; 3] {
    FILES.map(|file| fs::read_to_string(folder.join(file)).expect("a file"))
}

/// Whether a client that trusts `ca` takes the certificate for the one of `name`.
fn is_trusted(ca: &str, certificate: &str, name: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).expect("a certificate")).expect("a CA");
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let leaf = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let name = ServerName::try_from(name).expect("a name");
    let verifier = verifier.build().expect("a verifier");
    verifier.verify_server_cert(&leaf, &[], &name, &[], UnixTime::now()).is_ok()
}

#[test]
fn three_files_are_written_that_belong_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("certificates");
    let ran = certs(&out, &["--service", "hooks", "--namespace", "monitoring", "--tls-name", "10.0.0.7"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let [ca, certificate, key] = read(&out);
    for name in ["hooks", "hooks.monitoring.svc", "hooks.monitoring.svc.cluster.local", "10.0.0.7"] {
        assert!(is_trusted(&ca, &certificate, name), "{name}");
    }
    assert!(!is_trusted(&ca, &certificate, "otel-webhook.otel-webhook.svc"));
    let pem = |name, pem: &'static str| NamedPem { name, pem: pem.as_bytes() };
    let (certificate, key): (&str, &str) = (certificate.leak(), key.leak());
    ServingCertificate::from_pem(pem("tls.crt", certificate), pem("tls.key", key)).expect("a pair");
    let mode = |file: &str| fs::metadata(out.join(file)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode("tls.key"), 0o600);
    assert_eq!(fs::read_dir(&out).expect("a folder").count(), FILES.len(), "nothing is left beside them");

    assert_eq!(BASE64_STANDARD.decode(ran.out.trim_end()).expect("base64"), ca.as_bytes());
    assert!(
        ran.err.contains("kubectl create secret generic otel-webhook-tls --namespace monitoring"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--set fullnameOverride=hooks"), "{}", ran.err);
    let secret = key.lines().nth(1).expect("a line of the key");
    assert!(!ran.err.contains(secret) && !ran.out.contains(secret));
}

#[test]
fn what_is_there_is_replaced_only_when_asked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("tls.key"), "mine").expect("a file");
    let ran = certs(folder, &[]);
    assert_eq!(ran.code, 1);
    let expected = format!(
        "otel-webhook: {} already exists; to overwrite it, use --force\n",
        folder.join("tls.key").display()
    );
    assert_eq!((ran.err, ran.out), (expected, String::new()));
    assert!(!folder.join("ca.crt").exists(), "nothing is written");
    assert_eq!(fs::read_to_string(folder.join("tls.key")).expect("a file"), "mine");

    assert_eq!(certs(folder, &["--force"]).code, 0);
    let first = read(folder);
    assert_eq!(certs(folder, &["--force"]).code, 0);
    let second = read(folder);
    assert!(is_trusted(&second[0], &second[1], "otel-webhook.otel-webhook.svc"));
    assert!(
        !is_trusted(&first[0], &second[1], "otel-webhook.otel-webhook.svc"),
        "the first key is forgotten"
    );
}

#[test]
fn a_lifetime_or_name_that_is_none_is_refused_with_what_is_valid() {
    for (flags, problem) in [
        (["--tls-lifetime", "1y"], "expected a duration such as 90d, 12h, 30s or 500ms"),
        (["--tls-name", "a b"], "expected a DNS name or an IP address"),
        (["--service", "A"], "expected up to 63 lower-case letters"),
    ] {
        let ran = certs(Path::new("/nowhere"), &flags);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(problem) && ran.err.contains(flags[1]), "{}", ran.err);
    }
    let ran = certs(Path::new("/proc/nowhere"), &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("otel-webhook: /proc/nowhere: "), "{}", ran.err);
}
