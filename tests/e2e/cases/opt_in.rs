//! Pods without annotations: opted in by the selector of an Instrumentation, or by labels.

use otel_webhook_testkit::{
    cluster::{
        control_plane::Ran,
        created::{AGENT, Created},
    },
    until::until,
};
use serde_json::{Value, json};

use super::check::check;
use crate::audit;
use crate::cluster::{Cluster, LIMIT, asking};
use crate::registration::register_instrumentations;

const JAVA: &str = "instrumentation.opentelemetry.io/inject-java";

/// The namespace of the Instrumentations.
const SHOP: &str = "opt-in-shop";

/// The namespace of the default Instrumentation, and one that its Instrumentations select.
const PLATFORM: &str = "opt-in-platform";
const TEAM: &str = "opt-in-team";

/// Each way in turn, with a default Instrumentation in a namespace of its own.
pub fn each_way(cluster: &Cluster) {
    for namespace in [SHOP, PLATFORM, TEAM] {
        cluster.namespace(namespace, &[]);
    }
    let default = format!("{PLATFORM}/default");
    let _restarted = cluster.webhook.restart_with(&["--default-instrumentation", &default]);
    by_selector(cluster);
    by_label(cluster);
    opted_out(cluster);
    across_namespaces(cluster);
}

/// A pod without annotations.
fn silent(name: &str, labels: &Value) -> Value {
    let mut pod = asking(name, &[]);
    pod["metadata"]["labels"] = labels.clone();
    pod
}

fn order(name: &str) -> Value {
    silent(name, &json!({"app": "order"}))
}

/// What opts in orders to Java, with this image of the agent.
fn java(image: &str, priority: i32) -> Value {
    let selector = json!({"matchLabels": {"app": "order"}});
    json!({"inject": ["java"], "selector": selector, "priority": priority, "java": {"image": image}})
}

/// The image of the agent; empty if there is none.
fn image(pod: &Created) -> &str {
    if pod.is_injected() { pod.container(AGENT)["image"].as_str().unwrap_or_default() } else { "" }
}

fn by_selector(cluster: &Cluster) {
    cluster.instrumentation(SHOP, "low", &java("low", 1));
    let pod = cluster.create_when("the selector is known", SHOP, &order("first"), |pod| image(pod) == "low");
    let note = r#"opted in by the selector of Instrumentation \"opt-in-shop/low\""#;
    assert!(pod.status().contains(note), "{}", pod.status());
    assert_eq!(audit::decision(cluster, SHOP, "first"), "java/app=Injected");
    assert!(cluster.create(SHOP, &silent("other", &json!({"app": "cart"}))).is_untouched());

    cluster.instrumentation(SHOP, "high", &java("high", 2));
    cluster.create_when("the higher priority is known", SHOP, &order("second"), |pod| image(pod) == "high");
    cluster.instrumentation(SHOP, "tie", &java("tie", 2));
    let is_tie = |pod: &Created| pod.warnings.contains("with the same priority: high, tie");
    let torn = cluster.create_when("the tie is known", SHOP, &order("torn"), is_tie);
    assert!(torn.is_untouched(), "{}", torn.pod);
    assert_eq!(audit::decision(cluster, SHOP, "torn"), "java=AmbiguousOptIn");
    delete(cluster, SHOP, &["tie", "low"]);
    cluster.create_when("the others are gone", SHOP, &order("third"), |pod| image(pod) == "high");
}

