//! A cluster with the operator's webhook and ours.

use std::fs;
use std::process::Command;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    cluster::{
        control_plane::ControlPlane,
        created::{Created, name},
        manifests::{deployment, java},
    },
    objects::items,
    until::until,
};
use serde_json::{Value, json};

use crate::program::PROGRAM;
use crate::registration;
use crate::webhook::Webhook;

/// What the operator's chart calls its configuration.
pub const OPERATOR: &str = "opentelemetry-operator-mutation";

/// Kinds of the operator that are not ours, with their plurals.
const KINDS: [(&str, &str); 3] = [
    ("OpenTelemetryCollector", "opentelemetrycollectors"),
    ("OpAMPBridge", "opampbridges"),
    ("TargetAllocator", "targetallocators"),
];

/// One that is moved first, and one that stays until all are.
pub const NAMESPACES: [&str; 2] = ["shop", "cart"];

/// As the operator does it: no stamp, and resources as they are written.
const LIKE_THE_OPERATOR: [&str; 2] = ["--stamp=false", "--init-resources=exact"];

/// Fields are dropped in their order: the webhooks go before what they watch.
pub struct World {
    ours: Webhook,
    operators: Webhook,
    pub plane: ControlPlane,
}

impl World {
    /// Two webhooks, of which the operator's is registered, and pods that it injected.
    pub fn start() -> Self {
        let plane = ControlPlane::start();
        let kubeconfig = registration::install(&plane);
        let webhook = |folder: &str, flags: &[&str]| {
            let folder = plane.dir().join(folder);
            fs::create_dir(&folder).expect("the scratch folder is writable");
            Webhook::start_with(&kubeconfig, &folder, flags)
        };
        let (ours, operators) = (webhook("ours", &[]), webhook("operators", &LIKE_THE_OPERATOR));
        let world = Self { ours, operators, plane };
        world.install_operator();
        for namespace in NAMESPACES {
            world.plane.namespace(namespace, json!({}));
            world.plane.instrumentation(namespace, "default", &json!({}));
        }
        world.until_injected(NAMESPACES.map(|namespace| (namespace, By::Operator)));
        world.plane.apply_server_side(&deployment("shop", "order", 1).to_string());
        until("its pod is there", || (world.pods("shop", "order").len() == 1).then_some(()));
        world
    }

