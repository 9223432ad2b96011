//! `--client-ca`: who gets answers on the webhook port, by the certificate that is shown. With the real program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use otel_webhook_managed_certs::certificate::{NamedPem, ServingCertificate};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, SanType,
};
use rustls::ClientConfig;
use rustls::HandshakeKind;
use rustls::client::Resumption;
use rustls::sign::SingleCertAndKey;
use serde_json::Value;
use tempfile::TempDir;

use super::harness::{Client, count, until};
use crate::binary::Binary;
use crate::cli::{Run, run};

const REVIEW: &str = include_str!("review.json");

/// A CA of clients.
struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A client certificate, as PEM.
#[derive(Clone)]
struct Shown {
    certificate: String,
    key: String,
}

impl Ca {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a CA").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Signs a certificate with this common name and these further names.
    fn issue(&self, common: &str, names: Vec<SanType>, purpose: ExtendedKeyUsagePurpose) -> Shown {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = names;
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Shown { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn client(&self, common: &str) -> Shown {
        self.issue(common, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
    }
}

impl Shown {
    fn show(&self, config: &mut ClientConfig) {
        let named = |pem| NamedPem { name: "client", pem };
        let pair =
            ServingCertificate::from_pem(named(self.certificate.as_bytes()), named(self.key.as_bytes()));
        let key = pair.expect("a good pair").into_key();
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(key));
    }
}

/// The program with this client CA, which lets the names in.
async fn program(ca: &Path, names: &[&str]) -> Binary {
    let ca = ca.to_str().expect("UTF-8");
    let names = names.iter().flat_map(|name| ["--client-name", name]);
    let flags: Vec<_> =
        ["--client-ca", ca, "--log", "info,otel_webhook=debug"].into_iter().chain(names).collect();
    Binary::start(&[], &flags).await
}

fn write(folder: &TempDir, ca: &Ca) -> PathBuf {
    let file = folder.path().join("ca.crt");
    fs::write(&file, &ca.pem).expect("a file");
    file
}

/// Sends a review on a new connection. In TLS 1.3 a client sees that it is rejected only after its handshake.
async fn review(program: &Binary, shown: Option<&Shown>) -> Result<String, String> {
    let connected = program.client_with(|config| {
        if let Some(shown) = shown {
            shown.show(config);
        }
    });
    let mut client: Client = connected.await.map_err(|error| error.to_string())?;
    let answer = client.review(REVIEW).await.map_err(|error| error.to_string())?;
    Ok(answer.text)
}

async fn failures(program: &mut Binary) -> u64 {
    count(&program.metrics().await, "otel_webhook_tls_handshake_failures_total")
}

/// The reasons of failed handshakes in the log, so far.
fn reasons(program: &Binary) -> Vec<String> {
    let failed = |line: &&Value| line["message"] == "the TLS handshake failed" && line["level"] == "DEBUG";
    program
        .log()
        .iter()
        .filter(failed)
        .map(|line| line["error"].as_str().expect("a reason").to_owned())
        .collect()
}

#[tokio::test]
async fn only_a_client_of_the_ca_with_an_allowed_name_is_answered() {
    let (ca, other) = (Ca::new("one"), Ca::new("other"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(&folder, &ca);
    let mut program = program(&file, &["api-server", "spiffe://cluster/api-server"]).await;
    let serving = ca.issue("api-server", Vec::new(), ExtendedKeyUsagePurpose::ServerAuth);
    let rejected = [
        (None, "no certificates"),
        (Some(other.client("api-server")), "UnknownIssuer"),
        (Some(serving), "allows server authentication"),
        (Some(ca.client("system:node:a")), "ApplicationVerificationFailure"),
    ];
    for (number, (shown, reason)) in (1..).zip(rejected) {
        review(&program, shown.as_ref()).await.expect_err(reason);
        until(async || reasons(&program).len() as u64 == number).await;
        let reasons = reasons(&program);
        assert!(reasons.last().is_some_and(|last| last.contains(reason)), "{reason}: {reasons:?}");
        assert_eq!(failures(&mut program).await, number, "{reason}");
    }
    let lines = program.log();
    let message = "the client certificate has none of the names of --client-name";
    let line = lines.iter().find(|line| line["message"] == message).expect("a line");
    assert_eq!((&line["level"], &line["names"]), (&"DEBUG".into(), &"[\"system:node:a\"]".into()), "{line}");
    let uri = SanType::URI("spiffe://cluster/api-server".try_into().expect("a URI"));
    let by_uri = ca.issue("other", vec![uri], ExtendedKeyUsagePurpose::ClientAuth);
    for shown in [ca.client("api-server"), by_uri] {
        let answer = review(&program, Some(&shown)).await.expect("an answer");
        assert!(answer.contains("\"allowed\":true"), "{answer}");
    }
    assert_eq!(failures(&mut program).await, 4);
}

#[tokio::test]
async fn every_name_of_the_ca_is_allowed_if_none_is_given() {
    let ca = Ca::new("one");
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(&write(&folder, &ca), &[]).await;
    review(&program, Some(&ca.client("anyone"))).await.expect("an answer");
    review(&program, None).await.expect_err("without a certificate");
}

/// A resumed session would not be verified again, whatever the CA is by then.
#[tokio::test]
async fn a_replaced_ca_verifies_new_connections() {
    let (first, second) = (Ca::new("one"), Ca::new("other"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(&folder, &first);
    let mut program = program(&file, &[]).await;
    let (old, new) = (first.client("api-server"), second.client("api-server"));
    let resumption = Resumption::in_memory_sessions(8);
    let connect = async |program: &Binary| {
        let resuming = |config: &mut ClientConfig| {
            old.show(config);
            config.resumption = resumption.clone();
        };
        program.client_with(resuming).await.expect("a connection")
    };
    let mut kept = connect(&program).await;
    kept.review(REVIEW).await.expect("an answer");
    assert_eq!(connect(&program).await.handshake, HandshakeKind::Full);

    fs::write(&file, "not a CA").expect("a file");
    until(async || {
        program.log().iter().any(|line| {
            line["message"].as_str().is_some_and(|text| text.starts_with("cannot reload the client CA file"))
                && line["error"].as_str().is_some_and(|error| error.ends_with("has no certificate"))
        })
    })
    .await;
    review(&program, Some(&old)).await.expect("the last valid CA is kept");
    let text = program.metrics().await;
    assert!(!text.contains("otel_webhook_certificate_reload_failures_total 0\n"), "{text}");

    write(&folder, &second);
    until(async || review(&program, Some(&new)).await.is_ok()).await;
    review(&program, Some(&old)).await.expect_err("a client of the CA before");
    kept.review(REVIEW).await.expect("a connection that is there continues");
}

#[tokio::test]
async fn check_shows_a_client_certificate() {
    let ca = Ca::new("one");
    let folder = tempfile::tempdir().expect("a folder");
    let program = program(&write(&folder, &ca), &["api-server"]).await;
    let (url, server_ca) = program.review_target();
    let check = async |client: &Shown| {
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        fs::write(path("tls.crt"), &client.certificate).expect("a file");
        fs::write(path("tls.key"), &client.key).expect("a file");
        let certificate = [path("tls.crt"), path("tls.key")];
        check_review(&url, &server_ca, Some(certificate)).await
    };
    let fine = check(&ca.client("api-server")).await;
    assert_eq!(fine.code, 0, "{}{}", fine.out, fine.err);
    assert!(fine.out.contains("/mutate-v1-pod: responded correctly in "), "{}", fine.out);
    let none = check_review(&url, &server_ca, None).await;
    for rejected in [check(&ca.client("other")).await, none] {
        assert_eq!(rejected.code, 1, "{}{}", rejected.out, rejected.err);
        for words in ["no response from /mutate-v1-pod", "set --client-cert and --client-key"] {
            assert!(rejected.out.contains(words), "{words}: {}", rejected.out);
        }
    }
}

async fn check_review(url: &str, ca: &str, client: Option<[String; 2]>) -> Run {
    let mut arguments = vec!["check".to_owned(), format!("--review={url}"), format!("--ca={ca}")];
    if let Some([certificate, key]) = client {
        arguments.extend([format!("--client-cert={certificate}"), format!("--client-key={key}")]);
    }
    let run = move || run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
    tokio::task::spawn_blocking(run).await.expect("no panic")
}

#[tokio::test]
async fn wrong_flags_of_client_certificates_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty.crt");
    fs::write(&empty, "").expect("a file");
    let serve = ["serve", "--source", ".", "--tls-self-signed"];
    for (flags, words) in [
        (vec!["--client-name", "api-server"], "--client-ca"),
        (vec!["--client-ca", "/nowhere/ca.crt"], "--client-ca /nowhere/ca.crt: cannot be read"),
        (vec!["--client-ca", empty.to_str().expect("UTF-8")], "empty.crt: has no certificate"),
    ] {
        let run = run(&[&serve[..], &flags].concat(), "");
        assert_ne!(run.code, 0, "{flags:?}");
        assert!(run.err.contains(words), "{flags:?}: {}", run.err);
    }
}
