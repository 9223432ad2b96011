//! `otel-webhook check` in a cluster: an installation as it should be, each way
//! that it can be broken, and what a preview says of pods that run.

mod examples;
mod home;

use std::thread;

use otel_webhook_server::tls::SelfSigned;
use otel_webhook_testkit::{
    cluster::{
        control_plane::ControlPlane,
        created::Created,
        manifests::{deployment, deployment_of, template_asking},
    },
    until::until,
};
use serde_json::{Value, json};

use super::nodes::node;
use crate::cluster::Cluster;
use crate::program::{check, output, printed, program, run_as};
use crate::registration::{self, HOME};
use home::{CONFIGURATION, Home, NAME};

/// The controller.
const MANIFEST: &str = include_str!("../../../manifests/controller/controller.yaml");

/// In its own cluster, since it is broken in every way there is.
pub fn each_way_to_be_broken(_: &Cluster) {
    let plane = ControlPlane::start();
    let nothing = check(&plane, &["--wait", "1"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.err.contains("waiting: failure  crd"), "{nothing:?}");
    assert!(nothing.says("CrdMissing").contains("otel-webhook crd | kubectl apply"));
    assert!(nothing.says("ConfigurationMissing").contains("\"name\":\"otel-webhook\""));

    let (home, waited) = thread::scope(|scope| {
        let waited = scope.spawn(|| check(&plane, &["--wait", "180"]));
        (Home::install(&plane), waited.join().expect("no panic"))
    });
    let fine = check(&plane, &[]);
    assert_eq!((waited.codes(), waited.code), (fine.codes(), Some(0)), "{waited:?}");
    let expected = [
        "CrdCurrent",
        "PodsRegistered",
        "EndpointsReady",
        "CertificateTrusted",
        "CertificateTrusted",
        "PermissionsSuffice",
        "NoController",
        "NoOtherInjector",
        "SettingsFound",
        "PodsNotInjected",
        "PodsWithoutAgent",
        "AgentVersions",
    ];
    assert_eq!((fine.codes(), fine.code), (expected.to_vec(), Some(0)), "{fine:?}");
    let restart = "kubectl rollout restart deployment/order -n shop";
    assert!(fine.says("PodsNotInjected").contains(restart), "{}", fine.says("PodsNotInjected"));
    assert_eq!(check(&plane, &["--strict"]).code, Some(1), "a warning counts");
    restarted(&plane, restart);
    paused(&plane);
    mounting(&plane);

    examples::each(&plane);

    let nowhere = check(&plane, &["-n", "nowhere"]);
    let said = "--namespace: namespace \"nowhere\" not found";
    assert!(nowhere.code == Some(2) && nowhere.err.contains(said), "{nowhere:?}");

    registration_and_backends(&plane, &home);
    certificates(&plane, &home);
    rights(&plane);
    controller(&plane);
    requests(&plane);
    older_crd(&plane);
}

/// What `--fix-commands` prints, without the flags of the cluster.
fn fix_commands(plane: &ControlPlane) -> String {
    let kubeconfig = plane.kubeconfig().to_str().expect("UTF-8");
    let text = printed(&["check", "--kubeconfig", kubeconfig, "--fix-commands"]);
    text.replace(&format!(" --kubeconfig {kubeconfig}"), "")
}

fn restarted(plane: &ControlPlane, restart: &str) {
    let text = fix_commands(plane);
    let lines: Vec<_> = text.lines().collect();
    let status = "kubectl rollout status deployment/order -n shop --timeout=15m";
    assert_eq!(lines, [restart, status]);
}

/// Waits until the report has a code, as far as the cluster has to come to it, and gives what it says.
fn until_found(plane: &ControlPlane, code: &str, exit: i32) -> String {
    until(&format!("check finds {code}"), || {
        let checked = check(plane, &[]);
        let is_found = checked.codes().contains(&code) && checked.code == Some(exit);
        is_found.then(|| checked.says(code))
    })
}

/// A node that cannot mount the images of agents that are mounted.
fn mounting(plane: &ControlPlane) {
    node(plane, "old", "v1.36.1", "containerd://1.7.27");
    let mut template = template_asking("mounting", &[("inject-java", "true")]);
    template["metadata"]["annotations"]["otel-webhook/delivery"] = "imageVolume".into();
    plane.apply_server_side(&deployment_of("shop", 0, &template).to_string());
    let said = until_found(plane, "ImageVolumesNotSupported", 0);
    assert!(said.contains("agents of 1 workloads") && said.contains("containerd://1.7.27"), "{said}");
    plane.run_kubectl(&["delete", "deployment", "mounting", "--namespace", "shop"]);
    plane.run_kubectl(&["delete", "node", "old"]);
}

fn registration_and_backends(plane: &ControlPlane, home: &Home) {
    Home::set_ready(plane, false);
    let said = until_found(plane, "EndpointsMissing", 1);
    assert!(said.contains("has no ready endpoints for port 443"), "{said}");
    Home::set_ready(plane, true);
    until_found(plane, "EndpointsReady", 0);

    home.register(plane, |webhook| webhook["clientConfig"]["service"]["name"] = json!("other"));
    assert!(until_found(plane, "ServiceMissing", 1).contains("\"name\":\"other\""));
    home.register(plane, |webhook| webhook["rules"][0]["operations"] = json!(["UPDATE"]));
    until_found(plane, "PodsNotRegistered", 1);

    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        plane.run_kubectl(&["delete", kind, CONFIGURATION]);
    }
    until_found(plane, "ConfigurationMissing", 1);
    home.register(plane, |_| ());
    until_found(plane, "PodsRegistered", 0);

    // The operator's own, by the name that its chart gives it.
    let operator = "opentelemetry-operator-mutation";
    home.register_as(plane, operator, |webhook| webhook["name"] = json!("mpod.kb.io"));
    let said = until_found(plane, "OtherInjectorActive", 0);
    let order = "opentelemetry-operator-mutation is called before otel-webhook because of their names";
    assert!(said.contains(operator) && said.contains(order) && said.contains("shop"), "{said}");
    home.register_as(plane, operator, |webhook| {
        webhook["name"] = json!("mpod.kb.io");
        webhook["namespaceSelector"] = json!({"matchLabels": {"no": "namespace"}});
    });
    until_found(plane, "OtherInjectorApart", 0);
    plane.run_kubectl(&["delete", "mutatingwebhookconfiguration", operator]);
}

