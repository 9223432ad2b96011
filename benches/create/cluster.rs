//! The API server with the namespaces and the registration of each way, and the two webhooks.

use std::{env, fs, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_api::{ANNOTATION_PREFIX, defaults::DefaultImages};
use otel_webhook_inject::Outcome;
use otel_webhook_server::tls::{DEFAULT_NAMES, SelfSigned};
use otel_webhook_testkit::{
    admin,
    cluster::{client::Objects, control_plane::ControlPlane, ports::free_ports},
    known::Known,
    load::{material, server::Server},
    models::service_account,
    objects::items,
    surroundings::review,
    until::until,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    PROGRAM,
    client::Creator,
    hook,
    ways::{Pods, WAYS, Way, Webhook},
};

/// What is measured.
pub struct Cluster {
    /// The product; none while it is restarted.
    ours: Option<Server>,
    /// The webhook that allows everything.
    pub hook: Server,
    /// The API server and its etcd.
    pub plane: ControlPlane,
    /// The ports of the product.
    ports: [u16; 2],
    pair: SelfSigned,
    folder: TempDir,
}

impl Cluster {
    /// Starts everything, and waits until each way works.
    pub async fn start() -> Self {
        let plane = ControlPlane::without_controllers();
        plane.install_crd();
        fill(&Objects::connect(plane.kubeconfig()).await).await;
        let (folder, pair) = (tempfile::tempdir().expect("a folder"), pair());
        fs::write(folder.path().join(hook::CERTIFICATE), &pair.certificate_pem).expect("a writable folder");
        fs::write(folder.path().join(hook::KEY), &pair.key_pem).expect("a writable folder");
        let [patch, whole] = patches();
        fs::write(folder.path().join(hook::PATCH), patch).expect("a writable folder");
        fs::write(folder.path().join(hook::WHOLE_PATCH), whole).expect("a writable folder");
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.arg(hook::ARGUMENT).arg(folder.path());
        let hook = Server::start(command);
        let mut cluster = Self { ours: None, hook, plane, ports: free_ports(), pair, folder };
        cluster.start_ours();
        let registrations = WAYS.iter().filter(|way| way.webhook != Webhook::None);
        let registrations: Vec<_> = registrations.map(|way| cluster.registration(way)).collect();
        cluster.plane.apply(&json!({"apiVersion": "v1", "kind": "List", "items": registrations}).to_string());
        cluster.wait_until_used().await;
        cluster
    }

    /// The product.
    pub fn ours(&self) -> &Server {
        self.ours.as_ref().expect("it runs")
    }

    /// Ends the product and starts it anew on the same ports, until it is ready.
    pub fn restart_ours(&mut self) {
        self.ours = None;
        self.start_ours();
    }

    fn start_ours(&mut self) {
        let [port, admin] = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let file = |name| self.folder.path().join(name);
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", &port, "--admin-listen", &admin]);
        command.arg("--tls-cert").arg(file(hook::CERTIFICATE)).arg("--tls-key").arg(file(hook::KEY));
        command.env("KUBECONFIG", self.plane.kubeconfig());
        let server = Server::start(command);
        let address = server.address_of("admin");
        until("the product is ready", || admin::body(address, "/readyz").map(drop));
        self.ours = Some(server);
    }

    /// The registration of a way, for its own namespaces: the committed one, at another address.
    fn registration(&self, way: &Way) -> Value {
        let manifests = include_str!("../../manifests/webhook/webhook.yaml");
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifests).expect("YAML");
        let mut webhook = documents[0]["webhooks"][0].clone();
        let (server, path) = match way.webhook {
            Webhook::Hook => (&self.hook, hook::ALLOW),
            Webhook::Constant => (&self.hook, hook::CONSTANT),
            Webhook::Whole => (&self.hook, hook::WHOLE),
            _ => (self.ours(), "/mutate-v1-pod"),
        };
        let ca = BASE64_STANDARD.encode(&self.pair.ca_pem);
        webhook["name"] = way.webhook_name().into();
        webhook["clientConfig"] = json!({"url": format!("https://{}{path}", server.address), "caBundle": ca});
        webhook["namespaceSelector"] = json!({"matchLabels": {"way": way.key}});
        // A failed call is no figure.
        webhook["failurePolicy"] = "Fail".into();
        let more = way.registration();
        webhook.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": format!("create-{}", way.key)}, "webhooks": [webhook]})
    }

    /// Waits until pods that opt in come as they have to, in the last namespace of each way. The API server
    /// learns of registrations by a watch, and the product of Instrumentations.
    async fn wait_until_used(&self) {
        let (client, opted_in) = (Creator::new(&self.plane).await, pod(Pods::OptIn));
        for way in &WAYS {
            let namespace = way.namespaces().pop().expect("a namespace");
            let before = client.reviews(&way.webhook_name()).await;
            loop {
                let created = client.try_create(&namespace, &opted_in, true).await;
                let is_reviewed = match way.webhook {
                    Webhook::None => true,
                    Webhook::Hook => client.reviews(&way.webhook_name()).await > before,
                    Webhook::Constant | Webhook::Whole | Webhook::Ours(_) => {
                        created.as_ref().is_ok_and(|(pod, _)| is_injected(pod))
                    }
                };
                if created.is_ok() && is_reviewed {
                    break;
                }
            }
        }
    }
}

