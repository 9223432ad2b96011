//! Whether the API server can convert Instrumentations between the versions that it serves.

use std::time::Duration;

use kube::Client;
use tokio::time::Instant;

use otel_webhook_store::served;

/// How often it is asked.
const PERIOD: Duration = Duration::from_secs(30);

/// The conversion of the CRD.
pub struct Conversion {
    client: Client,
    due: Instant,
    is_failing: bool,
}

impl Conversion {
    /// Returns a conversion that is asked with this client.
    pub fn new(client: Client) -> Self {
        Self { client, due: Instant::now(), is_failing: false }
    }

    /// Asks again, if that is due. Returns why it fails, if it did not before.
    pub async fn refresh(&mut self) -> Option<String> {
        if Instant::now() < self.due {
            return None;
        }
        self.due = Instant::now() + PERIOD;
        let problem = match served::conversion_problem(&self.client).await {
            Ok(problem) => problem,
            Err(error) => {
                tracing::warn!(%error, "whether Instrumentations can be converted is not known; retrying");
                return None;
            }
        };
        let was_failing = std::mem::replace(&mut self.is_failing, problem.is_some());
        match problem {
            Some(problem) if !was_failing => {
                tracing::warn!(
                    problem,
                    "Instrumentations cannot be converted; otel-webhook check prints what to do"
                );
                Some(problem)
            }
            _ => None,
        }
    }
}
