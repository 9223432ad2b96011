//! `check --fix-commands`: the commands of all remedies, and nothing else.

use std::process::ExitCode;

use super::result::{CheckResult, Level};
use crate::cli::{cluster::flags::ClusterFlags, failure::Failure, output::ReportFlags};
use otel_webhook_review::one_line;

/// Writes the commands. While the webhook does not work, restarts would be in vain: then the failures are written to
/// standard error.
///
/// # Errors
/// If they cannot be written.
pub fn write(
    results: &[CheckResult],
    cluster: &ClusterFlags,
    report: ReportFlags,
) -> Result<ExitCode, Failure> {
    let failures: Vec<_> = results.iter().filter(|result| result.code.level() == Level::Failure).collect();
    for failure in &failures {
        eprintln!("{}", failure.line());
    }
    if !failures.is_empty() {
        return Ok(ExitCode::from(1));
    }
    report.write(ExitCode::SUCCESS, || commands(results, |command| cluster.complete(command)), || [])
}

/// Returns the commands of each object once, each with the flags of the cluster, and comments about the pods that no
/// command replaces.
fn commands(results: &[CheckResult], complete: impl Fn(&str) -> String) -> String {
    let mut done = Vec::new();
    let mut lines = Vec::new();
    for result in results.iter().filter(|result| result.code.is_of_running_pods()) {
        let Some(subject) = result.subject.as_ref().filter(|subject| !done.contains(subject)) else {
            continue;
        };
        done.push(subject);
        if let (true, Some(advice)) = (result.commands.is_empty(), &result.advice) {
            lines.push(one_line(format!("# {subject}: {advice}")));
        }
        lines.extend(result.commands.iter().map(|command| complete(command)));
    }
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::check::result::Code, subject::Subject};

    #[test]
    fn each_workload_is_restarted_once_and_waited_for() {
        let about = |code: Code, name: &str, commands: &[&str]| CheckResult {
            commands: commands.iter().map(|command| (*command).to_owned()).collect(),
            ..CheckResult::new(code, "")
                .about(Subject::new("Deployment", "shop", name))
                .advise("do it by hand")
        };
        let restart =
            ["kubectl rollout restart deployment/a -n shop", "kubectl rollout status deployment/a -n shop"];
        let results = [
            about(Code::RunningWithout, "a", &restart),
            about(Code::RunningOutdated, "a", &restart),
            about(Code::RunningOutdated, "paused", &[]),
            about(Code::RequestInVain, "other", &[]),
        ];
        let expected = "kubectl rollout restart deployment/a -n shop --context c\n\
                        kubectl rollout status deployment/a -n shop --context c\n\
                        # Deployment shop/paused: do it by hand\n";
        assert_eq!(commands(&results, |command| format!("{command} --context c")), expected);
    }
}