fn by_label(cluster: &Cluster) {
    for name in ["labelled", "annotated"] {
        cluster.instrumentation(
            SHOP,
            name,
            &json!({"selector": {"matchLabels": {"app": "none"}}, "java": {"image": name}}),
        );
    }
    let both = |name: &str| {
        let mut pod = asking(name, &[("inject-java", "annotated")]);
        pod["metadata"]["labels"] = json!({(JAVA): "labelled"});
        pod
    };
    cluster.create_when("the label overrides", SHOP, &both("both"), |pod| image(pod) == "labelled");
    let label = |change: &str| {
        let ran =
            cluster.plane.kubectl(&["label", "--overwrite", "namespace", SHOP, &format!("{JAVA}{change}")]);
        assert!(ran.ok, "{}", ran.stderr);
    };
    label("=labelled");
    let other = |name: &str| silent(name, &json!({"app": "cart"}));
    cluster.create_when("the namespace's label is known", SHOP, &other("by-label"), |pod| {
        image(pod) == "labelled"
    });
    label("=false");
    let out = cluster.create_when("the namespace opts out", SHOP, &order("out"), Created::is_untouched);
    assert_eq!(audit::decision(cluster, SHOP, out.name()), "java=SwitchedOff");
    label("-");
    cluster.create_when("it no longer does", SHOP, &order("in-again"), |pod| image(pod) == "high");
}

fn opted_out(cluster: &Cluster) {
    let annotated = asking("annotated-out", &[("inject-java", "false")]);
    let labelled = silent("labelled-out", &json!({(JAVA): "false"}));
    for mut pod in [annotated, labelled] {
        pod["metadata"]["labels"]["app"] = "order".into();
        let created = cluster.create(SHOP, &pod);
        assert!(created.is_untouched(), "{}", created.pod);
        assert_eq!(audit::decision(cluster, SHOP, created.name()), "java=SwitchedOff");
    }
}

fn across_namespaces(cluster: &Cluster) {
    let mut platform = java("platform", 0);
    platform["namespaceSelector"] = json!({"matchLabels": {"case": TEAM}});
    refused(cluster, &platform);
    cluster.instrumentation(PLATFORM, "teams", &platform);
    cluster.create_when("the team is selected", TEAM, &order("selected"), |pod| image(pod) == "platform");
    assert_eq!(image(&cluster.dry_run(SHOP, &order("not-selected"))), "high");
    cluster.instrumentation(TEAM, "own", &java("own", 0));
    cluster.create_when("the team's own comes first", TEAM, &order("own"), |pod| image(pod) == "own");
    delete(cluster, TEAM, &["own"]);
    // One that was stored unseen, by the webhook's absence.
    cluster.instrumentation(SHOP, "high", &platform);
    let is_denied = |pod: &Created| {
        pod.warnings.contains("Instrumentation \"opt-in-shop/high\" sets spec.namespaceSelector")
    };
    let denied = cluster.create_when("it is not used", SHOP, &order("denied"), is_denied);
    assert!(denied.is_untouched(), "{}", denied.pod);
    assert_eq!(audit::decision(cluster, SHOP, "denied"), "java=NamespaceSelectorDenied");
    assert_eq!(image(&cluster.dry_run(TEAM, &order("still-selected"))), "platform");
}

/// A tenant may not select other namespaces, and the platform is told what it does.
fn refused(cluster: &Cluster, spec: &Value) {
    let registered = register_instrumentations(&cluster.plane, &cluster.webhook, SHOP);
    let ran = try_out(cluster, SHOP, spec, &["--server-side"]);
    let sentence = "spec.namespaceSelector: Invalid value: selects pods of other namespaces, which is allowed only in the \
                    namespace of --default-instrumentation (namespace \"opt-in-platform\")";
    let has = |ran: &Ran| ran.stderr.contains(&sentence.replace("Invalid value: ", ""));
    assert!(!ran.ok && has(&ran), "{}", ran.stderr);
    drop(registered);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, PLATFORM);
    let ran = try_out(cluster, PLATFORM, spec, &["--server-side"]);
    let told = "Warning: spec.inject: injects java into every new pod that spec.selector matches in the namespaces that \
                spec.namespaceSelector matches";
    assert!(ran.ok && ran.stderr.contains(told), "{}", ran.stderr);
}

fn try_out(cluster: &Cluster, namespace: &str, spec: &Value, how: &[&str]) -> Ran {
    let object = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "tried", "namespace": namespace}, "spec": spec,
    });
    let args = [&["apply", "--dry-run=server", "--filename", "-"], how].concat();
    cluster.plane.kubectl_in(&args, &object.to_string())
}

