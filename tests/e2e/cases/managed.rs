//! Managed certificates, with three replicas and pods that are created all the time.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use otel_webhook_testkit::{
    cluster::{created::Created, traffic::Traffic},
    runner::note,
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::replicas::{HOME, REPLICAS, Replicas, SECRET, configuration};
use crate::webhook::pair;

const KINDS: [&str; 2] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];

/// How many serving certificates each set of replicas goes through.
const ROTATIONS: usize = 10;

/// A third of these is what processes that share a machine with others have to follow in.
const SHORT: [&str; 6] = ["--tls-lifetime", "24s", "--tls-ca-lifetime", "24s", "--tls-propagation", "1s"];

/// All of them make what is missing, and one of them does.
pub fn together(cluster: &Cluster) {
    let replicas = Replicas::started(cluster, "managed-together", &[]);
    let secret = replicas.secret().expect("a Secret");
    assert_eq!(secret["type"], "kubernetes.io/tls");
    let bundle = decoded(&secret, "ca.crt");
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1, "one CA");
    assert_eq!(replicas.all_said("there is no CA"), 1, "made by one of them");
    for replica in 0..REPLICAS {
        for kind in KINDS {
            assert_eq!(replicas.bundle(kind, replica), BASE64_STANDARD.encode(&bundle), "{kind} {replica}");
        }
        let created = cluster.create("managed-together", &replicas.pod(&format!("pod-{replica}"), replica));
        assert!(created.is_injected(), "by replica {replica}");
        let failures =
            replicas.metric(replica, "otel_webhook_managed_certificate_failures_total{operation=\"Secret\"}");
        assert_eq!(failures, Some(0.0));
    }
    assert_eq!(replicas.all_said("PRIVATE KEY"), 0);
    for key in ["tls.key", "ca.key"] {
        let text = decoded(&secret, key);
        let line = text.lines().nth(1).expect("a line of the key");
        assert_eq!(replicas.all_said(line), 0, "{key} is in a log");
    }
}

/// Not ready before API servers can reach it, and ready as soon as they can.
pub fn later(cluster: &Cluster) {
    let replicas = Replicas::new(cluster, "managed-later", &[]);
    replicas.start(0);
    until("it says that it waits", || {
        (replicas.said(0, "none of these webhook configurations exists yet") == 1).then_some(())
    });
    assert!(replicas.secret().is_some(), "what can be made is made");
    let text = replicas.readiness(0);
    assert!(text.contains("certificate: caBundle of the webhook configurations does not verify"), "{text}");

    replicas.register(0);

    replicas.wait_until_ready(0);
    let created =
        cluster.create_when("the API server knows", "managed-later", &replicas.pod("pod", 0), |pod| {
            pod.is_injected()
        });
    assert!(created.is_injected());
    // Once ready it stays so, whatever becomes of the configuration.
    for kind in KINDS {
        cluster.plane.kubectl(&["delete", kind, &configuration(0)]);
    }
    until("it sees that they are gone", || {
        (replicas.said(0, "none of these webhook configurations exists yet") == 2).then_some(())
    });
    assert!(replicas.is_ready(0));
}

/// `caBundle` is put back, whatever it was changed to.
pub fn vandalised_bundle(cluster: &Cluster) {
    let replicas = Replicas::started(cluster, "managed-bundle", &[]);
    let right = replicas.bundle(KINDS[0], 0);
    let other = BASE64_STANDARD.encode(pair().ca_pem);
    let mut times = Vec::new();
    for (kind, wrong) in KINDS.iter().flat_map(|kind| [(kind, ""), (kind, &other)]) {
        set_bundle(cluster, kind, wrong);
        let began = Instant::now();
        until("it is put back", || (replicas.bundle(kind, 1) == right).then_some(()));
        times.push(began.elapsed());
        assert!((0..REPLICAS).all(|replica| replicas.is_ready(replica)), "none is taken out");
    }
    note(&format!("caBundle was put back after {times:.0?}, the look by kubectl included"));
    assert_eq!(
        replicas.all_said("another client changed caBundle; it was restored"),
        times.len(),
        "by one of them"
    );
    assert!(replicas.all_said("kubectl") >= times.len(), "who did it is named");
}

