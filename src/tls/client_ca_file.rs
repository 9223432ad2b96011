//! The client CA from a file, reloaded when it changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;
use tracing::{info, warn};

use super::clients::{ClientCa, ClientCaError, CurrentClients};
use super::files::Ticks;
use crate::telemetry::Metrics;

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum ClientCaFileError {
    /// It cannot be read.
    #[error("{name}: cannot be read: {source}")]
    Read {
        /// Its path.
        name: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// It contains no CA.
    #[error(transparent)]
    Ca(#[from] ClientCaError),
}

/// A file with the CAs of clients, and its last valid content.
pub struct ClientCaFile {
    path: PathBuf,
    taken: Option<Vec<u8>>,
    /// The message of the current failure: each is logged once.
    failure: Option<String>,
}

impl ClientCaFile {
    /// Returns the file at this path, without reading it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), taken: None, failure: None }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read or used; the message names it.
    pub async fn load(&mut self) -> Result<ClientCa, ClientCaFileError> {
        let content = self.read().await?;
        self.take(content)
    }

    /// Reads the file every `interval`, and replaces the CA of `clients` if it contains another valid one. Ignores an
    /// invalid one. Ends when `shutdown` becomes true.
    pub async fn follow(
        mut self,
        clients: Arc<CurrentClients>,
        metrics: Arc<Metrics>,
        interval: Duration,
        shutdown: watch::Receiver<bool>,
    ) {
        let mut ticks = Ticks::new(interval, shutdown);
        while ticks.next().await {
            match self.load_if_changed().await {
                Ok(changed) => self.succeeded(&clients, changed),
                Err(error) => self.failed(&metrics, &error),
            }
        }
    }

    async fn load_if_changed(&mut self) -> Result<Option<ClientCa>, ClientCaFileError> {
        let content = self.read().await?;
        if self.taken.as_ref() == Some(&content) {
            return Ok(None);
        }
        self.take(content).map(Some)
    }

    async fn read(&self) -> Result<Vec<u8>, ClientCaFileError> {
        let name = || self.path.to_string_lossy().into_owned();
        tokio::fs::read(&self.path).await.map_err(|source| ClientCaFileError::Read { name: name(), source })
    }

    /// Only remembers a valid bundle: an invalid one is read, and counted, again.
    fn take(&mut self, content: Vec<u8>) -> Result<ClientCa, ClientCaFileError> {
        let ca = ClientCa::from_pem(&self.path.to_string_lossy(), &content)?;
        self.taken = Some(content);
        Ok(ca)
    }

    fn succeeded(&mut self, clients: &CurrentClients, changed: Option<ClientCa>) {
        let recovered = self.failure.take().is_some();
        if let Some(ca) = changed {
            info!(file = %self.path.display(), "verifying clients by a new CA");
            clients.replace(ca);
        } else if recovered {
            info!(file = %self.path.display(), "the client CA file is valid again and unchanged");
        }
    }

    fn failed(&mut self, metrics: &Metrics, error: &ClientCaFileError) {
        metrics.count_certificate_reload_failure();
        let text = error.to_string();
        if self.failure.as_ref() != Some(&text) {
            warn!(
                error = text,
                "cannot reload the client CA file; still verifying clients by the previous CA"
            );
            self.failure = Some(text);
        }
    }
}
