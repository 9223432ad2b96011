//! A program that was built with the feature `fips`, as a client sees it that speaks more than FIPS allows.
//!
//! `OTEL_WEBHOOK_PROGRAM` is the program; `release/fips` builds it.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    process::Command,
    sync::Arc,
};

use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use otel_webhook_testkit::load::server::Server;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, Stream, SupportedCipherSuite,
    crypto::{CryptoProvider, SupportedKxGroup, ring, ring::cipher_suite, ring::kx_group},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};
use tempfile::TempDir;

const SECP256R1: &dyn SupportedKxGroup = kx_group::SECP256R1;

/// The program with its own certificate.
struct Serving {
    server: Server,
    roots: Arc<RootCertStore>,
    _folder: TempDir,
}

fn program() -> Command {
    let path = std::env::var_os("OTEL_WEBHOOK_PROGRAM");
    Command::new(path.expect("OTEL_WEBHOOK_PROGRAM names no program: run release/fips"))
}

impl Serving {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let pair = SelfSigned::generate(&DEFAULT_NAMES).expect("a pair");
        for (name, text) in [("tls.crt", &pair.certificate_pem), ("tls.key", &pair.key_pem)] {
            fs::write(folder.path().join(name), text).expect("its own file");
        }
        let mut command = program();
        command.current_dir(folder.path()).args(["serve", "--source", ".", "--log-format", "text"]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--tls-cert", "tls.crt", "--tls-key", "tls.key"]);
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(pair.ca_pem.as_bytes()).expect("a certificate");
        roots.add(ca).expect("a CA");
        Self { server: Server::start(command), roots: Arc::new(roots), _folder: folder }
    }

    /// Sends a request by one suite and one group. Gives the first line of the answer.
    ///
    /// # Errors
    /// If the handshake fails.
    fn ask(&self, suite: SupportedCipherSuite, group: &'static dyn SupportedKxGroup) -> io::Result<String> {
        let provider =
            CryptoProvider { cipher_suites: vec![suite], kx_groups: vec![group], ..ring::default_provider() };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[suite.version()])
            .expect("the suite is of this version")
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut socket = TcpStream::connect(self.server.address)?;
        let mut stream = Stream::new(&mut connection, &mut socket);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.lines().next().unwrap_or_default().to_owned())
    }
}

#[test]
fn the_version_says_it() {
    let output = program().args(["version", "-o", "json"]).output().expect("the program can be started");
    let about: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(about["build"]["features"], json!(["fips"]));
    assert_eq!(about["build"]["cryptography"], "AWS-LC in FIPS mode");
}

#[test]
fn suites_and_groups_that_fips_allows_are_accepted() {
    let serving = Serving::start();
    for suite in [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ] {
        let line = serving.ask(suite, SECP256R1).unwrap_or_else(|error| panic!("{suite:?}: {error}"));
        assert_eq!(line, "HTTP/1.1 404 Not Found", "{suite:?}");
    }
}

#[test]
fn other_suites_and_groups_are_refused_in_the_handshake() {
    let serving = Serving::start();
    for (suite, group) in [
        (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, SECP256R1),
        (cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, SECP256R1),
        (cipher_suite::TLS13_AES_128_GCM_SHA256, kx_group::X25519),
    ] {
        let problem = serving.ask(suite, group).expect_err("a handshake with what FIPS does not allow");
        let said = problem.to_string();
        assert!(said.contains("HandshakeFailure"), "{suite:?}, {group:?}: {said}");
    }
}
