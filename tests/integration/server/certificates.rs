//! Certificates that change on disk while connections go on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use otel_webhook::tls::{CertificateFiles, DEFAULT_NAMES, SelfSigned};
use tempfile::TempDir;

use super::harness::{Server, soon, trusting, until};

const OFTEN: Duration = Duration::from_millis(5);

/// A folder as the kubelet mounts a Secret: files are links into `..data`, which is a link to a
/// folder with a date for a name, and is replaced by a rename.
struct SecretVolume {
    folder: TempDir,
    versions: u32,
}

impl SecretVolume {
    fn new(certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut volume = Self { folder, versions: 0 };
        volume.swap(certificate, key);
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), volume.path().join(file)).expect("a link");
        }
        volume
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn swap(&mut self, certificate: &str, key: &str) {
        let old = fs::read_link(self.path().join("..data")).ok();
        self.versions += 1;
        let name = format!("..2026_01_01_00_00_{:02}.1", self.versions);
        let version = self.path().join(&name);
        fs::create_dir(&version).expect("a folder");
        fs::write(version.join("tls.crt"), certificate).expect("a certificate");
        fs::write(version.join("tls.key"), key).expect("a key");
        let next = self.path().join("..data_tmp");
        symlink(&name, &next).expect("a link");
        fs::rename(&next, self.path().join("..data")).expect("a swap");
        if let Some(old) = old {
            fs::remove_dir_all(self.path().join(old)).expect("the old folder to go");
        }
    }

    fn swap_pair(&mut self, pair: &SelfSigned) {
        self.swap(&pair.certificate_pem, &pair.key_pem);
    }
}

fn pair() -> SelfSigned {
    SelfSigned::generate(&DEFAULT_NAMES).expect("a pair")
}

/// A server that follows the files of `volume`, which hold what it serves.
async fn following(volume: &SecretVolume) -> Server {
    let server = Server::of(Router::new().route("/", get(async || "fine")));
    let mut files = CertificateFiles::new(volume.path().join("tls.crt"), volume.path().join("tls.key"));
    server.certificate.replace(files.load().await.expect("a good pair"));
    let (current, metrics) = (Arc::clone(&server.certificate), Arc::clone(&server.metrics));
    tokio::spawn(files.follow(current, metrics, OFTEN, server.shutdown.stopping()));
    server
}

#[tokio::test]
async fn a_swapped_certificate_is_shown_to_new_connections_only() {
    let (first, second) = (pair(), pair());
    let mut volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    let mut old = server.client_with(trusting(&first.ca_pem)).await.expect("a connection");
    assert_eq!(old.get("/").await.expect("an answer").text, "fine");

    volume.swap_pair(&second);

    until(async || server.client_with(trusting(&second.ca_pem)).await.is_ok()).await;
    let new = server.client_with(trusting(&second.ca_pem)).await.expect("a connection");
    assert_ne!(new.leaf, old.leaf);
    assert_eq!(old.get("/").await.expect("an answer").text, "fine");
    let refused = server.client_with(trusting(&first.ca_pem)).await;
    assert!(refused.is_err(), "the old certificate is still shown");

    // A second swap: a watch on the first target would be blind by now.
    volume.swap_pair(&first);
    until(async || server.client_with(trusting(&first.ca_pem)).await.is_ok()).await;
}

#[tokio::test]
async fn a_bad_pair_keeps_the_old_one_and_is_counted() {
    // A read may fall between two swaps, so that no two of them may make a good pair together.
    let (first, second, third) = (pair(), pair(), pair());
    let mut volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    let half = &third.certificate_pem[..third.certificate_pem.len() / 2];
    let mut seen = failures(&server);
    for (certificate, key) in
        [(second.certificate_pem.as_str(), first.key_pem.as_str()), (half, third.key_pem.as_str()), ("", "")]
    {
        volume.swap(certificate, key);
        // The second look began after the swap, whatever the first had read.
        until(async || failures(&server) >= seen + 2).await;
        seen = failures(&server);
        let mut client = server.client_with(trusting(&first.ca_pem)).await.expect("a connection");
        assert_eq!(client.get("/").await.expect("an answer").text, "fine");
    }
    volume.swap_pair(&second);
    until(async || server.client_with(trusting(&second.ca_pem)).await.is_ok()).await;
}

#[tokio::test]
async fn a_certificate_that_is_gone_for_a_while_keeps_the_old_one() {
    let first = pair();
    let volume = SecretVolume::new(&first.certificate_pem, &first.key_pem);
    let server = following(&volume).await;
    fs::rename(volume.path().join("..data"), volume.path().join("..away")).expect("a rename");
    until(async || failures(&server) > 0).await;
    let mut client = soon(server.client_with(trusting(&first.ca_pem))).await.expect("a connection");
    assert_eq!(client.get("/").await.expect("an answer").text, "fine");
}

fn failures(server: &Server) -> u64 {
    let text = server.metrics.encode();
    let name = "otel_webhook_certificate_reload_failures_total ";
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    line.parse().expect("a number")
}
