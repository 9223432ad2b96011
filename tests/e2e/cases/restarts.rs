//! Restarts by consent, of real workloads on a node of kwok.

use std::{net::UdpSocket, thread, time::Duration};

use otel_webhook_testkit::{cluster::manifests::template, objects::items, runner::note, until::until};
use serde_json::{Value, json};

use crate::{
    audit,
    cases::fleet::drop_statuses,
    cluster::Cluster,
    controller::{self, ACCOUNT, Controller, deployment},
    registration::HOME,
};

/// The Instrumentation `SHOP/default` is used by pods of all namespaces.
pub const SHOP: &str = "restart-a";

/// The annotation of consent.
const CONSENT: &str = "otel-webhook/restart";

/// Pods with the variable CRASH never become ready.
pub const CRASH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/crash-stage.yaml");

/// The namespace of the Instrumentation, and others whose pods use it.
pub fn shop(cluster: &Cluster, others: &[&str]) {
    cluster.instrumented_namespace(SHOP);
    for namespace in others {
        cluster.namespace(namespace, &[]);
    }
}

fn prepare_three(cluster: &Cluster) {
    shop(cluster, &[]);
    cluster.annotate(&["namespace", SHOP, "otel-webhook/restart=rollout"]);
    for name in ["one", "two", "three"] {
        create(cluster, &deployment(SHOP, name, 2));
    }
}

/// Creates a workload, and waits until its pods are ready.
pub fn create(cluster: &Cluster, object: &Value) {
    cluster.apply(object);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let name = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
    let namespace = text(&object["metadata"]["namespace"]);
    let replicas = object["spec"]["replicas"].clone();
    until(&format!("{name} is ready"), || {
        (cluster.get(&namespace, &[&name])["status"]["readyReplicas"] == replicas).then_some(())
    });
}

/// With its consent to restarts, or without it.
pub fn consenting(mut object: Value, consent: &str) -> Value {
    object["metadata"]["annotations"][CONSENT] = consent.into();
    object
}

/// With pods that use `SHOP/default`.
pub fn using_shop(mut object: Value) -> Value {
    let annotations = &mut object["spec"]["template"]["metadata"]["annotations"];
    annotations["instrumentation.opentelemetry.io/inject-java"] = format!("{SHOP}/default").into();
    object
}

fn patch(cluster: &Cluster, name: &str, patch: &str) {
    cluster.run(&["patch", "deployment", name, "--namespace", SHOP, "--patch", patch]);
}

pub fn change(cluster: &Cluster, endpoint: &str) {
    cluster.instrumentation(SHOP, "default", &json!({"exporter": {"endpoint": endpoint}}));
}

fn crash(cluster: &Cluster, crashes: bool) {
    let env = if crashes { json!([{"name": "CRASH", "value": "yes"}]) } else { json!([]) };
    cluster.instrumentation(SHOP, "default", &json!({"env": env}));
}

/// Waits until restarts are stopped, and returns the sentence.
fn expect_stopped(cluster: &Cluster) -> String {
    until("restarts are stopped", || {
        let found = cluster.get(SHOP, &["otelinst", "default"]);
        let mut conditions = items(&found["status"]["conditions"]);
        let stopped = conditions.find(|one| one["type"] == "RestartStopped" && one["status"] == "True")?;
        Some(stopped["message"].as_str().expect("text").to_owned())
    })
}

fn condition<'s>(object: &'s Value, kind: &str) -> Option<(&'s str, &'s str)> {
    let one = items(&object["status"]["conditions"]).find(|condition| condition["type"] == kind)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?))
}

/// How many templates a Deployment has had.
pub fn revision(cluster: &Cluster, namespace: &str, name: &str) -> String {
    revision_of(&cluster.get(namespace, &["deployment", name])).to_owned()
}

/// As `revision`, of a Deployment that was read.
fn revision_of(deployment: &Value) -> &str {
    deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap_or_default()
}

