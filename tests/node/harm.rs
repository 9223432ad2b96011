//! What injection can do to a pod, as a table: each row is an Instrumentation, and what kubelet reports of a pod that
//! uses it.

use serde_json::{Value, json};

use crate::cluster::IMAGE;
use crate::service::{JAVA, Language, NODEJS, PYTHON};
use crate::workload::APP;

/// An image that is nowhere.
const NOWHERE: &str = "localhost/otel-webhook-node/nowhere:1";

/// A row.
pub struct Harm {
    /// The name of the Instrumentation and of the pod.
    pub name: &'static str,
    /// The agent that the pod opts in to.
    pub language: Language,
    /// `initContainer` or `imageVolume`.
    pub delivery: &'static str,
    /// The specification of the Instrumentation.
    pub spec: Value,
    /// The container that cannot start or stay, or an empty text for the pod as a whole.
    pub container: &'static str,
    /// The reason in its status.
    pub reason: &'static str,
    /// Limits of the application: an init container that is added has none where the pod has none.
    pub limits: Value,
}

/// What harms by an init container.
fn copied(name: &'static str, language: Language, spec: Value, reason: &'static str) -> Harm {
    let container = match language.name {
        "java" => "opentelemetry-auto-instrumentation-java",
        "nodejs" => "opentelemetry-auto-instrumentation-nodejs",
        _ => "opentelemetry-auto-instrumentation-python",
    };
    Harm { name, language, delivery: "initContainer", spec, container, reason, limits: json!({}) }
}

/// What harms the application.
fn application(name: &'static str, language: Language, spec: Value, reason: &'static str) -> Harm {
    Harm { name, language, delivery: "initContainer", spec, container: "app", reason, limits: json!({}) }
}

/// What harms by an image volume.
fn mounted(name: &'static str, language: Language, spec: Value, reason: &'static str) -> Harm {
    Harm { delivery: "imageVolume", ..application(name, language, spec, reason) }
}

