//! Differences in what added containers ask for.

use std::slice;

use otel_webhook_inject::{Finding, InitResources};
use otel_webhook_testkit::{
    objects::{asking, instrumentation, limit_range, quota},
    surroundings::{Injected, Surroundings},
};
use serde_json::{Value, json};

/// Resources of Java's init container next to a container with these.
fn resources(way: InitResources, own: Value) -> Value {
    let mut around = Surroundings::new([instrumentation("inst", json!({}))]);
    around.settings.init_resources = way;
    let injected = around.inject(&asking(&["java"], json!({"resources": own})));
    injected.container("opentelemetry-auto-instrumentation-java").expect("injected")["resources"].clone()
}

#[test]
fn d23_init_containers_change_neither_the_request_nor_the_class() {
    let exact = resources(InitResources::Exact, json!({}));
    assert_eq!(exact["requests"], json!({"cpu": "50m", "memory": "64Mi"}), "as the operator does");
    let neutral = |own| resources(InitResources::Neutral, own);
    assert_eq!(neutral(json!({})), json!({"limits": {}, "requests": {}}), "a BestEffort pod stays one");
    let limits = json!({"cpu": "100m", "memory": "200Mi"});
    let guaranteed = neutral(json!({"limits": limits}));
    assert_eq!(guaranteed, json!({"limits": limits, "requests": limits}), "a Guaranteed pod stays one");
    let burstable = neutral(json!({"requests": {"cpu": "20m"}}));
    assert_eq!(burstable, json!({"limits": {}, "requests": {"cpu": "20m"}}), "no limit that the pod has not");
    let own = json!({"cpu": "1", "memory": "1Gi"});
    let within = neutral(json!({"requests": {"cpu": "50m", "memory": "1Gi"}, "limits": own}));
    assert_eq!(within, exact, "those of the Instrumentation, which the target has at least");
}

const INIT: &str = "opentelemetry-auto-instrumentation-java";

/// What the core makes of a pod next to these objects, in its default settings.
fn beside(objects: &[Value], pod: &Value) -> Injected {
    let mut around = Surroundings::new(objects.iter().cloned().chain([instrumentation("inst", json!({}))]));
    around.settings.init_resources = InitResources::Neutral;
    around.inject(pod)
}

fn told(injected: &Injected) -> String {
    let notes = |finding: &Finding| finding.notes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let findings = injected.outcome.findings.iter();
    findings
        .flat_map(|finding| [vec![finding.to_string()], notes(finding)].concat())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn d32_limit_ranges_and_quotas_accept_the_init_containers() {
    let bounds = limit_range(&json!({
        "type": "Container", "min": {"cpu": "80m", "memory": "32Mi"}, "maxLimitRequestRatio": {"memory": "2"},
        "default": {"memory": "300Mi"}, "defaultRequest": {"memory": "200Mi"},
    }));
    let own = json!({"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"memory": "300Mi"}});
    let injected = beside(&[bounds], &asking(&["java"], json!({"resources": own})));
    assert_eq!(injected.container(INIT).expect("injected")["resources"], own, "those of the target");
    assert!(told(&injected).contains("so that LimitRange \"bounds\" accepts the pod"), "{}", told(&injected));

    let obliging = quota(&json!({"limits.cpu": "4", "requests.cpu": "4"}));
    let own = json!({"requests": {"cpu": "0"}, "limits": {"cpu": "2"}});
    let injected = beside(&[obliging], &asking(&["java"], json!({"resources": own})));
    assert_eq!(injected.container(INIT).expect("injected")["resources"], own);

    let exact = |bounds: &Value| {
        let around = Surroundings::new([bounds.clone(), instrumentation("inst", json!({}))]);
        let own = json!({"limits": {"cpu": "1", "memory": "300Mi"}});
        let injected = around.inject(&asking(&["java", "apache-httpd"], json!({"resources": own})));
        ["otel-agent-source-container-clone", "otel-agent-attach-apache", INIT]
            .map(|name| injected.container(name).expect("injected")["resources"].clone())
    };
    let ratio = limit_range(&json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "1"}}));
    for resources in exact(&ratio) {
        assert_eq!(resources["limits"], resources["requests"], "fitted, as exact would be rejected");
    }
    let far = limit_range(&json!({"type": "Container", "max": {"cpu": "9"}}));
    assert_eq!(exact(&far)[2]["requests"], json!({"cpu": "50m", "memory": "64Mi"}), "exact is accepted");
}

