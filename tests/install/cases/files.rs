//! Certificates that somebody else looks after, in a Secret.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::values;
use crate::cluster::Cluster;
use crate::helm::Release;
use crate::pod::{Pod, Ports};

/// Made by `otel-webhook certs`, stored by the command that it prints.
pub fn own(cluster: &Cluster) {
    let ports = Ports::free();
    let release = Release::new(cluster, "helm3", "files-release");
    cluster.namespace(&release.namespace);
    let folder = cluster.plane.dir().join("certs");
    let made = Command::new(env!("CARGO_BIN_EXE_otel-webhook"))
        .args(["certs", "--namespace", &release.namespace, "--tls-name", "localhost", "--out"])
        .arg(&folder)
        .output()
        .expect("the program can be started");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| format!("{}", folder.join(name).display());
    let pair = ["--cert", &file("tls.crt"), "--key", &file("tls.key")];
    let secret = ["create", "secret", "tls", "own", "--namespace", &release.namespace];
    cluster.plane.run_kubectl(&[&secret[..], &pair].concat());
    let authority = fs::read_to_string(folder.join("ca.crt")).expect("an authority");
    let certificates = json!({"mode": "files", "files": {"secretName": "own", "caBundle": authority}});

    release.install(&values(ports, json!({"certificates": certificates})));

    let _pod = Pod::start(cluster, &release.namespace, ports);
    cluster.namespace("files-apps");
    cluster.instrumentation("files-apps");
    cluster.until_injected("files-apps");
}
