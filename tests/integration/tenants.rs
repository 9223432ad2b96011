//! Instrumentations of other namespaces, in made-up clusters with tenants: all that a pod's author gets to see is
//! searched.

use std::{collections::BTreeMap, sync::Arc};

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject::{
    self as inject, CrossNamespace, Input, Outcome, Settings, pod::Pod, reason::ObjectName,
};
use otel_webhook_server::admission::Admission;
use otel_webhook_store::{Store, Writer, cluster};
use otel_webhook_telemetry::Metrics;
use otel_webhook_testkit::{
    generated::choices::{Choices, how_many},
    objects::NAMESPACE,
};
use serde_json::{Map, Value, json};

use crate::routes::create;

const ALLOWED: &str = "otel-webhook/allowed-namespaces";
const MODES: [CrossNamespace; 3] = [CrossNamespace::Allow, CrossNamespace::Granted, CrossNamespace::Deny];

/// How many pods are tried in each mode unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const TENANTS: u64 = 300;

/// A cluster with tenants, and a pod of one of them.
struct Tenants {
    settings: Settings,
    namespace: Value,
    instrumentations: Vec<Instrumented>,
    pod: Value,
}

/// An Instrumentation, and what nobody else has in his.
struct Instrumented {
    object: Value,
    name: String,
    content: String,
}

impl Tenants {
    fn generate(seed: u64, cross_namespace: CrossNamespace) -> Self {
        let mut choices = Choices::new(seed);
        let mut instrumentations: Vec<Instrumented> = Vec::new();
        for namespace in ["infra", "vault", NAMESPACE] {
            for _ in 0..choices.below(4) {
                instrumentations.push(instrumented(&mut choices, instrumentations.len(), namespace));
            }
        }
        let mut asks: Vec<String> =
            ["true", "true", "infra/nothing", "nowhere/nothing", "nothing"].map(str::to_owned).into();
        asks.extend(instrumentations.iter().map(|one| {
            format!("{}/{}", one.object["metadata"]["namespace"].as_str().expect("a name"), one.name)
        }));
        let asks: Vec<&str> = asks.iter().map(String::as_str).collect();
        let default = choices.chance(40).then(|| choices.one(&asks).split_once('/')).flatten();
        let settings = Settings {
            cross_namespace,
            default_instrumentation: default
                .map(|(namespace, name)| ObjectName { namespace: namespace.into(), name: name.into() }),
            ..Settings::default()
        };
        let by_namespace = annotations(&mut choices, &asks, 15);
        let by_pod = annotations(&mut choices, &asks, 50);
        Self {
            settings,
            namespace: json!({"apiVersion": "v1", "kind": "Namespace", "metadata":
                {"name": NAMESPACE, "annotations": by_namespace}}),
            instrumentations,
            pod: json!({"apiVersion": "v1", "kind": "Pod", "metadata":
                {"name": "order", "namespace": NAMESPACE, "annotations": by_pod, "labels": {"app": "order"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}, {"name": "web", "image": "web:1"}]}}),
        }
    }

    /// The rule, once more and in other words.
    fn may_use(&self, one: &Instrumented) -> bool {
        let metadata = &one.object["metadata"];
        let is_default = self.settings.default_instrumentation.as_ref().is_some_and(|default| {
            metadata["namespace"] == *default.namespace && metadata["name"] == *default.name
        });
        let list = metadata["annotations"][ALLOWED].as_str().unwrap_or_default();
        let is_listed = list.split(',').any(|entry| ["*", NAMESPACE].contains(&entry.trim()));
        metadata["namespace"] == NAMESPACE
            || is_default
            || match self.settings.cross_namespace {
                CrossNamespace::Allow => true,
                CrossNamespace::Granted => is_listed,
                CrossNamespace::Deny => false,
            }
    }

    /// All that a user who sends the pod, or a Deployment of it, gets to see.
    async fn messages(&self, is_there: impl Fn(&Instrumented) -> bool) -> (Vec<String>, Outcome) {
        let mut writer = Writer::new(DefaultImages::default());
        writer.put(&self.namespace);
        for one in self.instrumentations.iter().filter(|one| is_there(one)) {
            writer.put(&one.object);
        }
        writer.publish();
        let outcome = decided(&writer.store(), &self.settings, &self.pod);
        let mut messages = vec![format!("{outcome:?}")];
        messages.extend(outcome.warnings());
        messages.extend(outcome.findings.iter().map(ToString::to_string));
        messages.extend(outcome.findings.iter().flat_map(|one| &one.notes).map(ToString::to_string));
        let metrics = Arc::new(Metrics::new());
        let admission =
            Admission::new(writer.store(), self.settings.clone(), None, metrics).with_preview_warnings(true);
        let pod = admission
            .mutate_pod(create("pods", &self.pod).to_string().as_bytes(), cluster::deadline())
            .await
            .expect("an answer");
        let mut template = self.pod.clone();
        template["metadata"].as_object_mut().expect("metadata").remove("name");
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "order", "namespace": NAMESPACE}, "spec": {"template": template}});
        let workload = admission
            .validate_workload(
                create("deployments.apps", &deployment).to_string().as_bytes(),
                cluster::deadline(),
            )
            .await
            .expect("an answer");
        messages.extend([pod, workload].map(|answer| String::from_utf8(answer).expect("UTF-8")));
        (messages, outcome)
    }
}

