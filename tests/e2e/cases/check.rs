//! `otel-webhook check` in a cluster: an installation as it should be, each way
//! that it can be broken, and what a preview says of pods that run.

mod controller;
mod crd;
mod examples;
mod home;
mod paused;

use std::fmt;
use std::fs;
use std::process::Command;

use otel_webhook::tls::SelfSigned;
use otel_webhook_testkit::{
    cluster::{control_plane::ControlPlane, created::Created},
    until::until,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, LIMIT, template};
use crate::registration;
use home::{CONFIGURATION, Home, NAME, expired};

/// What a run of the program came to.
pub struct Checked {
    /// The objects of its report.
    pub found: Vec<Value>,
    /// What it said beside the report.
    pub err: String,
    pub code: Option<i32>,
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit code {:?}\n{}", self.code, self.err)?;
        self.found.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

impl Checked {
    /// The codes of its findings, in order.
    pub fn codes(&self) -> Vec<&str> {
        self.found.iter().filter_map(|one| one["code"].as_str()).collect()
    }

    /// The message and advice of the finding with a code.
    pub fn says(&self, code: &str) -> String {
        let found = self.found.iter().find(|one| one["code"] == code);
        let found = found.unwrap_or_else(|| panic!("no {code} in {:?}", self.codes()));
        format!("{}: {}; {}", found["object"], found["message"], found["advice"])
    }
}

/// Runs the program as the administrator.
pub fn check(plane: &ControlPlane, arguments: &[&str]) -> Checked {
    check_as(plane.kubeconfig().to_str().expect("UTF-8"), arguments)
}

/// Runs `check` as the user of a kubeconfig.
pub fn check_as(kubeconfig: &str, arguments: &[&str]) -> Checked {
    run_as("check", kubeconfig, arguments)
}

/// Runs a subcommand as the user of a kubeconfig.
pub fn run_as(subcommand: &str, kubeconfig: &str, arguments: &[&str]) -> Checked {
    let mut command = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_WEBHOOK_")) {
        command.env_remove(name);
    }
    let output = command
        .args([subcommand, "--kubeconfig", kubeconfig, "-o", "json"])
        .args(arguments)
        .output()
        .expect("the program runs");
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let found = out.lines().map(|line| serde_json::from_str(line).expect("an object a line"));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    Checked { found: found.collect(), err, code: output.status.code() }
}

/// In a cluster of its own, since it is broken in every way there is.
pub fn each_way_to_be_broken(_: &Cluster) {
    let plane = ControlPlane::start();
    let nothing = check(&plane, &[]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.says("CrdMissing").contains("otel-webhook crd | kubectl apply"));
    assert!(nothing.says("ConfigurationMissing").contains("\"name\":\"otel-webhook\""));

    let home = Home::install(&plane);
    let fine = check(&plane, &[]);
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
        "RunningWithout",
        "PodsWithoutAgent",
        "AgentVersions",
    ];
    assert_eq!((fine.codes(), fine.code), (expected.to_vec(), Some(0)), "{fine:?}");
    let restart = "kubectl rollout restart deployment/order -n shop";
    assert!(fine.says("RunningWithout").contains(restart), "{}", fine.says("RunningWithout"));
    assert_eq!(check(&plane, &["--strict"]).code, Some(1), "a warning counts");
    restarted(&plane, restart);
    paused::all(&plane);

    examples::each(&plane);

    let nowhere = check(&plane, &["-n", "nowhere"]);
    let said = "--namespace: namespace \"nowhere\" not found";
    assert!(nowhere.code == Some(2) && nowhere.err.contains(said), "{nowhere:?}");

    registration_and_backends(&plane, &home);
    certificates(&plane, &home);
    rights(&plane);
    controller::states(&plane);
    requests(&plane);
    crd::older(&plane);
}