/// Whatever happens to the Secret, no pod goes without its agent, and all is as it has to be again.
pub fn vandalised_secret(cluster: &Cluster) {
    let replicas = Replicas::started(cluster, "managed-secret", &["--tls-propagation", "1s"]);
    let pods = pods(&replicas);
    let pod = |number: usize| named(&pods[number % REPLICAS], number);
    let traffic = Traffic::new(&cluster.plane, 1, &pod, Created::is_injected);
    let before = cluster.plane.api_server_log().len();
    let created = traffic.during(|| {
        for damage in ["ca.key", "tls.key", "tls.crt", "ca.crt", "deleted"] {
            let before = replicas.secret().expect("a Secret");
            let patch = json!({"data": {(damage): BASE64_STANDARD.encode("nonsense")}}).to_string();
            let args = ["patch", "secret", SECRET, "--namespace", HOME, "--patch", &patch];
            let delete = ["delete", "secret", SECRET, "--namespace", HOME];
            cluster.run(if damage == "deleted" { &delete[..] } else { &args });
            until(&format!("another certificate is served, {damage}"), || {
                let now = replicas.secret()?;
                let is_new = decoded(&now, "tls.crt") != decoded(&before, "tls.crt");
                let all_serve = (0..REPLICAS).all(|replica| serves(&replicas, replica, &now));
                (is_new && decoded(&now, damage) != "nonsense" && all_serve).then_some(())
            });
            traffic.goes_on();
        }
    });
    note(&format!("{created} pods were created, and all injected"));
    for replica in 0..REPLICAS {
        let name = format!("managed-{replica}.otel-webhook.example");
        assert_eq!(cluster.plane.logged_since(before, &[&name]), [""; 0]);
    }
    assert_eq!(replicas.all_said("the Secret was invalid and was repaired"), 4, "each by one of them");
}

/// A Secret that is somebody else's is left alone, and said to be.
pub fn foreign_secret(cluster: &Cluster) {
    let replicas = Replicas::new(cluster, "managed-foreign", &[]);
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": SECRET, "namespace": HOME}, "stringData": {"password": "of somebody"},
    });
    cluster.apply(&foreign);
    replicas.register(0);
    replicas.start(0);
    until("it says what is wrong", || (replicas.said(0, "its type is \\\"Opaque\\\"") > 0).then_some(()));
    assert_eq!(decoded(&replicas.secret().expect("a Secret"), "password"), "of somebody");
    assert!(!replicas.is_ready(0));

    cluster.plane.kubectl(&["delete", "secret", SECRET, "--namespace", HOME]);

    replicas.wait_until_ready(0);
}