fn decided(store: &Store, settings: &Settings, pod: &Value) -> Outcome {
    let snapshot = store.snapshot();
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue: &snapshot.catalogue, settings };
    inject::build(inject::decide(input), &snapshot.owners)
}

/// What each is made of bears its own mark, and so do the messages about what is wrong with it.
fn instrumented(choices: &mut Choices, number: usize, namespace: &str) -> Instrumented {
    let (name, content) = (format!("name{number}name"), format!("content{number}content"));
    let exporter = json!({"endpoint": format!("http://{content}:4317")});
    let spec = match choices.below(6) {
        0 => json!({"selector": {"matchExpressions": [{"key": content, "operator": content}]}}),
        1 => json!({"java": {"volumeLimitSize": content}, "exporter": exporter}),
        2 => json!({"selector": {"matchLabels": {"app": content}}, "exporter": exporter}),
        3 => json!({"exporter": {"endpoint": "https://c:4317", "tls": {"secretName": content}}}),
        _ => json!({"java": {"image": content}, "exporter": exporter}),
    };
    let mut metadata = json!({"name": name, "namespace": namespace});
    let lists = ["", "", "cart", "shop", "cart , shop", "*", "Shop", "sho*"];
    let list = lists[choices.below(lists.len())];
    if !list.is_empty() {
        metadata["annotations"] = json!({(ALLOWED): list});
    }
    let object = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": metadata, "spec": spec});
    Instrumented { object, name, content }
}

fn annotations(choices: &mut Choices, asks: &[&str], percent: usize) -> Value {
    let mut annotations = Map::new();
    let mut set = |name: &str, value: &str| {
        annotations.insert(format!("instrumentation.opentelemetry.io/{name}"), value.into());
    };
    for language in ["java", "python", "sdk"] {
        if choices.chance(percent) {
            set(&format!("inject-{language}"), choices.one(asks));
        }
    }
    if choices.chance(percent) {
        set("container-names", choices.one(&["app", "app,web", "ghost"]));
    }
    Value::Object(annotations)
}

/// For every pod: all messages are the same, byte for byte, as if what it may not use were not there at all.
#[tokio::test]
async fn no_message_tells_of_what_a_namespace_may_not_use() {
    for mode in MODES {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut count = |what: &'static str| *seen.entry(what).or_default() += 1;
        for seed in 0..how_many(TENANTS) {
            let tenants = Tenants::generate(seed, mode);
            let (messages, outcome) = tenants.messages(|_| true).await;
            let (alone, _) = tenants.messages(|one| tenants.may_use(one)).await;
            assert_eq!(messages, alone, "{mode:?}, {seed}: {}", tenants.pod);
            let written = [&tenants.pod, &tenants.namespace].map(|object| object["metadata"].to_string());
            for one in &tenants.instrumentations {
                let is_written = written.iter().any(|annotations| annotations.contains(&one.name));
                let shows = |mark: &str| messages.iter().any(|message| message.contains(mark));
                let is_shown = shows(&one.content) || shows(&one.name) && !is_written;
                let is_foreign = one.object["metadata"]["namespace"] != NAMESPACE;
                match (tenants.may_use(one), is_shown) {
                    (false, true) => panic!("{mode:?}, {seed}: {} is in {messages:#?}", one.object),
                    (false, false) if is_written => count("hidden and named"),
                    (true, true) if is_foreign => count("of another namespace and shown"),
                    _ => {}
                }
            }
            outcome.findings.iter().for_each(|finding| count(finding.reason.code()));
        }
        let expected: &[&str] = match mode {
            CrossNamespace::Allow => {
                &["of another namespace and shown", "InstrumentationNotFound", "InstrumentationInvalid"]
            }
            CrossNamespace::Granted => &[
                "hidden and named",
                "of another namespace and shown",
                "InstrumentationNotGranted",
                "InstrumentationInvalid",
            ],
            CrossNamespace::Deny => &["hidden and named", "CrossNamespaceDenied", "InstrumentationInvalid"],
        };
        // A generator that makes nothing of interest proves nothing.
        for what in
            expected.iter().chain(&["Injected", "DefaultInstrumentationNotFound", "NoInstrumentation"])
        {
            assert!(seen.get(what).is_some_and(|count| *count > 2), "{mode:?}: {what}: {seen:?}");
        }
    }
}