/// All rows.
pub fn all() -> Vec<Harm> {
    let stand_in = |name: &str| format!("localhost/otel-webhook-node/{name}:1");
    let claim = |class: &str| {
        json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}},
        }})
    };
    let from_secret = json!({"secretKeyRef": {"name": "nowhere", "key": "token"}});
    let agent = |language: &str, more: Value| json!({(language): more});
    let secured = |context: Value| json!({"initContainerSecurityContext": context});
    let memory = |limit: &str| json!({"requests": {"memory": limit}, "limits": {"memory": limit}});
    let mut never = agent("python", json!({"image": NOWHERE}));
    never["imagePullPolicy"] = "Never".into();
    let mut unreadable = agent("java", json!({"image": stand_in("unreadable")}));
    unreadable["initContainerSecurityContext"] = json!({"runAsUser": 1000});
    let hungry = agent("java", json!({"image": stand_in("hungry"), "resources": memory("32Mi")}));
    vec![
        // Images.
        copied("image-nowhere", JAVA, agent("java", json!({"image": NOWHERE})), "ImagePullBackOff"),
        copied(
            "image-with-wrong-name",
            NODEJS,
            agent("nodejs", json!({"image": "Not/A:name"})),
            "InvalidImageName",
        ),
        copied("image-never-pulled", PYTHON, never, "ErrImageNeverPull"),
        mounted("volume-nowhere", JAVA, agent("java", json!({"image": NOWHERE})), "ImagePullBackOff"),
        mounted(
            "volume-with-wrong-name",
            NODEJS,
            agent("nodejs", json!({"image": "Not/A:name"})),
            "InvalidImageName",
        ),
        mounted(
            "volume-without-folder",
            PYTHON,
            agent("python", json!({"image": APP})),
            "CreateContainerError",
        ),
        copied("image-without-cp", JAVA, agent("java", json!({"image": IMAGE})), "RunContainerError"),
        copied("image-without-agent", JAVA, agent("java", json!({"image": APP})), "CrashLoopBackOff"),
        copied("image-without-folder", PYTHON, agent("python", json!({"image": APP})), "CrashLoopBackOff"),
        copied(
            "extension-nowhere",
            JAVA,
            agent("java", json!({"extensions": [{"image": NOWHERE, "dir": "/extensions"}]})),
            "ImagePullBackOff",
        )
        .of("opentelemetry-auto-instrumentation-extension-0"),
        copied(
            "extension-without-folder",
            JAVA,
            agent("java", json!({"extensions": [{"image": APP, "dir": "/nowhere"}]})),
            "CrashLoopBackOff",
        )
        .of("opentelemetry-auto-instrumentation-extension-0"),
        // Crashes.
        application(
            "agent-no-jar",
            JAVA,
            agent("java", json!({"image": stand_in("broken-java")})),
            "CrashLoopBackOff",
        ),
        application(
            "agent-throws",
            NODEJS,
            agent("nodejs", json!({"image": stand_in("broken-nodejs")})),
            "CrashLoopBackOff",
        ),
        application(
            "option-unknown",
            JAVA,
            json!({"java": {"env": [{"name": "JDK_JAVA_OPTIONS", "value": "-XX:+Unknown"}]}}),
            "CrashLoopBackOff",
        ),
        // Memory.
        Harm { limits: json!({"memory": "512Mi"}), ..copied("memory-used-up", JAVA, hungry, "OOMKilled") },
        // Volumes.
        copied("volume-too-small", NODEJS, agent("nodejs", json!({"volumeLimitSize": "1Mi"})), "Evicted")
            .of(""),
        copied(
            "claim-unbound",
            PYTHON,
            agent("python", json!({"volumeClaimTemplate": claim("nowhere")})),
            "Unschedulable",
        )
        .of(""),
        application(
            "secret-nowhere",
            PYTHON,
            json!({"env": [{"name": "OTEL_EXPORTER_OTLP_HEADERS", "valueFrom": from_secret}]}),
            "CreateContainerConfigError",
        ),
        // Permissions.
        copied("agent-unreadable", JAVA, unreadable, "CrashLoopBackOff"),
        copied(
            "profile-nowhere",
            PYTHON,
            secured(json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "nowhere.json"}})),
            "CreateContainerError",
        ),
    ]
}

impl Harm {
    /// The code by which `status` reports the pod, and whether the pod counts as failing: without other pods to compare
    /// it with, an application is not known to fail because of its agent. `None` for a pod that has ended.
    pub fn reported(&self) -> Option<(&'static str, bool)> {
        let is_added = self.container.starts_with("opentelemetry-") || self.delivery == "imageVolume";
        match self.reason {
            // The pod has ended.
            "Evicted" => None,
            reason if is_added || reason == "Unschedulable" => Some((reason, true)),
            _ => Some(("CauseUnknown", false)),
        }
    }

    /// The same for another container.
    fn of(self, container: &'static str) -> Self {
        Self { container, ..self }
    }

    /// The reasons that a pod's status has for the container, or for the pod.
    pub fn reasons(&self, pod: &Value) -> Vec<String> {
        let status = &pod["status"];
        let mut found: Vec<&Value> = Vec::new();
        if self.container.is_empty() {
            found.push(&status["reason"]);
            found.extend(status["conditions"].as_array().into_iter().flatten().map(|one| &one["reason"]));
        }
        for list in ["initContainerStatuses", "containerStatuses"] {
            let containers = status[list].as_array().into_iter().flatten();
            for one in containers.filter(|one| one["name"] == self.container) {
                found.extend(
                    [&one["state"]["waiting"], &one["state"]["terminated"], &one["lastState"]["terminated"]]
                        .map(|state| &state["reason"]),
                );
            }
        }
        found.into_iter().filter_map(|reason| reason.as_str().map(str::to_owned)).collect()
    }
}