/// Each workload that consents is restarted once, one of them first, and the others are left alone.
pub fn by_consent(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    let others = ["restart-b", "restart-c"];
    shop(cluster, &others);
    cluster.annotate(&["namespace", SHOP, "otel-webhook/restart=rollout"]);
    for name in ["one", "two"] {
        create(cluster, &deployment(SHOP, name, 2));
    }
    create(cluster, &consenting(deployment(SHOP, "never", 2), "never"));
    create(cluster, &consenting(using_shop(deployment("restart-b", "own", 2)), "rollout"));
    create(cluster, &consenting(using_shop(deployment("restart-b", "evicted", 2)), "evict"));
    create(cluster, &using_shop(deployment("restart-b", "silent", 2)));
    // An Instrumentation consents for its own namespace only.
    cluster.annotate(&["otelinst", "default", "--namespace", SHOP, "otel-webhook/restart=rollout"]);
    create(cluster, &consenting(using_shop(deployment("restart-c", "wrong", 1)), "yes"));

    let controller = Controller::with_restarts(cluster);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 13, "injected": 13}));
    change(cluster, "http://second:4317");
    controller.expect(SHOP, "default", &json!({"matched": 13, "injected": 8, "stale": 5}));
    controller.expect_restart(SHOP, "never", "NoConsent");
    controller.expect_restart("restart-b", "silent", "NoConsent");
    let sentence = controller.expect_restart("restart-c", "wrong", "InvalidConsent");
    assert!(sentence.contains("\"yes\" is not valid; use rollout, evict or never"), "{sentence}");
    for (namespace, name) in [(SHOP, "one"), (SHOP, "two"), ("restart-b", "own"), ("restart-b", "evicted")] {
        controller.expect_restart(namespace, name, "");
    }
    let patches =
        |namespace: &str, name: &str| audit::patches(cluster, ACCOUNT, "deployments", namespace, name);
    let first = patches(SHOP, "one");
    let later = [patches(SHOP, "two"), patches("restart-b", "own")];
    assert!(
        first.len() == 1 && later.iter().all(|times| times.len() == 1 && times[0] > first[0]),
        "{later:?}"
    );
    let proven = &cluster.get(SHOP, &["deployment", "one"])["status"]["conditions"];
    let proven = items(proven).filter_map(|condition| condition["lastUpdateTime"].as_str()).max();
    assert!(
        later.iter().all(|times| Some(&*times[0]) >= proven),
        "{later:?}, and the canary was ready at {proven:?}"
    );
    for (namespace, name) in
        [(SHOP, "never"), ("restart-b", "silent"), ("restart-b", "evicted"), ("restart-c", "wrong")]
    {
        assert!(patches(namespace, name).is_empty(), "{name}");
    }
    let found = until("the restarts are reported as done", || {
        let found = cluster.get(SHOP, &["otelinst", "default"]);
        (condition(&found, "RestartInProgress") == Some(("False", "WorkloadsRestarted"))).then_some(found)
    });
    assert_eq!(found["status"]["restart"]["done"], 4, "{}", found["status"]);
    assert_eq!(condition(&found, "RestartStopped"), Some(("False", "NotStopped")));
    assert_eq!(cluster.events(SHOP, "one", "Restarted").len(), 1);

    // Another process of the same configuration restarts nothing.
    let before = audit::count(cluster, ACCOUNT, "patch", "deployments");
    controller.stop();
    controller.start();
    controller.expect_restart(SHOP, "never", "NoConsent");
    controller.stop();
    assert_eq!(audit::count(cluster, ACCOUNT, "patch", "deployments"), before);
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles_with_restarts());
}

/// Leaders are killed in the middle of restarts: each workload is restarted once.
pub fn killed(_: &Cluster) {
    const KILLS: u64 = 20;
    let cluster = &Cluster::with_node(&[]);
    let others = ["restart-b", "restart-c"];
    shop(cluster, &others);
    let names: Vec<_> = (0..12).map(|number| format!("order-{number:02}")).collect();
    let place = |index: usize| [SHOP, others[0], others[1]][index % 3];
    for (index, name) in names.iter().enumerate() {
        create(cluster, &consenting(using_shop(deployment(place(index), name, 1)), "rollout"));
    }
    let controller = Controller::with_restarts(cluster);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 12, "injected": 12}));
    change(cluster, "http://second:4317");
    // Moments that differ from run to run.
    let seed = std::process::id();
    let moment = |kill: u64| Duration::from_millis(200 + (u64::from(seed) * 7919 + kill * 104_729) % 2_500);
    for kill in 0..KILLS {
        thread::sleep(moment(kill));
        controller.kill();
        // The next one need not wait for its end.
        cluster.run(&["delete", "lease", "otel-webhook-controller", "--namespace", HOME]);
        controller.start();
    }
    controller.expect(SHOP, "default", &json!({"matched": 12, "injected": 12}));
    for (index, name) in names.iter().enumerate() {
        controller.expect_restart(place(index), name, "");
    }
    controller.stop();
    // Not by the audit log: of a request whose client is gone, it does not say that it was carried out.
    let revisions: Vec<_> =
        names.iter().enumerate().map(|(index, name)| revision(cluster, place(index), name)).collect();
    note(&format!("seed {seed}: revisions {revisions:?}"));
    assert_eq!(revisions, ["2"; 12], "seed {seed}");
}