/// Whether an answer of the API server shows an injected pod.
pub fn is_injected(pod: &str) -> bool {
    pod.contains("\"opentelemetry-auto-instrumentation-java\"")
}

fn pair() -> SelfSigned {
    SelfSigned::generate(&DEFAULT_NAMES).expect("a pair")
}

/// The product's patch for the pod, as the API server sends it: with the token; and one that replaces what it
/// changes as a whole.
fn patches() -> [String; 2] {
    let (sent, outcome) = outcome();
    let injected = patched(sent, &outcome);
    let replace = |path: &str| json!({"op": "replace", "path": path, "value": injected.pointer(path)});
    [
        outcome.patch.text().to_owned(),
        json!(["/metadata/labels", "/metadata/annotations", "/spec"].map(replace)).to_string(),
    ]
}

fn patched(mut pod: Value, outcome: &Outcome) -> Value {
    json_patch::patch(&mut pod, &outcome.patch.operations()).expect("it applies");
    pod
}

/// The pod as the API server sends it, and what the product makes of it.
fn outcome() -> (Value, Outcome) {
    let sent: Value = serde_json::from_slice(&pod(Pods::OptIn)).expect("JSON");
    let suffix = hook::TOKEN_VOLUME.strip_prefix(service_account::TOKEN_VOLUME).expect("a volume of a token");
    let sent = service_account::mounted(&sent, suffix);
    let known =
        Known::of([&material::instrumentation_of("constant-00", "default", None)], &DefaultImages::default());
    let outcome = review(&known.catalogue, &known.owners, "constant-00", &sent);
    (sent, outcome)
}

/// The captured pod as a ReplicaSet's controller sends it: without what the API server added.
pub fn pod(kind: Pods) -> Vec<u8> {
    let mut pod = material::usual()["request"]["object"].take();
    if kind == Pods::Injected {
        let (sent, outcome) = outcome();
        pod = patched(sent, &outcome);
    }
    let metadata = pod["metadata"].as_object_mut().expect("metadata");
    metadata.remove("managedFields");
    metadata.remove("namespace");
    if kind == Pods::Silent {
        let annotations = metadata["annotations"].as_object_mut().expect("annotations");
        annotations.retain(|key, _| !key.starts_with(ANNOTATION_PREFIX));
    }
    let is_token =
        |item: &Value| item["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
    let drop_token = |list: &mut Value| list.as_array_mut().expect("a list").retain(|item| !is_token(item));
    drop_token(&mut pod["spec"]["volumes"]);
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().expect("containers") {
            drop_token(&mut container["volumeMounts"]);
        }
    }
    assert!(items(&pod["spec"]["containers"]).count() == 2, "it is the captured pod");
    serde_json::to_vec(&pod).expect("JSON")
}

/// Creates the namespaces of all ways, with their accounts and Instrumentations.
async fn fill(objects: &Objects) {
    let namespaces: Vec<_> =
        WAYS.iter().flat_map(|way| way.namespaces().into_iter().map(move |name| (way, name))).collect();
    let namespace = |way: &Way, name: &str| {
        let metadata = json!({"name": name, "labels": {"way": way.key}});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    let account = |name: &str| {
        let metadata = json!({"name": "default", "namespace": name});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    };
    let instrumentations = |way: &Way, name: &str| {
        let others = (1..way.instrumentations).map(|index| {
            let app = format!("app-{index:02}");
            material::instrumentation_of(name, &format!("inst-{index:02}"), Some(("app", &app)))
        });
        others.chain([material::instrumentation_of(name, "default", None)]).collect::<Vec<_>>()
    };
    objects.create_all(namespaces.iter().map(|(way, name)| namespace(way, name))).await;
    objects.create_all(namespaces.iter().map(|(_, name)| account(name))).await;
    objects.create_all(namespaces.iter().flat_map(|(way, name)| instrumentations(way, name))).await;
}
