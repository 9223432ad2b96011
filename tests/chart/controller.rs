//! The controller: a separate Deployment, which has the webhook's settings and not its rights.

use std::collections::BTreeSet;

use otel_webhook_testkit::objects::items;
use serde_json::{Value, json};

use crate::helm::{
    NAMESPACE, RELEASE, args_of, deployment, matrix, objects_of, objects_with, of_kind, server, values,
};

/// What the controller decides by is what the webhook decides by, whatever the values are.
#[test]
fn both_have_the_same_injection_flags() {
    for file in matrix().into_iter().filter(|file| *file != values("least")) {
        let objects = objects_of(&file);
        let injection = |component: &str, last: &str| {
            let args = args_of(objects, component);
            let at = |flag: &str| args.iter().position(|arg| arg.starts_with(flag)).expect("a flag");
            args[at("--languages=")..=at(last)].to_vec()
        };
        let last = "--max-instrumentations-total=";
        let given = injection("controller", last);
        assert_eq!(given, injection("webhook", last), "{}", file.display());
        assert!(given.len() > 6, "{given:?}");
    }
}

/// The webhook faces the network, so it must not get what the controller may do.
#[test]
fn its_rights_are_bound_to_its_own_account() {
    for (file, account) in [
        ("default", format!("{RELEASE}-otel-webhook-controller")),
        ("everything", "teller".to_owned()),
        ("files", "default".to_owned()),
    ] {
        let objects = objects_of(&values(file));
        let spec = &deployment(objects, "controller")["spec"]["template"]["spec"];
        assert_eq!(spec["serviceAccountName"], account, "{file}");
        assert_ne!(spec["serviceAccountName"], server(objects)["serviceAccountName"], "{file}");
        let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]);
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            let bindings = of_kind(objects, kind);
            let (own, others): (Vec<_>, Vec<_>) = bindings.into_iter().partition(|one| {
                one["roleRef"]["name"].as_str().is_some_and(|name| name.contains("-controller"))
            });
            assert!(!own.is_empty() && own.iter().all(|one| one["subjects"] == subject), "{file}: {own:?}");
            assert!(others.iter().all(|one| one["subjects"] != subject), "{file}: {others:?}");
        }
    }
    let made = |file: &str| {
        let accounts = of_kind(objects_of(&values(file)), "ServiceAccount").into_iter();
        accounts.filter_map(|account| account["metadata"]["name"].as_str()).collect::<BTreeSet<_>>()
    };
    assert_eq!(made("everything"), BTreeSet::from(["runner", "teller"]));
    assert_eq!(made("files"), BTreeSet::from([&*format!("{RELEASE}-otel-webhook")]));
}

/// The rules are those next to the code, without the right to change a workload or a pod.
#[test]
fn it_may_write_statuses_events_and_its_lease() {
    let objects = objects_of(&values("default"));
    let name = format!("{RELEASE}-otel-webhook-controller");
    let written = written(objects, &name);
    assert_eq!(written, BTreeSet::from(["events", "instrumentations/status", "leases"]));
}

#[test]
fn what_it_has_no_values_for_is_the_webhooks() {
    let objects = objects_of(&values("everything"));
    let spec = &deployment(objects, "controller")["spec"]["template"]["spec"];
    let server = server(objects);
    for field in [
        "securityContext",
        "imagePullSecrets",
        "nodeSelector",
        "tolerations",
        "priorityClassName",
        "runtimeClassName",
        "dnsPolicy",
        "dnsConfig",
        "affinity",
    ] {
        assert!(!spec[field].is_null() && spec[field] == server[field], "{field}: {spec}");
    }
    let (container, theirs) = (&spec["containers"][0], &server["containers"][0]);
    for field in ["image", "imagePullPolicy", "securityContext", "livenessProbe", "readinessProbe"] {
        assert!(!container[field].is_null() && container[field] == theirs[field], "{field}: {container}");
    }
}

