//! Certificates, keys and CAs from files, reloaded when they change.
//!
//! Files are compared by content every second and not watched: a Secret volume is updated by replacing a symlink of a
//! parent directory, and a watch would stay on the old file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{self, MissedTickBehavior};
use tracing::{info, warn};

use super::clients::{ClientCa, ClientCaError};
use otel_webhook_managed_certs::certificate::{CertificateError, NamedPem, ServingCertificate};
use otel_webhook_telemetry::Metrics;

/// Why files cannot be used.
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
    /// The file contains no CA.
    #[error(transparent)]
    ClientCa(#[from] ClientCaError),
}

/// Files that together contain a `T`, and their last valid content.
pub struct Files<T> {
    paths: Vec<PathBuf>,
    /// What the log calls them.
    what: &'static str,
    parse: fn(&[NamedPem<'_>]) -> Result<T, FilesError>,
    taken: Option<Vec<Vec<u8>>>,
    /// The message of the current failure: each is logged once.
    failure: Option<String>,
}

/// The default interval of reading files.
pub const INTERVAL: Duration = Duration::from_secs(1);

impl Files<ServingCertificate> {
    /// Returns the files of a serving certificate with its chain and of its key, without reading them.
    pub fn certificate(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::new(vec![certificate.into(), key.into()], "certificate files", |files| {
            let [certificate, key] = files else { unreachable!("two paths are read as two files") };
            Ok(ServingCertificate::from_pem(*certificate, *key)?)
        })
    }
}

impl Files<ClientCa> {
    /// Returns the file of the CA bundle that verifies clients, without reading it.
    pub fn client_ca(path: impl Into<PathBuf>) -> Self {
        Self::new(vec![path.into()], "client CA file", |files| {
            let [bundle] = files else { unreachable!("one path is read as one file") };
            Ok(ClientCa::from_pem(bundle.name, bundle.pem)?)
        })
    }
}

impl<T> Files<T> {
    fn new(
        paths: Vec<PathBuf>,
        what: &'static str,
        parse: fn(&[NamedPem<'_>]) -> Result<T, FilesError>,
    ) -> Self {
        Self { paths, what, parse, taken: None, failure: None }
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or used; the message names it.
    pub async fn load(&mut self) -> Result<T, FilesError> {
        let content = self.read().await?;
        self.take(content)
    }

    /// Reads the files every `interval`, and calls `replace` if they contain another valid `T`. Ignores an invalid
    /// one. Ends when `shutdown` becomes true.
    pub async fn follow(
        mut self,
        replace: impl Fn(T),
        metrics: Arc<Metrics>,
        interval: Duration,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let mut ticks = time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // An error means that the sender was dropped, with the rest of the program.
                _ = shutdown.wait_for(|stop| *stop) => return,
                _ = ticks.tick() => {}
            }
            match self.load_if_changed().await {
                Ok(changed) => self.succeeded(&replace, changed),
                Err(error) => self.failed(&metrics, &error),
            }
        }
    }

    async fn load_if_changed(&mut self) -> Result<Option<T>, FilesError> {
        let content = self.read().await?;
        if self.taken.as_ref() == Some(&content) {
            return Ok(None);
        }
        self.take(content).map(Some)
    }

    async fn read(&self) -> Result<Vec<Vec<u8>>, FilesError> {
        let mut content = Vec::new();
        for path in &self.paths {
            let name = || path.to_string_lossy().into_owned();
            let read = tokio::fs::read(path).await;
            content.push(read.map_err(|source| FilesError::Read { name: name(), source })?);
        }
        Ok(content)
    }

    /// Only remembers valid content: invalid content is read, and counted, again.
    fn take(&mut self, content: Vec<Vec<u8>>) -> Result<T, FilesError> {
        let names: Vec<_> = self.paths.iter().map(|path| path.to_string_lossy()).collect();
        let files = names.iter().zip(&content).map(|(name, pem)| NamedPem { name, pem });
        let value = (self.parse)(&files.collect::<Vec<_>>())?;
        self.taken = Some(content);
        Ok(value)
    }

    fn succeeded(&mut self, replace: impl Fn(T), changed: Option<T>) {
        let recovered = self.failure.take().is_some();
        if let Some(value) = changed {
            replace(value);
        } else if recovered {
            info!(file = %self.paths[0].display(), "the {} can be used again, and did not change", self.what);
        }
    }

    fn failed(&mut self, metrics: &Metrics, error: &FilesError) {
        metrics.count_certificate_reload_failure();
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            warn!(error = text, "cannot reload the {}; the previous content stays in use", self.what);
            self.failure = Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::tls::SelfSigned;

    fn write(folder: &Path, pair: &SelfSigned) {
        fs::write(folder.join("tls.crt"), &pair.certificate_pem).expect("a certificate file");
        fs::write(folder.join("tls.key"), &pair.key_pem).expect("a key file");
    }

    fn pair() -> SelfSigned {
        SelfSigned::generate(&["localhost"]).expect("a pair")
    }

    fn files(folder: &Path) -> Files<ServingCertificate> {
        Files::certificate(folder.join("tls.crt"), folder.join("tls.key"))
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
        let (stop, stopped) = watch::channel(false);
        let files = files(Path::new("/nowhere"));
        let task = tokio::spawn(files.follow(drop, Arc::new(Metrics::new()), INTERVAL, stopped));
        stop.send(true).expect("someone listens");
        task.await.expect("an end without panic");
    }
}