/// New pods cannot start: one workload has received the change, and no other one does.
pub fn stopped(_: &Cluster) {
    let mut cluster = Cluster::with_node(&[CRASH.as_ref()]);
    prepare_three(&cluster);
    let patches = |cluster: &Cluster| {
        ["one", "two", "three"].map(|name| audit::patches(cluster, ACCOUNT, "deployments", SHOP, name).len())
    };
    {
        let controller = Controller::with_restarts(&cluster);
        controller.start();
        controller.expect(SHOP, "default", &json!({"matched": 6, "injected": 6}));
        crash(&cluster, true);
        let sentence = expect_stopped(&cluster);
        assert!(sentence.contains("Deployment restart-a/one: pod one-"), "{sentence}");
        assert!(sentence.contains("cannot start: CrashLoopBackOff"), "{sentence}");
        controller.expect_restart(SHOP, "two", "RestartStopped");
        assert_eq!(patches(&cluster), [1, 0, 0]);
        assert_eq!(cluster.events(SHOP, "one", "RestartStopped").len(), 1);
        assert_eq!(controller.metric("otel_webhook_restarts_stopped{}"), Some(1));

        // Back to what it was: that reaches the workload that failed, and the others have it.
        crash(&cluster, false);
        controller.expect(SHOP, "default", &json!({"matched": 6, "injected": 6}));
        until("restarts are not stopped any more", || {
            let found = cluster.get(SHOP, &["otelinst", "default"]);
            (condition(&found, "RestartStopped") != Some(("True", "PodsFail"))).then_some(())
        });
        controller.expect_restart(SHOP, "one", "");
        assert_eq!(patches(&cluster), [2, 0, 0]);

        crash(&cluster, true);
        expect_stopped(&cluster);
        assert_eq!(patches(&cluster), [3, 0, 0]);
        controller.stop();
    }
    // The cause was elsewhere, and is gone.
    cluster.plane.stop("kwok");
    cluster.plane.start_kwok(&[]);
    cluster.run(&["delete", "pods", "--namespace", SHOP, "--selector=app=one"]);
    let controller = Controller::with_restarts(&cluster);
    controller.start();
    controller.expect_restart(SHOP, "two", "RestartStopped");
    assert_eq!(controller.metric("otel_webhook_restarts_stopped{}"), Some(1), "another leader tells it, too");
    cluster.annotate(&["otelinst", "default", "--namespace", SHOP, "otel-webhook/resume-restart=1"]);
    for name in ["one", "two", "three"] {
        controller.expect_restart(SHOP, name, "");
    }
    controller.expect(SHOP, "default", &json!({"matched": 6, "injected": 6}));
    assert_eq!(patches(&cluster), [3, 1, 1]);
    controller.stop();
}

/// Makes a policy that denies updates of a resource.
fn deny(cluster: &Cluster, (group, resource): (&str, &str), is_allowed: &str, message: &str) {
    cluster.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": resource},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [resource],
            }]},
            "validations": [{"expression": is_allowed, "message": message}],
        },
    }));
    cluster.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": resource},
        "spec": {"policyName": resource, "validationActions": ["Deny"]},
    }));
}