#[test]
fn there_is_nothing_of_it_where_it_is_off() {
    let objects = objects_with(&["controller.enabled=false", "networkPolicy.enabled=true"]);
    let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
    let left: Vec<_> = names.filter(|name| name.ends_with("-controller")).collect();
    assert!(left.is_empty(), "{left:?}");
    let with_restarts = objects_with(&[
        "controller.enabled=false",
        "networkPolicy.enabled=true",
        "controller.restarts.enabled=true",
    ]);
    assert_eq!(with_restarts, objects);
    let on = objects_with(&["networkPolicy.enabled=true"]);
    assert_eq!(
        on.len(),
        objects.len() + 13,
        "Deployment, account, roles with bindings, Service, budget, policy, and the role of the webhook for its Lease"
    );
}

/// What the rules of both roles of a name may change.
pub fn written<'o>(objects: &'o [Value], name: &str) -> BTreeSet<&'o str> {
    let mut written = BTreeSet::new();
    for kind in ["ClusterRole", "Role"] {
        for rule in items(&named(objects, kind, name)["rules"]) {
            let writes = |verb: &&Value| !["get", "list", "watch"].iter().any(|read| *verb == read);
            if items(&rule["verbs"]).any(|verb| writes(&verb)) {
                written.extend(items(&rule["resources"]).filter_map(Value::as_str));
            }
        }
    }
    written
}

fn named<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let found = of_kind(objects, kind).into_iter().find(|object| object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// A source of what arrives needs an egress rule for its port, and its Secret as files.
#[test]
fn it_may_reach_its_source_and_reads_the_secret_of_it() {
    let of = |set: &[&str]| {
        let base = ["networkPolicy.enabled=true", "networkPolicy.egress.enabled=true"];
        objects_with(&[&base, set].concat())
    };
    let ports = |objects: &[Value]| {
        let policy = named(objects, "NetworkPolicy", &format!("{RELEASE}-otel-webhook-controller")).clone();
        let rules = items(&policy["spec"]["egress"]).flat_map(|rule| items(&rule["ports"]));
        rules.map(|port| port["port"].to_string()).collect::<Vec<_>>()
    };
    let without = ports(&of(&[]));
    for (url, port) in [
        ("http://prometheus.monitoring:9090", "9090"),
        ("http://metrics.example.com/mimir", "80"),
        ("https://metrics.example.com", "443"),
    ] {
        let set = ["controller.heard.source=prometheus".to_owned(), format!("controller.heard.url={url}")];
        let with = ports(&of(&set.each_ref().map(String::as_str)));
        assert_eq!(with, [&without[..], &[port.to_owned()]].concat(), "{url}");
    }
    let objects = of(&[
        "controller.heard.source=prometheus",
        "controller.heard.url=https://metrics.example.com",
        "controller.heard.secretName=metrics",
        "controller.heard.caKey=ca.crt",
        "controller.heard.tokenKey=token",
    ]);
    let spec = &deployment(&objects, "controller")["spec"]["template"]["spec"];
    let volume = items(&spec["volumes"]).find(|volume| volume["secret"]["secretName"] == "metrics");
    let name = &volume.expect("its volume")["name"];
    let mounts = items(&spec["containers"][0]["volumeMounts"]);
    let mount = mounts.into_iter().find(|mount| mount["name"] == *name).expect("its mount");
    assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&json!("/etc/otel-webhook/heard"), &json!(true)));
    let args = args_of(&objects, "controller");
    for flag in
        ["--heard-ca-file=/etc/otel-webhook/heard/ca.crt", "--heard-token-file=/etc/otel-webhook/heard/token"]
    {
        assert!(args.iter().any(|arg| arg == flag), "{flag}: {args:?}");
    }
    assert!(
        server(&objects)["volumes"].as_array().is_none_or(|all| all.iter().all(|one| one["name"] != *name))
    );
}
