//! Restarts by consent, of real workloads on a node of kwok.

pub mod support;
pub mod taken_back;

use std::{thread, time::Duration};

use otel_webhook_testkit::{objects::items, runner::note, until::until};
use serde_json::{Value, json};

use crate::{
    audit,
    cluster::{Cluster, LIMIT, template},
    controller::{self, ACCOUNT, Controller, deployment},
    registration::HOME,
};
use support::{
    CRASH, SHOP, annotate, change, condition, consenting, crash, create, events, expect_stopped, patch,
    prepare_three, revision, shop, using_shop,
};

/// Each workload that consents is restarted once, one of them first, and the others are left alone.
pub fn by_consent(_: &Cluster) {
    let cluster = &Cluster::with_node(&[]);
    let others = ["restart-b", "restart-c"];
    shop(cluster, &others);
    annotate(cluster, &["namespace", SHOP, "otel-webhook/restart=rollout"]);
    for name in ["one", "two"] {
        create(cluster, &deployment(SHOP, name, 2));
    }
    create(cluster, &consenting(deployment(SHOP, "never", 2), "never"));
    create(cluster, &consenting(using_shop(deployment("restart-b", "own", 2)), "rollout"));
    create(cluster, &consenting(using_shop(deployment("restart-b", "evicted", 2)), "evict"));
    create(cluster, &using_shop(deployment("restart-b", "silent", 2)));
    // An Instrumentation consents for its own namespace only.
    annotate(cluster, &["otelinst", "default", "--namespace", SHOP, "otel-webhook/restart=rollout"]);
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
    let found = until("the restarts are told as done", LIMIT, || {
        let found = cluster.get(SHOP, &["otelinst", "default"]);
        (condition(&found, "RestartInProgress") == Some(("False", "WorkloadsRestarted"))).then_some(found)
    });
    assert_eq!(found["status"]["restart"]["done"], 4, "{}", found["status"]);
    assert_eq!(condition(&found, "RestartStopped"), Some(("False", "NotStopped")));
    assert_eq!(events(cluster, SHOP, "one", "Restarted").len(), 1);

    // Another process of the same configuration restarts nothing.
    let before = audit::count(cluster, ACCOUNT, "patch", "deployments");
    controller.stop();
    controller.start();
    controller.expect_restart(SHOP, "never", "NoConsent");
    controller.stop();
    assert_eq!(audit::count(cluster, ACCOUNT, "patch", "deployments"), before);
    let (asked, granted) =
        (audit::asked(cluster, ACCOUNT), audit::granted(&controller::roles_with_restarts()));
    let more: Vec<_> = asked.difference(&granted).collect();
    assert!(more.is_empty(), "asked for but not granted: {more:?}");
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
        let ran = cluster.plane.kubectl(&["delete", "lease", "otel-webhook-controller", "--namespace", HOME]);
        assert!(ran.ok, "{}", ran.stderr);
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
    let folder = tempfile::tempdir().expect("a folder");
    let stage = folder.path().join("crash.yaml");
    std::fs::write(&stage, CRASH).expect("the folder is writable");
    let mut cluster = Cluster::with_node(&[&stage]);
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
        assert_eq!(events(&cluster, SHOP, "one", "RestartStopped").len(), 1);
        assert_eq!(controller.metric("otel_webhook_restarts_stopped{}"), Some(1));

        // Back to what it was: that reaches the workload that failed, and the others have it.
        crash(&cluster, false);
        controller.expect(SHOP, "default", &json!({"matched": 6, "injected": 6}));
        until("restarts are not stopped any more", LIMIT, || {
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
    let ran = cluster.plane.kubectl(&["delete", "pods", "--namespace", SHOP, "--selector=app=one"]);
    assert!(ran.ok, "{}", ran.stderr);
    let controller = Controller::with_restarts(&cluster);
    controller.start();
    controller.expect_restart(SHOP, "two", "RestartStopped");
    assert_eq!(controller.metric("otel_webhook_restarts_stopped{}"), Some(1), "another leader tells it, too");
    annotate(&cluster, &["otelinst", "default", "--namespace", SHOP, "otel-webhook/resume-restart=1"]);
    for name in ["one", "two", "three"] {
        controller.expect_restart(SHOP, name, "");
    }
    controller.expect(SHOP, "default", &json!({"matched": 6, "injected": 6}));
    assert_eq!(patches(&cluster), [3, 1, 1]);
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
    annotate(cluster, &["namespace", SHOP, "otel-webhook/restart=rollout"]);
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
    until("the budget is the reason", LIMIT, || {
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