fn delete(cluster: &Cluster, namespace: &str, names: &[&str]) {
    let ran =
        cluster.plane.kubectl(&[&["delete", "--namespace", namespace, "instrumentation"], names].concat());
    assert!(ran.ok, "{}", ran.stderr);
}

/// What `check` says of the pods of a workload that a selector opts in: how many, and that they never arrive where the
/// webhook is registered only for pods that are annotated.
pub fn told(cluster: &Cluster) {
    let namespace = "opt-in-told";
    cluster.namespace(namespace, &[]);
    let template = json!({"metadata": {"labels": {"app": "order"}}, "spec": asking("", &[])["spec"].clone()});
    cluster.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "order", "namespace": namespace},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "order"}}, "template": template}}));
    cluster.pods_of(namespace, "app=order", 2);
    let object = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "orders", "namespace": namespace}, "spec": java("agent", 0)});
    let file = cluster.plane.dir().join("opt-in.json");
    std::fs::write(&file, object.to_string()).expect("the scratch folder is writable");
    let file = file.to_str().expect("UTF-8");
    let preview = || check(&cluster.plane, &["--preview", "-n", namespace, "-f", file]);
    let ahead = preview();
    let [order] = &ahead.found[..] else { panic!("{ahead:?}") };
    assert_eq!((&order["pods"], &order["languages"][0]["change"]), (&json!(2), &json!("added")), "{ahead:?}");
    let note = "opted in by the selector of Instrumentation \"opt-in-told/orders\"";
    assert_eq!(order["languages"][0]["notes"], json!([note]), "{ahead:?}");
    let without = check(&cluster.plane, &["--preview", "-n", namespace]);
    assert_eq!(without.found[0]["languages"], json!([]), "{without:?}");

    cluster.instrumentation(namespace, "orders", &java("agent", 0));
    let annotated = Annotated::register(cluster);
    let found = until("check tells of it", LIMIT, || {
        let checked = check(&cluster.plane, &["-n", namespace]);
        checked.codes().contains(&"NotReviewed").then(|| checked.says("NotReviewed"))
    });
    let cause = "opts in to java, but the match condition of otel-webhook excludes pods without an annotation or label";
    assert!(
        found.contains(cause) && found.contains("nor the selector of an Instrumentation is enough"),
        "{found}"
    );
    drop(annotated);
    let registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    drop(registered);
    let _only = cluster.webhook.restart_with(&["--only-annotated-pods"]);
    let _registered = register_instrumentations(&cluster.plane, &cluster.webhook, namespace);
    let ran = try_out(cluster, namespace, &java("agent", 0), &["--server-side"]);
    assert!(
        ran.stderr.contains("Warning: spec.inject: has no effect: API servers send only pods"),
        "{}",
        ran.stderr
    );
}

/// The registration of the shape `annotated`, until it is dropped.
struct Annotated<'c> {
    cluster: &'c Cluster,
    before: Value,
}

impl<'c> Annotated<'c> {
    fn register(cluster: &'c Cluster) -> Self {
        let ran = cluster.plane.kubectl(&[
            "get",
            "mutatingwebhookconfiguration",
            "otel-webhook",
            "--output",
            "json",
        ]);
        let mut before: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        before["metadata"] = json!({"name": "otel-webhook", "labels": before["metadata"]["labels"].clone()});
        let mut changed = before.clone();
        let expression = "has(object.metadata.annotations)";
        changed["webhooks"][0]["matchConditions"] = json!([{"name": "opted-in", "expression": expression}]);
        cluster.apply(&changed);
        Self { cluster, before }
    }
}

impl Drop for Annotated<'_> {
    fn drop(&mut self) {
        self.before["webhooks"][0]["matchConditions"] = json!([]);
        self.cluster.apply(&self.before);
    }
}
