//! The ledger of restarts in its ConfigMap. A leader that writes it has read it: of two leaders, one has to read again.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use crate::status::MANAGER;
use otel_webhook_fleet::restart::{LEDGER_KEY, Ledger};

/// How long nothing is tried after a failure.
const REST: Duration = Duration::from_secs(10);

/// The ConfigMap, and what it holds.
pub struct Memory {
    api: Api<ConfigMap>,
    name: String,
    /// The ledger with the version that it was read or written as; none as long as it is not known.
    known: Option<(Ledger, Option<String>)>,
    /// When it may be read or written again.
    due: Instant,
    problem: Option<String>,
    /// Whether a request has failed since this was asked.
    has_failed: bool,
}

impl Memory {
    /// Returns the memory in a ConfigMap, which is not read yet.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        let api = Api::namespaced(client, namespace);
        Self {
            api,
            name: name.to_owned(),
            known: None,
            due: Instant::now(),
            problem: None,
            has_failed: false,
        }
    }

    /// Returns why there is no ledger, if there is none.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns whether a request has failed since this was asked.
    pub fn has_failed(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// Returns the ledger, which is read if it is not known.
    pub async fn ledger(&mut self) -> Option<&mut Ledger> {
        if self.known.is_none() && Instant::now() >= self.due {
            match self.read().await {
                Ok(known) => {
                    self.known = Some(known);
                    self.problem = None;
                }
                Err(problem) => self.fail(problem),
            }
        }
        self.known.as_mut().map(|(ledger, _)| ledger)
    }

    /// Writes the ledger. Returns whether it is stored: only then may the steps be taken that are in it.
    pub async fn write(&mut self, ledger: Ledger) -> bool {
        let Some((_, version)) = &self.known else { return false };
        if Instant::now() < self.due {
            return false;
        }
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: version.clone(),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(LEDGER_KEY.to_owned(), ledger.write())])),
            ..ConfigMap::default()
        };
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let written = match version {
            Some(_) => self.api.replace(&self.name, &params, &object).await,
            None => self.api.create(&params, &object).await,
        };
        match written {
            Ok(stored) => {
                self.known = Some((ledger, stored.metadata.resource_version));
                self.problem = None;
                true
            }
            // Another leader has written it, or somebody has deleted it.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
                self.known = None;
                false
            }
            Err(error) => {
                // Whether it was stored is not known.
                self.known = None;
                let name = &self.name;
                self.fail(format!(
                    "the ConfigMap {name} cannot be written, so nothing is restarted: {error}"
                ));
                false
            }
        }
    }

    async fn read(&self) -> Result<(Ledger, Option<String>), String> {
        let name = &self.name;
        let found = self.api.get_opt(name).await;
        let found = found.map_err(|error| {
            format!("the ConfigMap {name} cannot be read, so nothing is restarted: {error}")
        })?;
        let Some(found) = found else { return Ok((Ledger::default(), None)) };
        let version = found.metadata.resource_version;
        let Some(text) = found.data.unwrap_or_default().remove(LEDGER_KEY) else {
            return Ok((Ledger::default(), version));
        };
        let ledger = Ledger::read(&text).map_err(|error| {
            format!(
                "{LEDGER_KEY} in the ConfigMap {name} is not a ledger of restarts, so nothing is restarted until the \
                 ConfigMap is deleted: {error}"
            )
        })?;
        Ok((ledger, version))
    }

    fn fail(&mut self, problem: String) {
        if self.problem.as_ref() != Some(&problem) {
            tracing::warn!("{problem}");
        }
        self.problem = Some(problem);
        self.has_failed = true;
        self.due = Instant::now() + REST;
    }
}
