//! Flags of client certificates on the webhook port.

use std::{path::PathBuf, sync::Arc};

use clap::{Args, builder::NonEmptyStringValueParser};
use futures::{FutureExt, future::BoxFuture};

use tokio::sync::watch;

use super::failure::Failure;
use crate::{
    telemetry::Metrics,
    tls::{CurrentClients, Files, INTERVAL},
};

/// Flags of the clients that may connect.
#[derive(Debug, Args)]
#[command(next_help_heading = "Clients of the webhook port")]
pub struct ClientCaFlags {
    /// Accept only clients with a certificate of this CA bundle (PEM); reloaded within a second of a change. By
    /// default, every client is accepted: API servers show a certificate only if their admission configuration
    /// has one
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Accept only clients with this common name, DNS name or URI in their certificate; may be repeated; by default,
    /// with any name
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_NAME", value_name = "NAME", value_delimiter = ',',
        requires = "client_ca", value_parser = NonEmptyStringValueParser::new())]
    client_name: Vec<String>,
}

/// The clients that may connect, and the task that reloads their CA.
pub struct Clients {
    pub current: Arc<CurrentClients>,
    pub upkeep: BoxFuture<'static, ()>,
}

impl ClientCaFlags {
    /// Starts with the client CA of these flags, if there is one. `stopping` becomes true when the program ends.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub async fn start(
        &self,
        metrics: Arc<Metrics>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Option<Clients>, Failure> {
        let Some(path) = &self.client_ca else { return Ok(None) };
        let mut file = Files::client_ca(path);
        let ca = file.load().await.map_err(|error| Failure::failed(format!("--client-ca {error}")))?;
        let current = Arc::new(CurrentClients::new(ca, self.client_name.clone()));
        let (clients, path) = (Arc::clone(&current), path.clone());
        let replace = move |ca| {
            tracing::info!(file = %path.display(), "verifying clients by a new CA");
            clients.replace(ca);
        };
        let upkeep = file.follow(replace, metrics, INTERVAL, stopping);
        Ok(Some(Clients { current, upkeep: upkeep.boxed() }))
    }
}