/// A restart that a policy denies is reported with its message and not tried again, and the others go on.
pub fn refused(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    shop(cluster, &[]);
    cluster.annotate(&["namespace", SHOP, "otel-webhook/restart=rollout"]);
    for name in ["denied", "two"] {
        create(cluster, &deployment(SHOP, name, 2));
    }
    let message = "templates of this service are changed by its pipeline";
    let template = "object.spec.template.metadata";
    let is_allowed = format!(
        "object.metadata.name != 'denied' || !has({template}.annotations) || \
         !('otel-webhook/config' in {template}.annotations)"
    );
    deny(cluster, ("apps", "deployments"), &is_allowed, message);
    until("the policy denies", || {
        let patch =
            json!({"spec": {"template": {"metadata": {"annotations": {"otel-webhook/config": "a"}}}}});
        let args = ["patch", "deployment", "denied", "--namespace", SHOP, "--dry-run=server", "--patch"];
        let ran = cluster.plane.kubectl(&[&args[..], &[&patch.to_string()]].concat());
        ran.stderr.contains(message).then_some(())
    });
    let controller = Controller::with_restarts(cluster);
    controller.start();
    controller.expect(SHOP, "default", &json!({"matched": 4, "injected": 4}));
    change(cluster, "http://second:4317");
    let sentence = controller.expect_restart(SHOP, "denied", "RestartRefused");
    assert!(sentence.contains(message), "{sentence}");
    controller.expect_restart(SHOP, "two", "");
    let expected = Some(("False", "WorkloadsRefused"));
    until("the status says so", || {
        (condition(&cluster.get(SHOP, &["otelinst", "default"]), "RestartInProgress") == expected)
            .then_some(())
    });
    let [event] = &cluster.events(SHOP, "denied", "RestartRefused")[..] else { panic!("no Event") };
    assert!(event.contains(message), "{event}");
    let denied = audit::answered_patches(cluster, ACCOUNT, ["deployments", SHOP, "denied"], 422);
    assert_eq!(denied.len(), 1, "it is not repeated: {denied:?}");
    unrecorded(cluster, &controller);
}

/// What cannot be recorded is not begun; the status and the metric say so, and it goes on when it can be.
fn unrecorded(cluster: &Cluster, controller: &Controller<'_>) {
    const LEDGER: &str = "otel-webhook-restarts";
    let message = "ConfigMaps are frozen";
    deny(cluster, ("", "configmaps"), &format!("object.metadata.name != '{LEDGER}'"), message);
    until("the policy denies", || {
        let args = ["annotate", "configmap", LEDGER, "--namespace", HOME, "--dry-run=server", "try=yes"];
        cluster.plane.kubectl(&args).stderr.contains(message).then_some(())
    });
    let patches = || audit::patches(cluster, ACCOUNT, "deployments", SHOP, "two").len();
    let before = patches();
    change(cluster, "http://third:4317");
    let sentence = until("the status says why nothing is restarted", || {
        let found = cluster.get(SHOP, &["otelinst", "default"]);
        let mut conditions = items(&found["status"]["conditions"]);
        let waits = conditions.find(|one| one["reason"] == "LedgerUnavailable")?;
        Some(waits["message"].as_str().expect("text").to_owned())
    });
    assert!(sentence.contains(LEDGER) && sentence.contains(message), "{sentence}");
    let unrecorded = controller.metric("otel_webhook_restarts_total{result=\"unrecorded\"}");
    assert!(unrecorded > Some(0), "{unrecorded:?}");
    assert_eq!(patches(), before);
    cluster.run(&["delete", "validatingadmissionpolicybinding", "configmaps"]);
    controller.expect_restart(SHOP, "two", "");
    assert_eq!(patches(), before + 1);
}

/// The default image of a later version.
const LATER: &str = "--default-image=java=registry.example.com/java:2";

/// An address of this machine that an `EndpointSlice` may have.
fn own_address() -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // No datagram is sent.
    socket.connect("192.0.2.1:9").expect("a route");
    socket.local_addr().expect("an address").ip().to_string()
}

