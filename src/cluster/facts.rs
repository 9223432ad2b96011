//! The installation, read once: the webhook configurations, their Services, and the webhook's pods; and what all results
//! depend on, and is not known or not working.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    core::v1::{ConfigMap, Service},
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::core::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    flags::InstalledFlags,
    known::{Flags, Known},
    reader::{Asked, ClusterReader, FailedRequest},
    running::{self, CONTROLLER_LABEL, Pod, Running, RunningController},
};
use otel_webhook_inject::reason::ObjectName;
use otel_webhook_server::{
    registration::{Backend, Registration},
    subject::Subject,
};

pub use super::running::Release;

/// The Service of a webhook or of an endpoint, as the cluster has it.
#[derive(Debug)]
pub struct ServiceFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The ports that are used.
    pub ports: Vec<i32>,
    /// The Service.
    pub service: Asked<Option<Service>>,
    /// Its endpoints.
    pub slices: Asked<Vec<EndpointSlice>>,
}

/// The webhook configurations and their backends.
#[derive(Debug, Default)]
pub struct Facts {
    /// The webhook configurations.
    pub registration: Registration,
    /// Whether all configurations could be read; otherwise missing ones are not reported.
    pub is_registration_told: bool,
    /// The webhooks for pods by the settings of the release, if the configurations could not be read.
    published: Option<Registration>,
    /// The Services of the webhooks.
    pub services: Vec<ServiceFacts>,
    /// A pod of the webhook.
    pub running: Option<Running>,
    /// The controller in the namespace of the webhook.
    pub controller: Option<RunningController>,
    /// The requests that failed.
    pub failed: Vec<FailedRequest>,
}

impl Facts {
    /// Reads what is installed, with what the chart has written for users who may not read it.
    pub async fn read(cluster: &ClusterReader, installed: &InstalledFlags) -> Self {
        let mut facts = Self::gather(cluster, &installed.webhook_configuration).await;
        facts.read_settings(cluster, &installed.settings).await;
        facts
    }

    /// Reads the configurations with these names, and their backends.
    pub async fn gather(cluster: &ClusterReader, names: &[String]) -> Self {
        let mut facts = Self::default();
        let mutating = cluster.list::<MutatingWebhookConfiguration>(None, None).await;
        let validating = cluster.list::<ValidatingWebhookConfiguration>(None, None).await;
        facts.is_registration_told = mutating.is_ok() && validating.is_ok();
        let (mutating, validating) = (facts.answered(mutating), facts.answered(validating));
        facts.registration = Registration::new(names, &mutating, &validating);
        let mut ports: BTreeMap<(String, String), Vec<i32>> = BTreeMap::new();
        for hook in &facts.registration.ours {
            if let Backend::Service { namespace, name, port, .. } = &hook.backend {
                let known = ports.entry((namespace.clone(), name.clone())).or_default();
                if !known.contains(port) {
                    known.push(*port);
                }
            }
        }
        for ((namespace, name), ports) in ports {
            let service = ServiceFacts::read(cluster, namespace, name, ports).await;
            let namespace = &*service.namespace;
            facts.find_pods(cluster, namespace, &service.service).await;
            if facts.controller.is_none() {
                let pods = cluster.list::<Pod>(Some(namespace), Some(CONTROLLER_LABEL)).await;
                facts.controller = running::controller(&facts.answered(pods));
            }
            facts.services.push(service);
        }
        facts
    }

    /// Reads what the chart has written into a ConfigMap, if the configurations cannot be read: a configuration without
    /// its `caBundle`, and a pod of the webhook, reduced to its flags.
    async fn read_settings(&mut self, cluster: &ClusterReader, settings: &ObjectName) {
        if self.is_registration_told {
            return;
        }
        let ObjectName { namespace, name } = settings;
        let kind = ApiResource::erase::<ConfigMap>(&());
        let Ok(Some(found)) = cluster.get_value(&kind, Some(namespace), name).await else { return };
        let configuration = manifest::<MutatingWebhookConfiguration>(&found, "mutatingWebhookConfiguration");
        self.published = configuration.map(|own| {
            let name = own.metadata.name.clone().unwrap_or_default();
            Registration::new(&[name], &[own], &[])
        });
        let pod = manifest::<Pod>(&found, "pod").and_then(|pod| running::newest(&[pod]));
        let running =
            pod.map(|running| Running { pod: Subject::new("ConfigMap", namespace, name), ..running });
        self.running = self.running.take().or(running);
    }

    /// Returns the webhooks that select pods; none if they are not known.
    pub fn selecting(&self) -> Option<&Registration> {
        Some(&self.registration).filter(|_| self.is_registration_told).or(self.published.as_ref())
    }

    /// Finds a pod of a Service, to read the webhook's flags.
    async fn find_pods(
        &mut self,
        cluster: &ClusterReader,
        namespace: &str,
        service: &Asked<Option<Service>>,
    ) {
        let Ok(Some(service)) = service else { return };
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { return };
        let pairs: Vec<_> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let pods = cluster.list::<Pod>(Some(namespace), Some(&pairs.join(","))).await;
        let pods = self.answered(pods);
        self.running = self.running.take().or_else(|| running::newest(&pods));
    }