fn certificates(plane: &ControlPlane, home: &Home) {
    Home::serve(plane, &SelfSigned::generate(&[NAME]).expect("a pair"));
    let said = until_found(plane, "CertificateNotTrusted", 1);
    assert!(said.contains("no CA of the bundle signed the certificate"), "{said}");

    home.register(plane, |webhook| {
        webhook["clientConfig"].as_object_mut().expect("an object").remove("caBundle");
    });
    until_found(plane, "CaBundleMissing", 1);

    plane.run_kubectl(&["delete", "secret", home::SECRET, "-n", HOME]);
    home.register(plane, |_| ());
    let said = until_found(plane, "CertificateNotChecked", 0);
    assert!(said.contains("Secret otel-webhook/otel-webhook-certificates not found"), "{said}");
    Home::serve(plane, &home.pair);
    until_found(plane, "CertificateTrusted", 0);
}

fn rights(plane: &ControlPlane) {
    plane.run_kubectl(&["delete", "clusterrolebinding", "otel-webhook"]);
    let said = until_found(plane, "PermissionMissing", 1);
    assert!(said.contains("may not list, watch instrumentations.opentelemetry.io"), "{said}");
    plane.apply_server_side(registration::ROLES);
    until_found(plane, "PermissionsSuffice", 0);

    // Somebody who may look at workloads, and at little else.
    for args in [
        &["create", "serviceaccount", "viewer", "--namespace", "default"][..],
        &["create", "clusterrolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:viewer"],
    ] {
        plane.run_kubectl(args);
    }
    let kubeconfig = plane.kubeconfig_of("default", "viewer");
    let seen = until("the role is in effect", || {
        let seen = run_as("check", kubeconfig.to_str().expect("UTF-8"), &[]);
        seen.codes().contains(&"SettingsAssumed").then_some(seen)
    });
    assert_eq!(seen.code, Some(0), "{seen:?}");
    assert!(seen.codes().iter().all(|code| !code.contains("Missing")), "{:?}", seen.codes());
    let messages: Vec<_> = seen.found.iter().map(|one| one["message"].to_string()).collect();
    let refused =
        |kind: &str| messages.iter().any(|message| message.contains(kind) && message.contains("forbidden"));
    assert!(refused("mutatingwebhookconfigurations") && refused("instrumentations"), "{messages:?}");
    assert!(!refused("limitranges"), "everybody who may view may see them: {messages:?}");

    // Somebody who may not see what bounds pods.
    for args in [
        &["create", "serviceaccount", "narrow", "--namespace", "default"][..],
        &[
            "create",
            "clusterrole",
            "narrow",
            "--verb=get,list",
            "--resource=namespaces,pods,deployments.apps",
        ],
        &[
            "create",
            "clusterrolebinding",
            "narrow",
            "--clusterrole=narrow",
            "--serviceaccount=default:narrow",
        ],
    ] {
        plane.run_kubectl(args);
    }
    let kubeconfig = plane.kubeconfig_of("default", "narrow");
    until("what may not be seen is said", || {
        let seen = run_as("check", kubeconfig.to_str().expect("UTF-8"), &[]);
        let messages: Vec<_> = seen.found.iter().map(|one| one["message"].to_string()).collect();
        let is_said = |kind: &str| {
            let mut of_kind =
                messages.iter().filter(|message| message.contains(&format!("cannot list {kind}: ")));
            of_kind.any(|message| message.ends_with("the results ignore these objects\""))
        };
        let are_seen = !messages.iter().any(|message| message.contains("cannot list pods"));
        let are_said = ["limitranges", "resourcequotas", "serviceaccounts"].into_iter().all(is_said);
        (are_seen && are_said).then_some(())
    });
}