/// The controller has the default image of a later version, and a replica of the webhook not yet; then it is unavailable:
/// nothing is restarted until it agrees. The later image has a canary.
pub fn webhook_disagrees(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    shop(cluster, &["restart-b"]);
    create(cluster, &consenting(deployment(SHOP, "one", 2), "rollout"));
    create(cluster, &consenting(using_shop(deployment("restart-b", "two", 2)), "rollout"));
    let port = cluster.webhook.addresses()[1].port();
    let reached = format!("--admin-listen=0.0.0.0:{port}");
    cluster.apply(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": "replicas", "namespace": HOME, "labels": {"kubernetes.io/service-name": "otel-webhook-metrics"},
        },
        "ports": [{"name": "metrics", "port": port}],
        "endpoints": [{"addresses": [own_address()], "conditions": {"ready": true}}],
    }));
    let patches = || {
        let of = |namespace, name| audit::patches(cluster, ACCOUNT, "deployments", namespace, name);
        [of(SHOP, "one"), of("restart-b", "two")]
    };
    let waits = |controller: &Controller<'_>, why: &str| {
        for (namespace, name) in [(SHOP, "one"), ("restart-b", "two")] {
            until(&format!("{name} waits, since a replica {why}"), || {
                let (code, sentence) = controller.restart(namespace, name)?;
                (code == "WaitsForWebhook" && sentence.contains(why)).then_some(())
            });
        }
        until("the status says so", || {
            let found = cluster.get(SHOP, &["otelinst", "default"]);
            (condition(&found, "RestartInProgress") == Some(("True", "WebhookUnavailable"))).then_some(())
        });
    };
    let controller = {
        let _earlier = cluster.webhook.restart_with(&[&reached]);
        let controller =
            Controller::with_restarts_and(cluster, &["--webhook-service=otel-webhook-metrics", LATER]);
        controller.start();
        waits(&controller, "of the webhook has another one");
        controller
    };
    // As it always listens, it is not reached by the address of the slice.
    waits(&controller, "of the webhook does not answer");
    assert_eq!(patches().map(|times| times.len()), [0, 0]);
    let upgraded = cluster.webhook.restart_with(&[&reached, LATER]);
    controller.expect(SHOP, "default", &json!({"matched": 4, "injected": 4}));
    let [first, second] = patches();
    assert!(first.len() == 1 && second.len() == 1 && first[0] < second[0], "{first:?}, {second:?}");
    let template = |namespace: &str, name: &str| {
        let found = cluster.get(namespace, &["deployment", name]);
        found["spec"]["template"]["metadata"]["annotations"]["otel-webhook/config"].clone()
    };
    let value = template(SHOP, "one");
    assert!(value.as_str().is_some_and(|value| value.ends_with("/1-1")), "{value}");

    // In an outage, nothing is restarted; after it, everything goes on.
    drop(upgraded);
    change(cluster, "http://second:4317");
    waits(&controller, "of the webhook does not answer");
    let _back = cluster.webhook.restart_with(&[&reached, LATER]);
    controller.expect(SHOP, "default", &json!({"matched": 4, "injected": 4}));
    assert_eq!(patches().map(|times| times.len()), [2, 2]);
    audit::asked_only_for(cluster, ACCOUNT, &controller::roles_with_restarts());
    controller.stop();
}

/// As Argo Rollouts makes one: its name has the hash that is its pods' label.
fn replica_set_of_a_rollout(name: &str, hash: &str) -> Value {
    let mut object = deployment(SHOP, name, 1);
    object["kind"] = "ReplicaSet".into();
    object["metadata"]["name"] = format!("{name}-{hash}").into();
    object["spec"]["template"]["metadata"]["labels"]["rollouts-pod-template-hash"] = hash.into();
    object
}

/// What may not or cannot be restarted has a reason, and is as it was.
pub fn never_forced(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    shop(cluster, &[]);
    cluster.annotate(&["namespace", SHOP, "otel-webhook/restart=rollout"]);
    let stateful = |name: &str, strategy: Value| {
        let mut object = deployment(SHOP, name, 1);
        object["kind"] = "StatefulSet".into();
        object["spec"]["serviceName"] = name.into();
        object["spec"]["updateStrategy"] = strategy;
        object
    };
    let mut recreate = deployment(SHOP, "recreate", 1);
    recreate["spec"]["strategy"] = json!({"type": "Recreate"});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": SHOP},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "budget"}}}});
    cluster.apply(&budget);
    for object in [
        deployment(SHOP, "paused", 1),
        deployment(SHOP, "waiting", 1),
        recreate,
        stateful("on-delete", json!({"type": "OnDelete"})),
        stateful("partition", json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}})),
        consenting(deployment(SHOP, "budget", 2), "evict"),
        consenting(deployment(SHOP, "single", 1), "evict"),
    ] {
        create(cluster, &object);
    }
    let mut pods = template("job");
    pods["spec"]["restartPolicy"] = "Never".into();
    // One that ends is not counted.
    pods["spec"]["nodeSelector"] = json!({"is": "nowhere"});
    cluster.apply(
        &json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": SHOP},
        "spec": {"template": pods}}),
    );
    cluster.pods_of(SHOP, "app=job", 1);
    cluster.apply(&replica_set_of_a_rollout("argo", "6b7f9c"));
    cluster.pods_of(SHOP, "app=argo", 1);
    let pause = json!({"spec": {"paused": true}}).to_string();
    patch(cluster, "paused", &pause);
    let nowhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"is": "nowhere"}}}}}).to_string();
    patch(cluster, "waiting", &nowhere);

    let controller = Controller::with_restarts(cluster);
    controller.start();
    change(cluster, "http://second:4317");
    for (name, code, sentence) in [
        ("paused", "Paused", "resume its rollout"),
        ("waiting", "WaitsForRollout", "its last rollout is in progress"),
        ("recreate", "Recreate", "ends all pods at once"),
        ("on-delete", "OnDelete", "delete its pods"),
        ("partition", "Partition", "set it to 0"),
        ("single", "TooFewAvailable", "fewer than two pods are available"),
        ("job", "KindNotRestarted", "its kind is not restarted"),
        ("argo", "KindNotRestarted", "its kind is not restarted"),
        ("budget", "Restarting", ""),
    ] {
        let found = controller.expect_restart(SHOP, name, code);
        assert!(found.contains(sentence), "{name}: {found}");
    }
    until("the budget is the reason", || {
        let (_, sentence) = controller.restart(SHOP, "budget")?;
        (sentence.contains("not possible now") && sentence.contains("disruption budget")).then_some(())
    });
    controller.stop();
    for resource in ["deployments", "statefulsets", "replicasets", "rollouts"] {
        assert_eq!(audit::count(cluster, ACCOUNT, "patch", resource), 0, "{resource}");
    }
    let pods = cluster.get(SHOP, &["pods", "--selector=app=budget"]);
    assert!(items(&pods["items"]).all(|pod| pod["metadata"]["deletionTimestamp"].is_null()), "{pods}");
}