    /// Returns the injection flags that results are based on: those of the webhook's pods, unless those of the
    /// command are to be used or stand in for them.
    pub fn flags<'f>(&'f self, installed: &'f InstalledFlags) -> Flags<'f> {
        let running = self.running.as_ref().filter(|_| !installed.own_flags);
        let found = running.and_then(|running| running.flags.as_ref().ok());
        Flags {
            injection: found.map_or(&installed.injection, |flags| &flags.injection),
            release: self.release(),
            unread: self.unread_flags().filter(|_| !installed.own_flags),
            ahead: Vec::new(),
        }
    }

    /// Returns the objects that can pause all injection; none if no webhook was found.
    pub fn release(&self) -> Option<Release> {
        let flags = self.running.as_ref().and_then(|running| running.flags.as_ref().ok());
        let of_service =
            || Some(Release { namespace: self.services.first()?.namespace.clone(), lease: None });
        flags.map(|flags| flags.release.clone()).or_else(of_service)
    }

    /// Returns whether the controller watches some namespaces only.
    pub fn is_controller_scoped(&self) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.is_scoped)
    }

    /// Returns why the webhook's flags are unknown; none if they are known, or if no webhook was found.
    pub fn unread_flags(&self) -> Option<String> {
        if let Some(running) = &self.running {
            let problem = running.flags.as_ref().err()?;
            return Some(format!("the flags of {} cannot be read: {problem}", running.pod));
        }
        let of_services = self.services.iter().filter_map(|facts| facts.service.as_ref().err());
        let request = &self.failed.iter().chain(of_services).next()?.question;
        Some(format!("the webhook's flags are not readable by you ({request})"))
    }

    /// Returns why the flags of the command are used instead of the webhook's; none if those are used.
    pub fn why_assumed(&self) -> Option<String> {
        let none = self.running.is_none().then(|| "no pod of the webhook found".to_owned());
        self.unread_flags().or(none)
    }

    fn answered<T>(&mut self, asked: Asked<Vec<T>>) -> Vec<T> {
        asked.unwrap_or_else(|failed| {
            self.failed.push(failed);
            Vec::new()
        })
    }
}

impl ServiceFacts {
    /// Reads a Service and its endpoints.
    pub async fn read(cluster: &ClusterReader, namespace: String, name: String, ports: Vec<i32>) -> Self {
        let service = cluster.get::<Service>(Some(&namespace), &name).await;
        let of_service = format!("kubernetes.io/service-name={name}");
        let slices = cluster.list::<EndpointSlice>(Some(&namespace), Some(&of_service)).await;
        Self { namespace, name, ports, service, slices }
    }

    /// Returns why no review reaches the webhook, if that is so.
    pub fn outage(&self) -> Option<String> {
        let Self { namespace, name, ports, .. } = self;
        let Some(service) = self.service.as_ref().ok()? else {
            return Some(format!("Service {namespace}/{name} not found: pods are not injected"));
        };
        let spec = service.spec.as_ref()?;
        if spec.external_name.as_ref().is_some_and(|name| !name.is_empty()) {
            return None;
        }
        let slices = self.slices.as_ref().ok()?;
        let named = |port: &i32| spec.ports.iter().flatten().find(|own| own.port == *port);
        let is_ready = |port: &i32| {
            named(port).is_some_and(|own| ready(slices, own.name.as_deref().unwrap_or_default()) > 0)
        };
        let out = ports.iter().find(|port| !is_ready(port))?;
        Some(format!(
            "Service {namespace}/{name} has no ready endpoints for port {out}: pods are not injected"
        ))
    }
}

/// Returns a manifest of a ConfigMap, if it is one.
fn manifest<T: DeserializeOwned>(config_map: &Value, key: &str) -> Option<T> {
    serde_json::from_str(config_map["data"][key].as_str()?).ok()
}

/// Returns the number of ready addresses of a port.
pub fn ready(slices: &[EndpointSlice], port: &str) -> usize {
    ready_endpoints(slices, port).map(|(endpoint, _)| endpoint.addresses.len()).sum()
}

/// Returns the ready endpoints of a port of a Service, each with its own port.
pub fn ready_endpoints<'s>(
    slices: &'s [EndpointSlice],
    port: &'s str,
) -> impl Iterator<Item = (&'s Endpoint, Option<i32>)> {
    // According to the API, unknown means ready.
    let is_ready = |endpoint: &&Endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    };
    let of_slice = move |slice: &'s EndpointSlice| {
        let mut ports = slice.ports.iter().flatten();
        let own = ports.find(|own| own.name.as_deref().unwrap_or_default() == port)?;
        Some(slice.endpoints.iter().flatten().filter(is_ready).map(|endpoint| (endpoint, own.port)))
    };
    slices.iter().filter_map(of_slice).flatten()
}

/// Returns a sentence for each; `own_flags` is the flag of this name.
pub fn caveats(facts: &Facts, known: &Known, own_flags: bool) -> Vec<String> {
    let assumed = facts.why_assumed().filter(|_| !own_flags);
    let assumed = assumed.map(|why| format!("{why}; the results are based on the flags of this command"));
    let request = facts.failed.first().filter(|_| facts.selecting().is_none());
    let registration = request.map(|FailedRequest { question, .. }| {
        format!("whether API servers send pods to the webhook is not readable by you ({question})")
    });
    let outages = facts.services.iter().filter_map(ServiceFacts::outage);
    assumed
        .into_iter()
        .chain(registration)
        .chain(outages)
        .chain(known.failed.iter().map(not_readable))
        .collect()
}

/// Returns the sentence for a request that failed.
pub fn not_readable(FailedRequest { question, problem }: &FailedRequest) -> String {
    format!("not readable by you ({question}): {problem}")
}