/// Certificates and CAs change all the time, replicas are cut off in between, and every pod is
/// injected. Several sets of replicas do this side by side: lifetimes have to be long enough for a machine
/// that is busy with something else, and one set alone would take many minutes.
pub fn rotations(cluster: &Cluster) {
    let (began, before) = (Instant::now(), cluster.plane.api_server_log().len());
    let sets = [1, 2, 3, 4, 5].map(|set| Replicas::started_set(cluster, set, "managed-rotations", &SHORT));
    let pods: Vec<_> = sets.iter().flat_map(pods).collect();
    let third = AtomicBool::new(true);
    let pod = |number: usize| {
        let all = third.load(SeqCst);
        let running: Vec<_> = pods.iter().filter(|pod| all || pod["metadata"]["name"] != "third").collect();
        named(running[number % running.len()], number)
    };
    let traffic = Traffic::new(&cluster.plane, 1, &pod, Created::is_injected);
    let rotations = |set: &Replicas<'_>| set.said(0, "serving a new certificate") - 1;
    let wait = |count: usize| {
        until(&format!("{count} rotations"), || sets.iter().all(|set| rotations(set) >= count).then_some(()));
    };
    let created = traffic.during(|| {
        wait(ROTATIONS / 3);
        third.store(false, SeqCst);
        // Its last pod is on its way no more.
        traffic.goes_on();
        for set in &sets {
            set.kill(2);
        }
        wait(2 * ROTATIONS / 3);
        for set in &sets {
            set.start(2);
        }
        for set in &sets {
            set.wait_until_ready(2);
        }
        third.store(true, SeqCst);
        wait(ROTATIONS);
    });
    let rotations: usize = sets.iter().map(rotations).sum();
    let cas: usize = sets.iter().map(|set| set.all_said("the next CA was added to the bundle")).sum();
    note(&format!(
        "{created} pods in {rotations} rotations, {cas} of the CA, in {:.0?}: all injected",
        began.elapsed()
    ));
    assert!(rotations >= 50, "only {rotations}");
    assert!(cas > rotations / 5, "only {cas} rotations of the CA");
    assert_eq!(cluster.plane.logged_since(before, &["managed-set-", ".otel-webhook.example"]), [""; 0]);
}

/// Another tool that puts something else there again and again is not fought forever.
pub fn quarrel(cluster: &Cluster) {
    let replicas = Replicas::started(cluster, "managed-quarrel", &[]);
    let other = BASE64_STANDARD.encode(pair().ca_pem);
    let gave_up = |replica| replicas.said(replica, "not restoring it for a while") > 0;
    until("all leave it alone", || {
        set_bundle(cluster, KINDS[0], &other);
        (0..REPLICAS).all(gave_up).then_some(())
    });
    // The last one may have put it back once more before it gave up.
    set_bundle(cluster, KINDS[0], &other);
    let in_step = "otel_webhook_ca_bundle_current{kind=\"MutatingWebhookConfiguration\",name=\"managed-1\"}";
    until("whoever watches over it is told", || {
        (0..REPLICAS).all(|replica| replicas.metric(replica, in_step) == Some(0.0)).then_some(())
    });
    assert_eq!(replicas.bundle(KINDS[0], 1), other);
    let repairs = replicas.all_said("another client changed caBundle; it was restored");
    assert!(repairs <= 10 * REPLICAS, "{repairs} in a minute");
}

/// Changes `caBundle` of the second replica's configuration.
fn set_bundle(cluster: &Cluster, kind: &str, bundle: &str) {
    let patch = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]);
    let args = ["patch", kind, &configuration(1), "--type=json", "--patch", &patch.to_string()];
    cluster.run(&args);
}

/// A pod for each replica.
fn pods(replicas: &Replicas<'_>) -> [Value; REPLICAS] {
    [("first", 0), ("second", 1), ("third", 2)].map(|(name, replica)| replicas.pod(name, replica))
}

fn named(pod: &Value, number: usize) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["name"] = format!("pod-{number}").into();
    pod
}

/// Whether a replica serves the certificate of the Secret, by when that expires.
fn serves(replicas: &Replicas<'_>, replica: usize, secret: &Value) -> bool {
    let pem = decoded(secret, "tls.crt");
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(pem.as_bytes()) else { return false };
    let Ok(certificate) = pem.parse_x509() else { return false };
    let served = replicas.metric(replica, "otel_webhook_certificate_expiry_timestamp_seconds");
    let expiry = certificate.validity().not_after.timestamp().to_string();
    served.is_some_and(|served| format!("{served:.0}") == expiry)
}

fn decoded(secret: &Value, key: &str) -> String {
    let text = BASE64_STANDARD.decode(secret["data"][key].as_str().unwrap_or_default()).expect("base64");
    String::from_utf8(text).expect("text")
}