/// The commands of `--fix-commands`, for the same cluster.
fn restarted(plane: &ControlPlane, restart: &str) {
    let kubeconfig = plane.kubeconfig().to_str().expect("UTF-8");
    let arguments = ["check", "--kubeconfig", kubeconfig, "--fix-commands"];
    let output = Command::new(env!("CARGO_BIN_EXE_otel-webhook")).args(arguments).output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<_> =
        text.lines().map(|line| line.replace(&format!(" --kubeconfig {kubeconfig}"), "")).collect();
    let status = "kubectl rollout status deployment/order -n shop --timeout=15m";
    assert_eq!(lines, [restart, status], "{}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until the report has a code, as far as the cluster has to come to it, and gives what it says.
fn until_found(plane: &ControlPlane, code: &str, exit: i32) -> String {
    until(&format!("check finds {code}"), LIMIT, || {
        let checked = check(plane, &[]);
        let is_found = checked.codes().contains(&code) && checked.code == Some(exit);
        is_found.then(|| checked.says(code))
    })
}

fn registration_and_backends(plane: &ControlPlane, home: &Home) {
    Home::set_ready(plane, false);
    let said = until_found(plane, "EndpointsMissing", 1);
    assert!(said.contains("has no ready endpoints for port 443"), "{said}");
    Home::set_ready(plane, true);
    until_found(plane, "EndpointsReady", 0);

    home.register(plane, |webhook| webhook["clientConfig"]["service"]["port"] = json!(8443));
    assert!(until_found(plane, "PortMissing", 1).contains("has no port 8443; its ports: 443"));
    home.register(plane, |webhook| webhook["clientConfig"]["service"]["name"] = json!("other"));
    assert!(until_found(plane, "ServiceMissing", 1).contains("\"name\":\"other\""));
    home.register(plane, |webhook| webhook["failurePolicy"] = json!("Fail"));
    assert!(until_found(plane, "PodsHeldBack", 0).contains("set failurePolicy: Ignore"));
    home.register(plane, |webhook| webhook["rules"][0]["operations"] = json!(["UPDATE"]));
    until_found(plane, "PodsNotRegistered", 1);

    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        assert!(plane.kubectl(&["delete", kind, CONFIGURATION]).ok);
    }
    until_found(plane, "ConfigurationMissing", 1);
    home.register(plane, |_| ());
    until_found(plane, "PodsRegistered", 0);

    // The operator's own, by the name that its chart gives it.
    let operator = "opentelemetry-operator-mutation";
    home.register_as(plane, operator, |webhook| webhook["name"] = json!("mpod.kb.io"));
    let said = until_found(plane, "OtherInjectorBeside", 0);
    let order = "opentelemetry-operator-mutation is called before otel-webhook because of their names";
    assert!(said.contains(operator) && said.contains(order) && said.contains("shop"), "{said}");
    home.register_as(plane, operator, |webhook| {
        webhook["name"] = json!("mpod.kb.io");
        webhook["namespaceSelector"] = json!({"matchLabels": {"no": "namespace"}});
    });
    until_found(plane, "OtherInjectorApart", 0);
    assert!(plane.kubectl(&["delete", "mutatingwebhookconfiguration", operator]).ok);
}

fn certificates(plane: &ControlPlane, home: &Home) {
    Home::serve(plane, &SelfSigned::generate(&[NAME]).expect("a pair"));
    let said = until_found(plane, "CertificateNotTrusted", 1);
    assert!(said.contains("no CA of the bundle signed the certificate"), "{said}");

    let (authority, pair) = expired();
    home.trust(plane, &authority);
    Home::serve(plane, &pair);
    let said = until_found(plane, "CertificateNotTrusted", 1);
    assert!(said.contains("the certificate expired at 2020-01-02T00:00:00Z"), "{said}");

    Home::serve(plane, &SelfSigned::generate(&["other.svc"]).expect("a pair"));
    let said = until_found(plane, "CertificateNotTrusted", 1);
    assert!(said.contains(&format!("is not valid for {NAME}; it is valid for other.svc")), "{said}");

    home.register(plane, |webhook| {
        webhook["clientConfig"].as_object_mut().expect("an object").remove("caBundle");
    });
    until_found(plane, "BundleMissing", 1);

    assert!(plane.kubectl(&["delete", "secret", home::SECRET, "-n", registration::HOME]).ok);
    home.register(plane, |_| ());
    let said = until_found(plane, "CertificateNotChecked", 0);
    assert!(said.contains("Secret otel-webhook/otel-webhook-certificates not found"), "{said}");
    home.trust(plane, &home.pair.ca_pem);
    Home::serve(plane, &home.pair);
    until_found(plane, "CertificateTrusted", 0);
}

fn rights(plane: &ControlPlane) {
    assert!(plane.kubectl(&["delete", "clusterrolebinding", "otel-webhook"]).ok);
    let said = until_found(plane, "PermissionMissing", 1);
    assert!(said.contains("may not list, watch instrumentations.opentelemetry.io"), "{said}");
    registration::apply(plane, home::ROLES);
    until_found(plane, "PermissionsSuffice", 0);

    // Somebody who may look at workloads, and at little else.
    for args in [
        &["create", "serviceaccount", "viewer", "--namespace", "default"][..],
        &["create", "clusterrolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:viewer"],
    ] {
        assert!(plane.kubectl(args).ok, "{args:?}");
    }
    let kubeconfig = kubeconfig_of(plane, "viewer");
    let seen = until("the role is in effect", LIMIT, || {
        let seen = check_as(&kubeconfig, &[]);
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
        assert!(plane.kubectl(args).ok, "{args:?}");
    }
    let kubeconfig = kubeconfig_of(plane, "narrow");
    until("what may not be seen is said", LIMIT, || {
        let seen = check_as(&kubeconfig, &[]);
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

fn kubeconfig_of(plane: &ControlPlane, account: &str) -> String {
    let token = plane.kubectl(&["create", "token", account, "--namespace", "default", "--duration=1h"]);
    assert!(token.ok, "no token: {}", token.stderr);
    let admin = fs::read_to_string(plane.kubeconfig()).expect("the administrator's kubeconfig");
    let mut config: Value = serde_json::from_str(&admin).expect("JSON");
    config["users"][0]["user"] = json!({"token": token.stdout.trim()});
    let path = plane.dir().join(format!("{account}.kubeconfig"));
    fs::write(&path, config.to_string()).expect("the scratch folder is writable");
    path.to_str().expect("UTF-8").to_owned()
}

fn requests(plane: &ControlPlane) {
    let lacking = check(plane, &["-n", "shop"]);
    assert!(!lacking.codes().contains(&"RequestsMet"), "{:?}", lacking.codes());
    let said = lacking.says("PodsWithoutAgent");
    assert!(said.contains("1 pod opts in and runs without an agent, by cause: RunningWithout 1"), "{said}");
    // Nobody is asked about Deployments, so that these need no webhook.
    registration::apply(plane, &home::deployment("shop", "misspelt", "ordr").to_string());
    let said = until_found(plane, "RequestInVain", 0);
    let reason = "Instrumentation \\\"shop/ordr\\\" not found; its namespace has: default";
    assert!(said.contains(reason) && said.contains("\"name\":\"misspelt\""), "{said}");
    assert!(plane.kubectl(&["delete", "deployment", "misspelt", "-n", "shop"]).ok);

    // Left out by the registration itself.
    registration::apply(plane, &home::deployment("kube-system", "left-out", "shop/default").to_string());
    let said = until_found(plane, "NotReviewed", 0);
    let remedy = "move it to another namespace: kube-system is left out";
    assert!(said.contains("does not select namespace kube-system") && said.contains(remedy), "{said}");
    assert!(plane.kubectl(&["delete", "deployment", "left-out", "-n", "kube-system"]).ok);
}

/// What the preview and the check say where the webhook really runs.
pub fn what_runs(cluster: &Cluster) {
    let namespace = "previewed";
    cluster.instrumented_namespace(namespace);
    let deployment = |name: &str, template: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}})
    };
    cluster.apply(&deployment("order", &template("order")));
    let mut silent = template("silent");
    silent["metadata"]["annotations"] = json!({});
    cluster.apply(&deployment("silent", &silent));
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
