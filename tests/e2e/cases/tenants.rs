//! What the built-in roles permit to do with Instrumentations.

use otel_webhook_testkit::{
    cluster::manifests::{bound_to_default, deployment_of, instrumentation, template_asking},
    until::until,
};
use serde_json::json;

use crate::cluster::Cluster;
use crate::program::{check, run_as};

const AGGREGATED: &str = include_str!("../../../manifests/rbac/aggregated.yaml");

/// A namespace with Instrumentations that tenants of another one must not see.
const HOST: &str = "host";

/// What the built-in roles let their users do, by a binding in one namespace.
pub fn roles(cluster: &Cluster) {
    let namespace = "tenant-roles";
    cluster.namespace(HOST, &[]);
    for name in ["shared", "private"] {
        cluster.instrumentation(HOST, name, &json!({}));
    }
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
    until("the bindings are in effect", || {
        let pods = ["auth", "can-i", "list", "pods", "--namespace", namespace, "--as", &user("view")];
        cluster.plane.kubectl(&pods).ok.then_some(())
    });
    assert!(!can("view", "list", namespace), "the built-in role covers them without ours");

    cluster.plane.apply_server_side(AGGREGATED);

    until("Kubernetes has aggregated the roles", || {
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
        let object = instrumentation(namespace, "tried", &json!({}));
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
    cluster.apply(&bound_to_default(namespace, "view"));
    let template = template_asking("order", &[("inject-java", "host/missing")]);
    cluster.apply(&deployment_of(namespace, 0, &template));
    let tenant = cluster.plane.kubeconfig_of(namespace, "default");
    let tenant = tenant.to_str().expect("UTF-8");
    for more in [&[][..], &["--preview"]] {
        let checked = run_as("check", tenant, &[&["-n", namespace], more].concat());
        let said = format!("{checked:?}");
        assert!(said.contains("not readable by you (list instrumentations in host)"), "{said}");
        assert!(!said.contains("shared") && !said.contains("private"), "{said}");
    }
    // A user who may list them sees by the mode what the tenant would be told.
    for (mode, shows) in [("allow", true), ("granted", false), ("deny", false)] {
        let flags = ["-n", namespace, "--own-flags", "--cross-namespace", mode];
        let said = format!("{:?}", check(&cluster.plane, &flags));
        assert!(said.contains("host/missing"), "{said}");
        assert_eq!(said.contains("private"), shows, "{mode}: {said}");
    }
}

fn user(role: &str) -> String {
    format!("{role}-of-a-tenant")
}
