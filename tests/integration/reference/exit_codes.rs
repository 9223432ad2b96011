//! Exit statuses, each tried.

use super::{beginning, code, table};
use crate::cli;

/// Status, and when.
const STATUSES: [(i32, &str); 3] = [
    (0, "The operation succeeded. `serve` and `controller`: a signal ended the program."),
    (
        1,
        "The operation failed, or what was checked is not as it should be: `validate` found an error, `check` a \
         failure, `--strict` of `check` and `validate` also a warning, and that of `status` a stale or missed pod, its `--silent` a pod without data that arrives; \
         `explain --exit-code` found a pod that is not injected as it opts in, `trace` a step that failed.",
    ),
    (
        2,
        "The command line or the input cannot be read: an unknown flag, a value that is not valid, a file that is \
         missing or no manifest, a cluster that cannot be reached.",
    ),
];

/// Commands with their status, in the root of the repository.
const TRIED: [(&str, i32); 8] = [
    ("otel-webhook validate -f examples/instrumentation.yaml", 0),
    ("otel-webhook explain -f examples/deployment.yaml --source examples", 0),
    ("otel-webhook inject -f examples/deployment.yaml --source examples -o diff", 0),
    ("otel-webhook serve --tls-cert /nowhere/tls.crt --tls-key /nowhere/tls.key --source examples", 1),
    ("otel-webhook inject -f /nowhere/pod.yaml", 2),
    ("otel-webhook status --kubeconfig /nowhere/config", 2),
    ("otel-webhook check --kubeconfig /nowhere/config", 2),
    ("otel-webhook serve --no-such-flag", 2),
];

pub fn page() -> String {
    let mut text =
        beginning("Exit statuses", "What the exit status of `otel-webhook` says, in every subcommand.")
            + "\n";
    text += &table(["status", "meaning"], STATUSES.map(|(status, when)| [code(status), when.to_owned()]));
    text += "\nExamples:\n\n";
    text += &table(["command", "status"], TRIED.map(|(command, status)| [code(command), code(status)]));
    text
}

#[test]
fn the_examples_end_with_their_status() {
    for (command, status) in TRIED {
        let arguments: Vec<_> = command.split(' ').skip(1).collect();
        let run = cli::run(&arguments, "");
        assert_eq!(run.code, status, "{command}: {}{}", run.out, run.err);
    }
    for (status, _) in STATUSES {
        assert!(TRIED.iter().any(|tried| tried.1 == status), "no example has the status {status}");
    }
}