    /// The operator's configuration, with another webhook in it, and its own kinds.
    fn install_operator(&self) {
        let hook = |name: &str, group: &str, resource: &str| {
            json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Ignore", "timeoutSeconds": 10,
                "clientConfig": client_config(&self.operators, "/mutate-v1-pod"),
                "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"],
                    "resources": [resource], "scope": "Namespaced"}]})
        };
        let collectors =
            hook("mopentelemetrycollectorbeta.kb.io", "opentelemetry.io", "opentelemetrycollectors");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": OPERATOR}, "webhooks": [collectors, hook("mpod.kb.io", "", "pods")],
        });
        self.plane.apply_server_side(&configuration.to_string());
        for (kind, plural) in KINDS {
            let schema =
                json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
            let version = json!({"name": "v1beta1", "served": true, "storage": true, "schema": schema});
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.opentelemetry.io")},
                "spec": {"group": "opentelemetry.io", "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural}, "versions": [version]},
            });
            self.plane.apply_server_side(&crd.to_string());
        }
        let release = [
            "meta.helm.sh/release-name=opentelemetry-operator",
            "meta.helm.sh/release-namespace=opentelemetry-operator-system",
        ];
        let crd = ["annotate", "customresourcedefinition", "instrumentations.opentelemetry.io"];
        self.plane.run_kubectl(&[&crd[..], &release[..]].concat());
    }

    /// Registers ours for pods and Instrumentations as the chart does by these values.
    pub fn register_ours(&self, name: &str, values: &Value) {
        let text = registration::REGISTRATION;
        let configurations: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
        let values = &values["registration"];
        let judges = values["instrumentations"]["enabled"] != false;
        for mut configuration in configurations {
            configuration["metadata"]["name"] = name.into();
            let hooks = configuration["webhooks"].as_array_mut().expect("webhooks");
            hooks.retain(|hook| hook["name"] != "workloads.otel-webhook.io" && (judges || is_for_pods(hook)));
            for hook in hooks {
                let path = hook["clientConfig"]["service"]["path"].take();
                hook["clientConfig"] = client_config(&self.ours, path.as_str().expect("a path"));
                if is_for_pods(hook) {
                    let labels = &values["pods"]["namespaceSelector"]["matchLabels"];
                    hook["namespaceSelector"]["matchLabels"] = labels.clone();
                }
            }
            self.plane.apply_server_side(&configuration.to_string());
        }
    }

    /// What `helm uninstall` does to the operator's configuration.
    pub fn remove_operator(&self) {
        self.plane.run_kubectl(&["delete", "mutatingwebhookconfiguration", OPERATOR]);
    }

    /// Runs a command of the document as somebody would who reads it. Gives what it printed.
    pub fn shell(&self, command: &str) -> String {
        let program = std::path::Path::new(PROGRAM);
        let folders = [self.plane.tools(), program.parent().expect("a folder")];
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let path = folders.into_iter().map(std::path::PathBuf::from).chain(std::env::split_paths(&rest));
        let output = Command::new("sh")
            .args(["-c", command])
            .env("PATH", std::env::join_paths(path).expect("paths"))
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env("HOME", self.plane.dir())
            .output()
            .expect("every machine has a shell");
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{command}\n{out}{err}");
        out.into_owned()
    }

    /// Waits until new pods of each namespace are injected by whom they should be.
    pub fn until_injected(&self, expected: [(&str, By); 2]) {
        until(&format!("pods are injected as {expected:?}"), || {
            expected.iter().all(|(namespace, who)| by(&self.probe(namespace)) == Some(*who)).then_some(())
        });
    }

    /// Waits until a pod of a namespace without the label comes to ours as well, which finds it injected.
    pub fn until_both_are_called(&self) {
        until("both webhooks are called", || {
            self.probe("cart");
            let log = self.ours.log();
            let found =
                |line: &Value| line["namespace"] == "cart" && line["findings"] == "java=AlreadyInjected";
            log.iter().any(found).then_some(())
        });
    }

    /// The operator's webhook for pods has a selector now, and its others have none.
    pub fn only_pods_are_parted(&self) {
        let configuration = self.plane.get("default", &["mutatingwebhookconfiguration", OPERATOR]);
        for hook in items(&configuration["webhooks"]) {
            let is_parted = hook["namespaceSelector"]["matchExpressions"].is_array();
            assert_eq!(is_parted, name(hook) == "mpod.kb.io", "{hook}");
        }
    }

    /// What would come of a pod that opts in.
    fn probe(&self, namespace: &str) -> Created {
        self.plane.create_pod(namespace, &java("probe"), &["--dry-run=server"])
    }

    /// The pods of a Deployment.
    pub fn pods(&self, namespace: &str, app: &str) -> Vec<Created> {
        let list = self.plane.get(namespace, &["pods", "--selector", &format!("app={app}")]);
        items(&list["items"]).cloned().map(Created::found).collect()
    }

    /// The UIDs of all pods of a namespace.
    pub fn uids(&self, namespace: &str) -> Vec<String> {
        let args = ["get", "pods", "--namespace", namespace, "--output", "jsonpath={.items[*].metadata.uid}"];
        self.plane.kubectl(&args).stdout.split_whitespace().map(str::to_owned).collect()
    }
}

/// Who injected a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Operator,
    Us,
}

/// Who injected a pod, if it was injected, as a whole and once.
pub fn by(pod: &Created) -> Option<By> {
    let options = pod.variable("app", "JAVA_TOOL_OPTIONS").matches("-javaagent:").count();
    let names = items(&pod.container("app")["env"]).filter(|one| name(one) == "OTEL_SERVICE_NAME").count();
    let is_once = pod.is_injected() && options == 1 && names == 1;
    let stamped = if pod.status().is_empty() { By::Operator } else { By::Us };
    is_once.then_some(stamped)
}

fn is_for_pods(hook: &Value) -> bool {
    hook["name"] == "pods.otel-webhook.io"
}

fn client_config(webhook: &Webhook, path: &str) -> Value {
    json!({"url": webhook.url_of(path), "caBundle": BASE64_STANDARD.encode(webhook.authority())})
}
