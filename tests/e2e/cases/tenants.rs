//! Tenants: Instrumentations of other namespaces, and who may do what with them.

use otel_webhook_testkit::{cluster::created::Created, until::until};
use serde_json::{Value, json};

use super::check::check_as;
use crate::audit;
use crate::cluster::{Cluster, LIMIT, asking, template};
use crate::registration;

const AGGREGATED: &str = include_str!("../../../manifests/rbac/aggregated.yaml");

/// The namespace whose pods name what another one has.
const GUEST: &str = "guest";
const HOST: &str = "host";

/// Each mode in turn, with the list of allowed namespaces added and removed.
pub fn modes(cluster: &Cluster) {
    cluster.namespace(GUEST, &[]);
    host(cluster);
    allowed(cluster);
    granted(cluster);
    denied(cluster);
}

fn host(cluster: &Cluster) {
    cluster.namespace(HOST, &[]);
    for name in ["shared", "private"] {
        cluster.instrumentation(HOST, name, &json!({}));
    }
}

fn named(name: &str, instrumentation: &str) -> Value {
    asking(name, &[("inject-java", instrumentation)])
}

fn allow(cluster: &Cluster, change: &str) {
    let annotation = format!("otel-webhook/allowed-namespaces{change}");
    let args = ["annotate", "--overwrite", "--namespace", HOST, "instrumentation", "shared", &annotation];
    let ran = cluster.plane.kubectl(&args);
    assert!(ran.ok, "{}", ran.stderr);
}

fn allowed(cluster: &Cluster) {
    let shared = named("allowed", "host/shared");
    cluster.create_when("the one elsewhere is known", GUEST, &shared, Created::is_injected);
    let lists = |pod: &Created| pod.warnings.contains("its namespace has: private, shared");
    let pod = cluster.create_when("both are known", GUEST, &named("missing", "host/missing"), lists);
    assert_eq!(audit::decision(cluster, GUEST, pod.name()), "java=InstrumentationNotFound");
}

fn granted(cluster: &Cluster) {
    let _granted = cluster.webhook.restart_with(&["--cross-namespace", "granted"]);
    let shared = |name| named(name, "host/shared");
    let hidden = cluster.create(GUEST, &shared("hidden"));
    let sentence = "Warning: otel-webhook: java: Instrumentation \"host/shared\" not found, or not \
                    granted to namespace \"guest\"";
    assert!(hidden.is_untouched() && hidden.warnings.contains(sentence), "{}", hidden.warnings);
    assert_eq!(audit::decision(cluster, GUEST, "hidden"), "java=InstrumentationNotGranted");
    // The very same as of one that is not there, or of a namespace that is not.
    for other in ["host/missing", "nowhere/shared"] {
        let missing = cluster.dry_run(GUEST, &named("not-there", other));
        let same = |text: &str| text.replace(other, "host/shared");
        assert_eq!(same(&missing.warnings), hidden.warnings);
        assert_eq!(missing.status(), hidden.status());
        assert_eq!(same(&missing.message()), hidden.message());
    }
    let annotations = hidden.pod["metadata"]["annotations"].to_string();
    assert!(!hidden.warnings.contains("private") && !annotations.contains("private"), "{annotations}");

    allow(cluster, "=elsewhere, guest");
    let pod = cluster.create_when("it is granted", GUEST, &shared("granted"), Created::is_injected);
    assert!(pod.status().contains("host/shared"), "{}", pod.status());
    let other = cluster.dry_run(GUEST, &named("other", "host/private"));
    assert!(!other.is_injected(), "{}", other.pod);
    assert!(
        other.message().contains("granted Instrumentations of its namespace: shared"),
        "{}",
        other.message()
    );
    workload(cluster);

    allow(cluster, "-");
    let gone = |pod: &Created| !pod.is_injected();
    let pod = cluster.create_when("it is granted no more", GUEST, &shared("no-more"), gone);
    assert_eq!(pod.warnings, hidden.warnings);
}

/// Whoever applies a Deployment reads the same as of its pods.
fn workload(cluster: &Cluster) {
    let _registered = registration::register_workloads(&cluster.plane, &cluster.webhook, GUEST);
    let mut template = template("order");
    let annotations = json!({"instrumentation.opentelemetry.io/inject-java": "host/private"});
    template["metadata"]["annotations"] = annotations;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "order", "namespace": GUEST},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "order"}}, "template": template},
    });
    let warnings = until("the registration is in effect", LIMIT, || {
        let args = ["apply", "--dry-run=server", "--filename", "-"];
        let ran = cluster.plane.kubectl_in(&args, &deployment.to_string());
        ran.stderr.contains("Warning").then_some(ran.stderr)
    });
    let sentence = "\"host/private\" not found, or not granted to namespace \"guest\"";
    assert!(warnings.contains(sentence), "{warnings}");
}