#[test]
fn d32_a_sidecar_that_does_not_fit_is_skipped() {
    let go = |objects: &[Value], own: Value| {
        let injected = beside(objects, &asking(&["go"], json!({"resources": own})));
        let sidecar = injected.container("opentelemetry-auto-instrumentation");
        (sidecar.map(|sidecar| sidecar["resources"].clone()), told(&injected))
    };
    let own = json!({"limits": {"memory": "512Mi"}});
    let (resources, said) = go(&[quota(&json!({"limits.memory": "612Mi"}))], own.clone());
    let fitted =
        json!({"limits": {"cpu": "500m", "memory": "100Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}});
    assert_eq!(resources.as_ref(), Some(&fitted), "{said}");
    assert!(
        said.contains(
            "the resources of the sidecar were adjusted so that ResourceQuota \"team\" accepts the pod"
        ),
        "{said}"
    );
    let (resources, said) = go(&[quota(&json!({"limits.memory": "550Mi"}))], own.clone());
    assert_eq!(resources, None);
    let reason = "go in app: ResourceQuota \"team\" would reject the pod with the sidecar: 550Mi of limits.memory is left, and the pod would need 576Mi";
    assert!(said.starts_with(reason), "{said}");
    let bounds = limit_range(&json!({"type": "Pod", "max": {"memory": "550Mi"}}));
    let (resources, said) = go(&[bounds], own);
    assert_eq!(resources, None);
    assert!(said.contains("LimitRange \"bounds\" would reject the pod with the sidecar: its max of memory for a pod is 550Mi, and the limit would be 576Mi"), "{said}");
}

#[test]
fn d32_a_claim_that_would_be_rejected_is_not_made() {
    let claim = |storage: &str| json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": storage}}}});
    let codes = |objects: &[Value], storage: &str| {
        let spec = json!({"java": {"volumeClaimTemplate": claim(storage)}, "nodejs": {"volumeClaimTemplate": claim(storage)}});
        let objects = objects.iter().cloned().chain([instrumentation("inst", spec)]);
        let injected = Surroundings::new(objects).inject(&asking(&["java", "nodejs"], json!({})));
        let volumes = injected.names("volumes").len();
        (injected.codes(), volumes, told(&injected))
    };
    let both = ["java/app: Injected", "nodejs/app: Injected"];
    assert_eq!(codes(&[quota(&json!({"requests.storage": "2Gi"}))], "1Gi").0, both);
    for hard in [
        json!({"requests.storage": "1Gi"}),
        json!({"persistentvolumeclaims": "1"}),
        json!({"fast.storageclass.storage.k8s.io/requests.storage": "1Gi"}),
        json!({"count/persistentvolumeclaims": "1", "requests.storage": "9Gi"}),
    ] {
        let (codes, volumes, said) = codes(&[quota(&hard)], "1Gi");
        assert_eq!(codes, ["java/app: Injected", "nodejs: ClaimRejected"], "{hard}");
        assert_eq!(volumes, 1);
        assert!(
            said.contains("ResourceQuota \"team\" would reject the claim of spec.nodejs.volumeClaimTemplate"),
            "{said}"
        );
    }
    let bounds = limit_range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}));
    assert_eq!(codes(slice::from_ref(&bounds), "1Gi").0, both);
    let (refused, volumes, said) = codes(&[bounds], "2Gi");
    assert_eq!((refused[..].join(" "), volumes), ("java: ClaimRejected nodejs: ClaimRejected".to_owned(), 0));
    assert!(said.contains("its max of storage for a claim is 1Gi, and the request is 2Gi"), "{said}");
}

#[test]
fn d32_a_strict_service_account_keeps_secrets_out() {
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "shop", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}});
    let by_volume = json!({"exporter": {"tls": {"secretName": "certs"}}});
    let by_variable =
        json!({"env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "certs", "key": "t"}}}]});
    let by_language = json!({"java": by_variable});
    let codes = |name: &str, spec: &Value, container: Value, language: &str| {
        let around = Surroundings::new([account(name), instrumentation("inst", spec.clone())]);
        let injected = around.inject(&asking(&[language], container));
        (injected.codes().join(" "), told(&injected))
    };
    for spec in [&by_volume, &by_variable, &by_language] {
        assert_eq!(codes("other", spec, json!({}), "java").0, "java/app: Injected");
        let (code, said) = codes("default", spec, json!({}), "java");
        assert_eq!(code, "java: SecretNotAllowed", "{spec}");
        assert!(said.contains("ServiceAccount \"default\"") && said.contains("Secret \"certs\""), "{said}");
        // What the pod refers to itself is on the list.
        let own =
            json!({"env": [{"name": "OWN", "valueFrom": {"secretKeyRef": {"name": "certs", "key": "k"}}}]});
        assert_eq!(codes("default", spec, own, "java").0, "java/app: Injected");
    }
    assert_eq!(codes("default", &by_language, json!({}), "sdk").0, "sdk/app: Injected", "it is Java's");
}

#[test]
fn d32_a_mirror_pod_stays_as_it_is() {
    let mut mirror = asking(&["java"], json!({}));
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "hash".into();
    let mut around = Surroundings::new([instrumentation("inst", json!({}))]);
    around.settings.stamp = true;
    let injected = around.inject(&mirror);
    assert_eq!(injected.codes(), ["java: MirrorPod"]);
    assert!(injected.is_unchanged() && injected.outcome.warnings().len() == 1);
    // Nothing is said where only the namespace asks.
    let annotations = json!({"instrumentation.opentelemetry.io/inject-java": "true"});
    around.objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}}));
    mirror["metadata"]["annotations"]
        .as_object_mut()
        .expect("annotations")
        .retain(|key, _| !key.contains("inject"));
    let injected = around.inject(&mirror);
    assert!(injected.is_unchanged() && injected.outcome.findings.is_empty());
}