/// A tool such as Argo CD takes the annotation back, at once or when the rollout is complete: the restart is not made again.
pub fn taken_back(_: &Cluster) {
    let cluster = Cluster::with_node(&[]);
    shop(&cluster, &[]);
    take_back_twice(&cluster);
}

/// The same without a status in which the controller could note something.
pub fn taken_back_on_the_operators_crd(_: &Cluster) {
    let cluster = Cluster::with_node(&[]);
    shop(&cluster, &[]);
    drop_statuses(&cluster, SHOP);
    take_back_twice(&cluster);
    assert!(cluster.get(SHOP, &["otelinst", "default"])["status"]["pods"].is_null());
}

fn take_back_twice(cluster: &Cluster) {
    for name in ["at-once", "later"] {
        create(cluster, &consenting(deployment(SHOP, name, 2), "rollout"));
    }
    let controller = Controller::with_restarts(cluster);
    controller.start();
    change(cluster, "http://second:4317");
    let annotation = "/spec/template/metadata/annotations/otel-webhook~1config";
    let patch = json!([{"op": "remove", "path": annotation}]).to_string();
    let take_back = |name: &str| {
        let args = ["patch", "deployment", name, "--namespace", SHOP, "--type=json", "--patch", &patch];
        until(&format!("the annotation of {name} is taken back"), || {
            cluster.plane.kubectl(&args).ok.then_some(())
        });
    };
    take_back("at-once");
    until("the second one is restarted, and has new pods", || {
        let found = cluster.get(SHOP, &["deployment", "later"]);
        let is_complete = found["metadata"]["generation"] == found["status"]["observedGeneration"]
            && found["status"]["updatedReplicas"] == 2
            && found["status"]["replicas"] == 2;
        // All of one read: before the restart, the first rollout is complete, too.
        (is_complete && revision_of(&found) == "2").then_some(())
    });
    take_back("later");
    controller.expect_restart(SHOP, "later", "");
    // Its pods may be those from before, which are then not restarted again.
    let (code, sentence) = until("the first one is not observed any more", || {
        let told = controller.restart(SHOP, "at-once")?;
        ["", "AlreadyRestarted"].contains(&&*told.0).then_some(told)
    });
    assert!(
        code.is_empty() || sentence.contains("it was restarted for this configuration already"),
        "{sentence}"
    );
    controller.stop();
    for name in ["at-once", "later"] {
        assert_eq!(audit::patches(cluster, ACCOUNT, "deployments", SHOP, name).len(), 1, "{name}");
        // To the annotation, and back to the first template.
        assert_eq!(revision(cluster, SHOP, name), "3", "{name}");
    }
    assert_eq!(cluster.events(SHOP, "later", "Restarted").len(), 1, "its pods were replaced");
}