fn requests(plane: &ControlPlane) {
    let lacking = check(plane, &["-n", "shop"]);
    assert!(!lacking.codes().contains(&"RequestsMet"), "{:?}", lacking.codes());
    let said = lacking.says("PodsWithoutAgent");
    assert!(said.contains("1 pod opts in and runs without an agent, by cause: PodsNotInjected 1"), "{said}");
    // Deployments are not sent to any webhook, so that these need none.
    let asks = |namespace: &str, name: &str, value: &str| {
        let template = template_asking(name, &[("inject-java", value)]);
        plane.apply_server_side(&deployment_of(namespace, 1, &template).to_string());
    };
    asks("shop", "misspelt", "ordr");
    let said = until_found(plane, "NotInjected", 0);
    let reason = "Instrumentation \\\"shop/ordr\\\" not found; its namespace has: by-secret, default";
    assert!(said.contains(reason) && said.contains("\"name\":\"misspelt\""), "{said}");
    plane.run_kubectl(&["delete", "deployment", "misspelt", "-n", "shop"]);

    asks("shop", "lacking", "by-secret");
    let said = until_found(plane, "EnvSourceMissing", 0);
    let effect = "new pods of Deployment shop/lacking do not start";
    assert!(said.contains(effect) && said.contains("\"name\":\"agent-token\""), "{said}");
    let advised = fix_commands(plane);
    let first =
        "# Deployment shop/lacking: first create Secret shop/agent-token: new pods do not start without it";
    assert!(advised.contains(first) && !advised.contains("deployment/lacking"), "{advised}");
    let secret = ["create", "secret", "generic", "agent-token", "--from-literal=token=a", "-n", "shop"];
    plane.run_kubectl(&secret);
    assert!(!check(plane, &["-n", "shop"]).codes().contains(&"EnvSourceMissing"));
    plane.run_kubectl(&["delete", "deployment/lacking", "secret/agent-token", "-n", "shop"]);

    // Left out by the registration itself.
    asks("kube-system", "left-out", "shop/default");
    let said = until_found(plane, "NotReviewed", 0);
    let remedy = "move it to another namespace: kube-system is excluded";
    assert!(said.contains("does not select namespace kube-system") && said.contains(remedy), "{said}");
    plane.run_kubectl(&["delete", "deployment", "left-out", "-n", "kube-system"]);
}

/// The controller of the manifests: not ready, ready by hand, and without a role.
fn controller(plane: &ControlPlane) {
    assert!(check(plane, &[]).codes().contains(&"NoController"));
    plane.apply_server_side(MANIFEST);
    let said = until_found(plane, "ControllerNotReady", 0);
    assert!(said.contains("is ready: it reports nothing"), "{said}");
    let pods = until("both pods are there", || {
        let args = ["get", "pods", "-n", HOME, "-l", "app.kubernetes.io/component=controller", "-o", "name"];
        let found: Vec<String> = plane.kubectl(&args).stdout.lines().map(str::to_owned).collect();
        (found.len() == 2).then_some(found)
    });

    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}).to_string();
    let patch = ["patch", &pods[0], "-n", HOME, "--subresource=status", "--patch", &status];
    plane.run_kubectl(&patch);
    let said = until_found(plane, "ControllerReady", 0);
    assert!(said.contains("1 of 2 pods of the controller are ready"), "{said}");
    let checked = check(plane, &[]);
    assert!(!checked.codes().contains(&"ControllerPermissionMissing"), "{checked:?}");

    plane.run_kubectl(&["delete", "clusterrolebinding", "otel-webhook-controller"]);
    let said = until_found(plane, "ControllerPermissionMissing", 0);
    assert!(said.contains("otel-webhook rbac --controller"), "{said}");
    plane.apply_server_side(MANIFEST);
    until("its permissions are back", || {
        (!check(plane, &[]).codes().contains(&"ControllerPermissionMissing")).then_some(())
    });
}

