//! What `check` says of an installation that is paused.

use std::process::{Command, Stdio};

use otel_webhook_testkit::cluster::control_plane::ControlPlane;

use super::{check, until_found};

/// All is paused by the namespace of the webhook, which is known by its Service. `check` says that first, and no command
/// that would remove agents.
pub fn all(plane: &ControlPlane) {
    let run = |subcommand: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
        command.arg(subcommand).arg("--kubeconfig").arg(plane.kubeconfig()).arg("--all").args(more);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        (text.concat(), output.status.code())
    };
    let (text, code) = run("pause", &[]);
    assert!(code == Some(2) && text.contains("there is no terminal to ask on; add --yes"), "{text}");
    let (text, code) = run("pause", &["--yes"]);
    let expected = "Namespace otel-webhook: injection is paused, all pods start without agents\n";
    assert!(code == Some(0) && text.starts_with(expected), "{text}");
    let checked = check(plane, &[]);
    assert_eq!((checked.codes()[0], checked.code), ("InjectionPaused", Some(0)), "{checked:?}");
    let of_running = ["RunningWithout", "RunningOutdated", "RequestInVain"];
    assert!(!checked.codes().iter().any(|code| of_running.contains(code)), "{checked:?}");
    assert!(checked.says("PodsWithoutAgent").contains("by cause: Paused 1"), "{checked:?}");
    let (text, code) = run("resume", &["--yes"]);
    assert!(code == Some(0) && text.starts_with("Namespace otel-webhook: injection is resumed\n"), "{text}");
    until_found(plane, "RunningWithout", 0);
}
