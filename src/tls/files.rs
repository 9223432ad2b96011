//! Certificate and key in files that change while the process runs.
//!
//! Files are compared by content, once a second, instead of being watched: a Secret volume changes
//! by swapping a symlink two levels up, and a watch on the file stays with the old one for ever.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{self, MissedTickBehavior};
use tracing::{info, warn};

use super::current::CurrentCertificate;
use crate::telemetry::Metrics;
use otel_webhook_managed_certs::certificate::{CertificateError, NamedPem, ServingCertificate};

/// Why the files cannot be served.
#[derive(Debug, Error)]
pub enum FilesError {
    /// One of them cannot be read.
    #[error("{name}: cannot be read: {source}")]
    Read {
        /// Its path.
        name: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// What they hold is no certificate with its key.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A certificate file and a key file, and what they held when they were last used.
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    taken: Option<Content>,
    /// Text of the last failure, while it lasts: each is logged once.
    failure: Option<String>,
}

#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    /// How often the files are looked at when nobody is in a hurry.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// The files at these paths; nothing is read yet.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), taken: None, failure: None }
    }

    /// What the files hold now.
    ///
    /// # Errors
    /// When a file cannot be read or used; the error names it.
    pub async fn load(&mut self) -> Result<ServingCertificate, FilesError> {
        let content = self.read().await?;
        self.take(content)
    }

    /// Looks at the files every `interval`, and replaces `current` when they hold another pair that
    /// can be served. A pair that cannot leaves everything as it is. Ends when `shutdown` turns true.
    pub async fn follow(
        mut self,
        current: Arc<CurrentCertificate>,
        metrics: Arc<Metrics>,
        interval: Duration,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let mut ticks = time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // An error means that the sender is gone, and with it the rest of the program.
                _ = shutdown.wait_for(|stop| *stop) => return,
                _ = ticks.tick() => {}
            }
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

    /// The pair is remembered only when it is good: a bad one is tried, and counted, again.
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
            info!(file = %self.certificate.display(), "the certificate files are as they were before they failed");
        }
    }

    fn failed(&mut self, metrics: &Metrics, error: &FilesError) {
        metrics.count_certificate_reload_failure();
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            warn!(
                error = text,
                "the certificate files cannot be used; still serving the certificate from before"
            );
            self.failure = Some(text);
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
    async fn only_another_content_is_taken() {
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
    async fn a_bad_pair_is_an_error_until_it_is_good() {
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
    async fn a_missing_file_is_named() {
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