fn denied(cluster: &Cluster) {
    allow(cluster, "=*");
    let _denied = cluster.webhook.restart_with(&["--cross-namespace", "deny"]);
    let pod = cluster.create(GUEST, &named("denied", "host/shared"));
    let sentence = "\"host/shared\" is in another namespace, which --cross-namespace=deny does not \
                    allow; create one in namespace \"guest\"";
    assert!(pod.is_untouched() && pod.warnings.contains(sentence), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, GUEST, "denied"), "java=CrossNamespaceDenied");
    let own = cluster.create(HOST, &named("own", "host/shared"));
    assert!(own.is_injected(), "{}", own.pod);
}

/// What the built-in roles let their users do, by a binding in one namespace.
pub fn roles(cluster: &Cluster) {
    let namespace = "tenant-roles";
    host(cluster);
    cluster.namespace(namespace, &[]);
    cluster.instrumentation(namespace, "kept", &json!({}));
    for role in ["view", "edit", "admin"] {
        cluster.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user(role)}],
        }));
    }
    let can = |role: &str, verb: &str, namespace: &str| {
        let what = ["auth", "can-i", verb, "instrumentations.opentelemetry.io"];
        cluster.plane.kubectl(&[&what[..], &["--namespace", namespace, "--as", &user(role)]].concat()).ok
    };
    until("the bindings are in effect", LIMIT, || {
        let pods = ["auth", "can-i", "list", "pods", "--namespace", namespace, "--as", &user("view")];
        cluster.plane.kubectl(&pods).ok.then_some(())
    });
    assert!(!can("view", "list", namespace), "the built-in role covers them without ours");

    registration::apply(&cluster.plane, AGGREGATED);

    until("Kubernetes has aggregated the roles", LIMIT, || {
        let all = can("view", "list", namespace)
            && can("edit", "create", namespace)
            && can("admin", "create", namespace);
        all.then_some(())
    });
    let (reading, writing) = (["get", "list", "watch"], ["create", "update", "patch", "delete"]);
    for (role, may_write) in [("view", false), ("edit", true), ("admin", true)] {
        for verb in reading {
            assert!(can(role, verb, namespace), "{role} {verb}");
            assert!(!can(role, verb, HOST), "{role} {verb} elsewhere");
        }
        for verb in writing {
            assert_eq!(can(role, verb, namespace), may_write, "{role} {verb}");
            assert!(!can(role, verb, HOST), "{role} {verb} elsewhere");
        }
    }
    let create = |role: &str, namespace: &str| {
        let object = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "tried", "namespace": namespace}, "spec": {}});
        cluster.plane.kubectl_in(&["create", "--as", &user(role), "--filename", "-"], &object.to_string())
    };
    let refused = create("view", namespace);
    assert!(!refused.ok && refused.stderr.contains("cannot create resource"), "{}", refused.stderr);
    let created = create("edit", namespace);
    assert!(created.ok, "{}", created.stderr);
    let elsewhere = create("edit", HOST);
    assert!(!elsewhere.ok && elsewhere.stderr.contains("cannot create resource"), "{}", elsewhere.stderr);
    few_rights(cluster, namespace);
}

/// `check` shows a tenant nothing that he may not list himself.
fn few_rights(cluster: &Cluster, namespace: &str) {
    cluster.apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "tenant", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }));
    let mut template = template("order");
    let annotations = json!({"instrumentation.opentelemetry.io/inject-java": "host/missing"});
    template["metadata"]["annotations"] = annotations;
    cluster.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "order", "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "order"}}, "template": template},
    }));
    let tenant = registration::write_kubeconfig(&cluster.plane, namespace, "default");
    let tenant = tenant.to_str().expect("UTF-8");
    for more in [&[][..], &["--preview"]] {
        let checked = check_as(tenant, &[&["-n", namespace], more].concat());
        let said = format!("{checked:?}");
        assert!(said.contains("not readable by you (list instrumentations in host)"), "{said}");
        assert!(!said.contains("shared") && !said.contains("private"), "{said}");
    }
    // Whoever may list them sees by the mode what the tenant would be told.
    let admin = cluster.plane.kubeconfig().to_str().expect("UTF-8");
    for (mode, shows) in [("allow", true), ("granted", false), ("deny", false)] {
        let flags = ["-n", namespace, "--own-flags", "--cross-namespace", mode];
        let said = format!("{:?}", check_as(admin, &flags));
        assert!(said.contains("host/missing"), "{said}");
        assert_eq!(said.contains("private"), shows, "{mode}: {said}");
    }
}

fn user(role: &str) -> String {
    format!("{role}-of-a-tenant")
}
