//! Certificate and key from files, reloaded when they change.
//!
//! Files are compared by content every second and not watched: a Secret volume is updated by replacing a symlink of a
//! parent directory, and a watch would stay on the old file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{self, Interval, MissedTickBehavior};
use tracing::{info, warn};

use super::current::CurrentCertificate;
use crate::telemetry::Metrics;
use otel_webhook_managed_certs::certificate::{CertificateError, NamedPem, ServingCertificate};

/// Why the files cannot be used.
#[derive(Debug, Error)]
pub enum FilesError {
    /// One of them cannot be read.
    #[error("{name}: cannot be read: {source}")]
    Read {
        /// Its path.
        name: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// They do not contain a certificate and its key.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A certificate file and a key file, and their last valid content.
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    taken: Option<Content>,
    /// The message of the current failure: each is logged once.
    failure: Option<String>,
}

#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    /// The default interval of reading the files.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// Returns the files at these paths, without reading them.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), taken: None, failure: None }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or used; the message names it.
    pub async fn load(&mut self) -> Result<ServingCertificate, FilesError> {
        let content = self.read().await?;
        self.take(content)
    }

    /// Reads the files every `interval`, and replaces `current` if they contain another valid pair. Ignores an invalid
    /// pair. Ends when `shutdown` becomes true.
    pub async fn follow(
        mut self,
        current: Arc<CurrentCertificate>,
        metrics: Arc<Metrics>,
        interval: Duration,
        shutdown: watch::Receiver<bool>,
    ) {
        let mut ticks = Ticks::new(interval, shutdown);
        while ticks.next().await {
            match self.load_if_changed().await {
                Ok(changed) => self.succeeded(&current, changed),
                Err(error) => self.failed(&metrics, &error),
            }
        }
    }

    async fn load_if_changed(&mut self) -> Result<Option<ServingCertificate>, FilesError> {
        let content = self.read().await?;
        if self.taken.as_ref() == Some(&content) {
            return Ok(None);
        }
        self.take(content).map(Some)
    }

    async fn read(&self) -> Result<Content, FilesError> {
        Ok(Content { certificate: read_file(&self.certificate).await?, key: read_file(&self.key).await? })
    }

    /// Only remembers a valid pair: an invalid one is read, and counted, again.
    fn take(&mut self, content: Content) -> Result<ServingCertificate, FilesError> {
        let certificate = ServingCertificate::from_pem(
            NamedPem { name: &self.certificate.to_string_lossy(), pem: &content.certificate },
            NamedPem { name: &self.key.to_string_lossy(), pem: &content.key },
        )?;
        self.taken = Some(content);
        Ok(certificate)
    }

    fn succeeded(&mut self, current: &CurrentCertificate, changed: Option<ServingCertificate>) {
        let recovered = self.failure.take().is_some();
        if let Some(certificate) = changed {
            info!(file = %self.certificate.display(), not_after = certificate.not_after(), "serving a new certificate");
            current.replace(certificate);
        } else if recovered {
            info!(file = %self.certificate.display(), "the certificate files are valid again and unchanged");
        }
    }

    fn failed(&mut self, metrics: &Metrics, error: &FilesError) {
        metrics.count_certificate_reload_failure();
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            warn!(
                error = text,
                "cannot reload the certificate files; still serving the previous certificate"
            );
            self.failure = Some(text);
        }
    }
}

/// When to read files again, until the program ends.
pub(super) struct Ticks {
    ticks: Interval,
    shutdown: watch::Receiver<bool>,
}

impl Ticks {
    pub(super) fn new(interval: Duration, shutdown: watch::Receiver<bool>) -> Self {
        let mut ticks = time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, shutdown }
    }

    /// Waits for the next time; false at the end of the program.
    pub(super) async fn next(&mut self) -> bool {
        tokio::select! {
            // An error means that the sender was dropped, with the rest of the program.
            _ = self.shutdown.wait_for(|stop| *stop) => false,
            _ = self.ticks.tick() => true,
        }
    }
}

async fn read_file(path: &Path) -> Result<Vec<u8>, FilesError> {
    tokio::fs::read(path)
        .await
        .map_err(|source| FilesError::Read { name: path.to_string_lossy().into_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tls::SelfSigned;

    fn write(folder: &Path, pair: &SelfSigned) {
        fs::write(folder.join("tls.crt"), &pair.certificate_pem).expect("a certificate file");
        fs::write(folder.join("tls.key"), &pair.key_pem).expect("a key file");
    }

    fn pair() -> SelfSigned {
        SelfSigned::generate(&["localhost"]).expect("a pair")
    }

    fn files(folder: &Path) -> CertificateFiles {
        CertificateFiles::new(folder.join("tls.crt"), folder.join("tls.key"))
    }

    #[tokio::test]
    async fn only_changed_files_are_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &pair());
        let mut files = files(folder.path());
        files.load().await.expect("a good pair");
        assert!(files.load_if_changed().await.expect("still good").is_none());

        let next = pair();
        write(folder.path(), &next);

        let taken = files.load_if_changed().await.expect("good").expect("another one");
        assert_eq!(taken.chain(), next.serving().expect("good").chain());
        assert!(files.load_if_changed().await.expect("still good").is_none());
    }

    #[tokio::test]
    async fn an_invalid_pair_is_an_error_until_it_is_valid() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &pair());
        let mut files = files(folder.path());
        files.load().await.expect("a good pair");

        let next = pair();
        fs::write(folder.path().join("tls.crt"), &next.certificate_pem).expect("half of the pair");
        for _ in 0..2 {
            let error = files.load_if_changed().await.expect_err("the key is of the pair before");
            assert!(
                matches!(error, FilesError::Certificate(CertificateError::KeyMismatch { .. })),
                "{error}"
            );
        }
        write(folder.path(), &next);
        assert!(files.load_if_changed().await.expect("good").is_some());
    }

    #[tokio::test]
    async fn the_error_of_a_missing_file_names_it() {
        let error = files(Path::new("/nowhere")).load().await.expect_err("nothing there");
        assert!(error.to_string().starts_with("/nowhere/tls.crt: cannot be read: "), "{error}");
    }

    #[test]
    fn a_failure_is_logged_once_and_counted_each_time() {
        let metrics = Metrics::new();
        let mut files = files(Path::new("/nowhere"));
        let error = CertificateError::NoCertificate { name: "tls.crt".to_owned() }.into();
        files.failed(&metrics, &error);
        assert_eq!(files.failure.as_deref(), Some("tls.crt: has no certificate"));
        files.failed(&metrics, &error);
        assert!(metrics.encode().contains("otel_webhook_certificate_reload_failures_total 2\n"));
    }

    #[tokio::test]
    async fn following_ends_with_the_program() {
        let metrics = Arc::new(Metrics::new());
        let current =
            Arc::new(CurrentCertificate::new(pair().serving().expect("good"), Arc::clone(&metrics)));
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(files(Path::new("/nowhere")).follow(
            current,
            metrics,
            CertificateFiles::INTERVAL,
            stopped,
        ));
        stop.send(true).expect("someone listens");
        task.await.expect("an end without panic");
    }
}
