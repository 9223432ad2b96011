//! The endpoint of the exporter and its TLS files (docs/reference/injection.md, "Exporter and TLS").

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    added::NewMount,
    edit::{Mounts, NewVolume, Volumes},
    env::{Entry, Env, Setting},
    held::held,
    pod::{Pod, Volume},
    reason::{Reason, Taken},
};
use otel_webhook_api as api;

/// A compiled exporter.
#[derive(Debug, Default)]
pub struct Exporter {
    /// The variables of the endpoint and the paths of TLS files.
    settings: Vec<Setting>,
    /// The volumes of these paths.
    volumes: Vec<CertificateVolume>,
}

#[derive(Debug)]
struct CertificateVolume {
    name: String,
    path: String,
    object: String,
    is_secret: bool,
}

held!(Exporter: settings, volumes;);
held!(CertificateVolume: name, path, object; is_secret);

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The maximum length of a volume's name.
const LONGEST_NAME: usize = 63;

impl Exporter {
    /// Compiles an exporter.
    pub fn new(exporter: &api::Exporter, protocol: Option<&str>) -> Self {
        let mut ready = Self::default();
        if let Some(endpoint) = filled(exporter.endpoint.as_ref()) {
            ready.push(ENDPOINT, endpoint.to_owned());
        }
        if let Some(protocol) = protocol {
            ready.push(api::otlp::PROTOCOL, protocol.to_owned());
        }
        if let Some(tls) = &exporter.tls {
            ready.add_certificates(tls);
        }
        ready
    }

    /// The endpoint, if there is one.
    pub fn endpoint(&self) -> Option<&str> {
        let found = self.settings.iter().find(|setting| setting.name == ENDPOINT);
        found.map(|setting| setting.value.as_str())
    }

    /// The variables of the endpoint and the certificates.
    pub fn variables(&self) -> &[Setting] {
        &self.settings
    }

    /// The objects with certificates; their existence is not checked (D20).
    pub fn objects(&self) -> impl Iterator<Item = String> {
        self.volumes.iter().map(|volume| {
            let kind = if volume.is_secret { "Secret" } else { "ConfigMap" };
            format!("{kind} {}", volume.object)
        })
    }

    /// The Secrets with certificates.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.volumes.iter().filter(|volume| volume.is_secret).map(|volume| volume.object.as_str())
    }

    /// Checks that the pod has no other volume with one of the
    /// names, and does not get one. Objects with names that differ only by a dot and a dash, or after the 63
    /// characters of a volume's name, would share a volume.
    ///
    /// # Errors
    /// The name that is already used.
    pub fn check_pod(&self, pod: &Pod<'_>, added: &Volumes<'_>) -> Result<(), Reason> {
        for volume in &self.volumes {
            let of_pod = pod.spec.volumes.iter().find(|own| *own.name == *volume.name);
            let other = added.iter().find(|other| other.name == volume.name);
            let is_taken = of_pod.is_some_and(|own| !volume.is_same(own))
                || other.is_some_and(|other| *other.source != volume.source());
            if is_taken {
                return Err(Reason::taken(Taken::Volume, &volume.name));
            }
        }
        Ok(())
    }

    /// Checks that the container has no own mount at one of the paths.
    ///
    /// # Errors
    /// The path that is already used.
    pub fn check_mounts(&self, mounts: &Mounts<'_>) -> Result<(), Reason> {
        for volume in &self.volumes {
            if !mounts.has_volume(&volume.name) && mounts.has_path(&volume.path) {
                return Err(Reason::taken(Taken::MountPath, &volume.path));
            }
        }
        Ok(())
    }

    /// Adds the variables of the endpoint and the certificates.
    pub fn set<'p>(&'p self, env: &mut Env<'p>) {
        for setting in &self.settings {
            env.set_default(Entry::from(setting));
        }
    }

    /// Adds volumes and mounts, each once.
    pub fn mount<'p>(&'p self, pod: &'p Pod<'p>, volumes: &mut Volumes<'p>, mounts: &mut Mounts<'p>) {
        for volume in &self.volumes {
            if !volumes.has(&volume.name) && !volumes.is_own(pod, &volume.name) {
                volumes.add(NewVolume::new(volume.name.as_str(), Cow::Owned(volume.source())));
            }
            if !mounts.has_volume(&volume.name) {
                let mount = NewMount::new(volume.name.as_str(), volume.path.as_str());
                mounts.add(NewMount { read_only: true, ..mount });
            }
        }
    }
}

impl Exporter {
    fn set_path(&mut self, name: &str, folder: &str, file: Option<&String>) {
        if let Some(file) = filled(file) {
            let absolute = file.starts_with('/');
            let value = if absolute { file.to_owned() } else { format!("{folder}/{file}") };
            self.push(name, value);
        }
    }

    fn push(&mut self, name: &str, value: String) {
        self.settings.push(Setting { name: name.to_owned(), value, from: None });
    }

    fn add_certificates(&mut self, tls: &api::Tls) {
        let secret = CertificateVolume::new("secret", tls.secretName.as_ref());
        let config_map = CertificateVolume::new("configmap", tls.configMapName.as_ref());
        let ca = if config_map.object.is_empty() { &secret } else { &config_map };
        let ca_folder = ca.path.clone();
        self.set_path("OTEL_EXPORTER_OTLP_CERTIFICATE", &ca_folder, tls.ca_file.as_ref());
        self.set_path("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &secret.path, tls.cert_file.as_ref());
        self.set_path("OTEL_EXPORTER_OTLP_CLIENT_KEY", &secret.path, tls.key_file.as_ref());
        let named = [secret, config_map].into_iter().filter(|volume| !volume.object.is_empty());
        self.volumes.extend(named);
    }
}

impl CertificateVolume {
    fn new(kind: &str, object: Option<&String>) -> Self {
        let object = object.cloned().unwrap_or_default();
        Self {
            name: volume_name(&format!("otel-auto-{kind}-"), &object),
            path: format!("/otel-auto-instrumentation-{kind}-{object}"),
            is_secret: kind == "secret",
            object,
        }
    }

    fn is_same(&self, own: &Volume<'_>) -> bool {
        let secret = own.secret.as_ref().map(|secret| &*secret.secret_name);
        let config_map = own.config_map.as_ref().map(|map| &*map.name);
        let shown = if self.is_secret { secret } else { config_map };
        shown == Some(self.object.as_str())
    }

    /// The source of the volume: optional, so that a missing object never blocks the pod (D20).
    fn source(&self) -> Value {
        let (kind, key) = if self.is_secret { ("secret", "secretName") } else { ("configMap", "name") };
        json!({kind: {key: self.object, "optional": true}})
    }
}

/// A volume's name: dots are not allowed in it (D17), and it is truncated like the operator's.
fn volume_name(prefix: &str, object: &str) -> String {
    let mut name = format!("{prefix}{object}").replace('.', "-");
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()).to_owned()
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