/// A CRD that drops fields, and goes with the release of the operator.
fn older_crd(plane: &ControlPlane) {
    let mut old: Value = serde_saphyr::from_str(registration::CRD).expect("YAML");
    let spec = old.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec").expect("a schema");
    let fields = spec["properties"].as_object_mut().expect("fields");
    fields.retain(|name, _| name != "selector" && name != "priority");
    // Its rules need the fields.
    spec.as_object_mut().expect("an object").remove("x-kubernetes-validations");
    old["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "operator",
        "meta.helm.sh/release-namespace": "observability"});
    plane.apply_server_side(&old.to_string());
    let said = until_found(plane, "CrdPrunesFields", 0);
    assert!(said.contains("drops these fields: spec.priority, spec.selector"), "{said}");
    assert!(
        until_found(plane, "CrdDeletedWithRelease", 0).contains("the Helm release observability/operator")
    );
}

/// All is paused by the namespace of the webhook, which is known by its Service. `check` says that first, and no command
/// that would remove agents.
fn paused(plane: &ControlPlane) {
    let run = |subcommand: &str, more: &[&str]| {
        let mut command = program();
        command.arg(subcommand).arg("--kubeconfig").arg(plane.kubeconfig()).arg("--all").args(more);
        let (out, err, code) = output(&mut command);
        (out + &err, code)
    };
    let (text, code) = run("pause", &[]);
    assert!(code == Some(2) && text.contains("there is no terminal to ask on; add --yes"), "{text}");
    let (text, code) = run("pause", &["--yes"]);
    let expected = "Namespace otel-webhook: injection is paused, all pods start without agents\n";
    assert!(code == Some(0) && text.starts_with(expected), "{text}");
    let checked = check(plane, &[]);
    assert_eq!((checked.codes()[0], checked.code), ("InjectionPaused", Some(0)), "{checked:?}");
    let of_running = ["PodsNotInjected", "PodsOutdated", "NotInjected"];
    assert!(!checked.codes().iter().any(|code| of_running.contains(code)), "{checked:?}");
    assert!(checked.says("PodsWithoutAgent").contains("by cause: Paused 1"), "{checked:?}");
    let (text, code) = run("resume", &["--yes"]);
    assert!(code == Some(0) && text.starts_with("Namespace otel-webhook: injection is resumed\n"), "{text}");
    until_found(plane, "PodsNotInjected", 0);
}

/// What the preview and the check say where the webhook really runs.
pub fn what_runs(cluster: &Cluster) {
    let namespace = "previewed";
    cluster.instrumented_namespace(namespace);
    cluster.apply(&deployment(namespace, "order", 2));
    cluster.apply(&deployment_of(namespace, 2, &template_asking("silent", &[])));
    let injected = cluster.pods_of(namespace, "app=order", 2).iter().all(Created::is_injected);
    assert!(injected, "the webhook is registered");
    cluster.pods_of(namespace, "app=silent", 2);

    let flags = ["-n", namespace, "--own-flags"];
    let preview = check(&cluster.plane, &[&flags[..], &["--preview"]].concat());
    assert_eq!(preview.code, Some(0), "{preview:?}");
    let of = |name: &str| preview.found.iter().find(|one| one["name"] == name).expect(name);
    let java = &of("order")["languages"][0];
    assert_eq!((&java["now"]["otel-webhook"], &java["next"]), (&json!(2), &json!("Injected")), "{java}");
    assert_eq!(java["instrumentation"], "previewed/default");
    assert_eq!(of("order")["reviewedBy"], json!(["otel-webhook"]));
    assert_eq!((&of("silent")["languages"], &of("silent")["pods"]), (&json!([]), &json!(2)));

    let account = ["--service-account", "otel-webhook/otel-webhook"];
    let fine = check(&cluster.plane, &[&flags[..], &account].concat());
    assert_eq!(fine.code, Some(0), "{fine:?}");
    for code in ["CrdCurrent", "PodsRegistered", "CertificateTrusted", "PermissionsSuffice", "RequestsMet"] {
        assert!(fine.codes().contains(&code), "{code} is not in {:?}", fine.codes());
    }
}
