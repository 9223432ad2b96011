//! Subcommands of the program, and the reports that they print.

use std::fmt;
use std::process::{Command, Stdio};

use otel_webhook_testkit::cluster::control_plane::ControlPlane;
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_otel-webhook");

/// The program without settings of the environment, and without a terminal.
pub fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_WEBHOOK_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// What a command wrote to its two outputs, and its exit code.
pub fn output(command: &mut Command) -> (String, String, Option<i32>) {
    let output = command.output().expect("the program can be started");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
    (out, err, output.status.code())
}

/// What a subcommand that succeeds prints.
pub fn printed(arguments: &[&str]) -> String {
    let (out, err, code) = output(program().args(arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {err}");
    out
}

/// The objects that `rbac` prints with further flags.
pub fn roles(flags: &[&str]) -> Vec<Value> {
    serde_saphyr::from_multiple(&printed(&[&["rbac"], flags].concat())).expect("YAML")
}

/// What a run of the program came to.
pub struct Checked {
    /// The objects of its report.
    pub found: Vec<Value>,
    /// What it wrote in addition to the report.
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

/// Runs `check` as the administrator.
pub fn check(plane: &ControlPlane, arguments: &[&str]) -> Checked {
    run(plane, "check", arguments)
}

/// Runs a subcommand as the administrator.
pub fn run(plane: &ControlPlane, subcommand: &str, arguments: &[&str]) -> Checked {
    run_as(subcommand, plane.kubeconfig().to_str().expect("UTF-8"), arguments)
}

/// Runs a subcommand as the user of a kubeconfig.
pub fn run_as(subcommand: &str, kubeconfig: &str, arguments: &[&str]) -> Checked {
    let flags = [subcommand, "--kubeconfig", kubeconfig, "-o", "json"];
    let (out, err, code) = output(program().args(flags).args(arguments));
    let found = out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    Checked { found, err, code }
}
