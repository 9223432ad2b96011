//! `check`: checks whether an installation works, and previews what it would change.
//!
//! ```text
//! cluster ── read once, in pages ──> facts ── one small function per check ──> results
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "`json!` makes a value, and a test reads better without the &"
    )
)]

mod certificate;
mod controller;
mod conversion;
mod crd;
mod gather;
mod installation;
mod permissions;
mod preview;
mod references;
mod registration;
mod requests;
mod result;
mod review;
mod survey;

use std::{borrow::Cow, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    cluster::{
        facts::Facts,
        flags::{ClusterFlags, InstalledFlags},
        object::Account,
        reader::{ClusterReader, FailedRequest},
    },
    completions,
    output::{Failure, ReportFlags},
    stream::FileFlags,
};
use installation::assumed;
use otel_webhook_inject::object;
use otel_webhook_review::one_line;
use otel_webhook_store::manifest;
use result::{CheckResult, Level};
use review::ReviewUrl;
use survey::Survey;

/// Flags of `check`.
#[derive(Debug, Args)]
#[command(mut_arg("filename", |file| file.required(false).requires("preview").help(FILE_HELP).long_help(None)))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct CheckArgs {
    /// List every running workload with what is injected into its pods now, what would be injected into new pods,
    /// and what would be skipped, with the reason; changes nothing
    #[arg(long, conflicts_with = "review")]
    preview: bool,

    /// Send one review of a pod that does not opt in to a webhook, over TLS like an API server; needs no access to
    /// a cluster. The path defaults to /mutate-v1-pod
    #[arg(long, value_name = "URL", value_parser = review::parse_url)]
    review: Option<ReviewUrl>,

    /// CA bundle that verifies the webhook's certificate (PEM); without it, the certificate is not verified
    #[arg(long, env = "OTEL_WEBHOOK_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Client certificate to show to a webhook that runs with --client-ca (PEM)
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_CERT", value_name = "FILE", requires_all = ["client_key", "review"])]
    client_cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM)
    #[arg(long, env = "OTEL_WEBHOOK_CLIENT_KEY", value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,

    /// Timeout of the review, in seconds
    #[arg(long, env = "OTEL_WEBHOOK_TIMEOUT", value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,

    /// Check only the workloads of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Cluster", add = completions::namespaces())]
    namespace: Option<String>,

    /// Check the workloads of all namespaces, which is the default
    #[arg(short = 'A', long, help_heading = "Cluster", conflicts_with = "namespace")]
    all_namespaces: bool,

    #[command(flatten)]
    files: FileFlags,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Secret of the serving certificate, in the namespace of the webhook's Service; by default, it is read from the
    /// webhook's pods
    #[arg(long, env = "OTEL_WEBHOOK_CHECK_SECRET", value_name = "NAME", help_heading = "Cluster")]
    secret: Option<String>,

    /// Service account of the webhook; by default, it is read from the webhook's pods
    #[arg(long, env = "OTEL_WEBHOOK_CHECK_SERVICE_ACCOUNT", value_name = "NAMESPACE/NAME",
        value_parser = Account::parse, help_heading = "Cluster")]
    service_account: Option<Account>,

    #[command(flatten)]
    report: ReportFlags,

    /// Exit with status 1 on warnings as well
    #[arg(long, help_heading = "Output")]
    strict: bool,

    /// Check again until nothing fails, and with --strict until nothing is warned of; report the last results after so
    /// many seconds
    #[arg(long, value_name = "SECONDS", help_heading = "Output", conflicts_with_all = ["preview", "fix_commands"])]
    wait: Option<u64>,

    /// Print only the commands that replace pods with missing or outdated agents, one rollout after another; they are not
    /// run
    #[arg(long, help_heading = "Output", conflicts_with_all = ["preview", "review", "output"])]
    fix_commands: bool,

    #[command(flatten)]
    installed: InstalledFlags,
}

/// The help of the files, which differs from that of other subcommands.
const FILE_HELP: &str = "File of YAML or JSON documents, directory of such files, or \"-\" for standard input; may be \
                         repeated: preview as if its Instrumentations were stored";

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Check the webhook in the cluster of the current context:
    otel-webhook check
  Preview what would change for the pods of a namespace, before a migration:
    otel-webhook check --preview -n shop
  Preview what an Instrumentation would inject by its selector, before it is stored:
    otel-webhook check --preview -n shop -f instrumentation.yaml
  Preview it before the webhook is installed, with its future flags:
    otel-webhook check --preview --languages java,nodejs
  Print the commands that restart pods with missing or outdated agents, one rollout after another:
    otel-webhook check -n shop --fix-commands
  In a pipeline:
    otel-webhook check --context production -o json --strict
  Wait after an installation until it works:
    otel-webhook check --wait 120
  Check that a webhook responds, with a certificate that the CA bundle verifies:
    otel-webhook check --review https://otel-webhook.otel-webhook.svc/mutate-v1-pod --ca ca.crt

Exit status: 0; 1 on failures, and with --strict on warnings; 2 if nothing could be checked. A preview exits with
status 0, and --fix-commands with status 1 if failures come first.";

/// How long `--wait` waits before it checks again.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs the subcommand.
///
/// # Errors
/// If nothing could be checked, or the report cannot be written.
pub fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    if args.preview {
        return runtime.block_on(args.preview());
    }
    let results = runtime.block_on(args.wait_for_results())?;
    if args.fix_commands {
        return write_commands(&results, &args.cluster, args.report);
    }
    let code = ExitCode::from(u8::from(args.worst(&results).is_some()));
    args.report.write(code, || result::text(&results), || results.iter().map(CheckResult::object))
}

/// Returns the results about the controller. None if its pods could not be listed.
async fn of_controller(cluster: &ClusterReader, facts: &Facts) -> Vec<CheckResult> {
    match &facts.controller {
        Some(running) => {
            let needs = controller::needs(running);
            controller::results(running, &gather::answers(cluster, &running.account, needs).await)
        }
        None if facts.failed.is_empty() && !facts.services.is_empty() => vec![controller::none()],
        None => Vec::new(),
    }
}

impl CheckArgs {
    /// Returns the results as soon as none is bad, or when the time of `--wait` is over.
    async fn wait_for_results(&self) -> Result<Vec<CheckResult>, Failure> {
        let end = Instant::now() + Duration::from_secs(self.wait.unwrap_or(0));
        let mut reported = String::new();
        loop {
            let results = self.results().await;
            let problem = match &results {
                Ok(results) => self.worst(results).map(CheckResult::line),
                Err(failure) => Some(one_line(failure.to_string())),
            };
            let Some(problem) = problem.filter(|_| Instant::now() < end) else { return results };
            if problem != reported {
                eprintln!("waiting: {problem}");
                reported = problem;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns the first of the worst results, if the exit status depends on it.
    fn worst<'r>(&self, results: &'r [CheckResult]) -> Option<&'r CheckResult> {
        let bad = if self.strict { Level::Warning } else { Level::Failure };
        let bad = results.iter().filter(|result| result.code.level() >= bad);
        bad.rev().max_by_key(|result| result.code.level())
    }

    async fn results(&self) -> Result<Vec<CheckResult>, Failure> {
        if let Some(url) = &self.review {
            let patience = Duration::from_secs(self.timeout);
            let client = self.client_cert.as_deref().zip(self.client_key.as_deref());
            return review::review(url, self.ca.as_deref(), client, patience).await;
        }
        let (cluster, facts, mut survey) = self.survey().await?;
        let mut results = installation::pauses(&survey.paused);
        results.extend(self.of_installation(&cluster, &facts).await);
        if facts.is_registration_told {
            results.extend(registration::injectors(&facts.registration, &survey.namespaces));
        }
        results.push(self.settings(&facts));
        results.extend(installation::delivery(&cluster, &facts, &survey).await);
        let of_references = references::results(&cluster, &mut survey).await;
        results.extend(requests::results(&survey, facts.selecting().unwrap_or(&facts.registration)));
        results.extend(of_references);
        results.extend(facts.failed.iter().chain(&survey.failed).map(FailedRequest::result));
        Ok(results)
    }

    async fn preview(&self) -> Result<ExitCode, Failure> {
        let (_, facts, survey) = self.survey().await?;
        let doubts = facts.failed.iter().chain(&survey.failed).map(FailedRequest::result);
        for doubt in doubts.chain([self.settings(&facts)]).filter(|doubt| doubt.code.level() > Level::Ok) {
            eprintln!("{}", doubt.line());
        }
        let registration = facts.selecting();
        let text = || preview::text(&survey);
        self.report.write(ExitCode::SUCCESS, text, || preview::objects(&survey, registration))
    }

    /// Reads the cluster.
    async fn survey(&self) -> Result<(ClusterReader, Facts, Survey), Failure> {
        let ahead = self.instrumentations()?;
        let cluster = ClusterReader::connect(&self.cluster).await?;
        let facts = Facts::read(&cluster, &self.installed).await;
        let mut flags = facts.flags(&self.installed);
        flags.ahead = ahead;
        let mut survey = survey::take(&cluster, self.namespace.as_deref(), &facts, flags).await;
        survey.is_registration_unread = facts.selecting().is_none();
        if let Some(name) = self.namespace.as_deref().filter(|_| survey.is_of_nowhere()) {
            return Err(Failure::unreadable(format!("--namespace: namespace \"{name}\" not found")));
        }
        Ok((cluster, facts, survey))
    }

    /// Returns the Instrumentations of the files.
    ///
    /// # Errors
    /// If a file cannot be read.
    fn instrumentations(&self) -> Result<Vec<Value>, Failure> {
        let streams = self.files.read()?;
        let namespace = self.namespace.as_deref().unwrap_or("default");
        let mut found = Vec::new();
        for document in streams.documents()? {
            let objects = match manifest::items(&document.value) {
                Some(items) => items.map(Cow::into_owned).collect(),
                None => vec![document.value.clone()],
            };
            let objects = objects.iter().map(|object| object::located(object, namespace).into_owned());
            found.extend(objects.filter(|one| object::kind_of(one) == Some(object::Kind::Instrumentation)));
        }
        Ok(found)
    }

    /// Returns the results about the installation itself.
    async fn of_installation(&self, cluster: &ClusterReader, facts: &Facts) -> Vec<CheckResult> {
        let mut results = match gather::crd(cluster).await {
            Ok(served) => {
                let mut results = crd::results(served.as_ref());
                if let Some(crd) = &served
                    && let Some(problem) = gather::conversion_problem(cluster, crd).await
                {
                    results.push(conversion::failure(crd, &problem, &facts.registration));
                }
                results
            }
            Err(failed) => vec![failed.result()],
        };
        if facts.is_registration_told {
            results.extend(registration::results(&facts.registration));
        }
        results.extend(facts.services.iter().flat_map(installation::services));
        let shown = facts.certificates(cluster, self.secret.as_deref()).await;
        results.extend(certificate::results(&facts.registration.ours, &shown, Timestamp::now()));
        if !facts.registration.ours.is_empty() {
            results.extend(self.permissions(cluster, facts).await);
            results.extend(of_controller(cluster, facts).await);
        }
        results
    }

    async fn permissions(&self, cluster: &ClusterReader, facts: &Facts) -> Vec<CheckResult> {
        let by_pod = facts.running.as_ref().map(|running| &running.account);
        let Some(account) = self.service_account.as_ref().or(by_pod) else {
            return vec![permissions::no_account()];
        };
        let flags = facts.running.as_ref().and_then(|running| running.flags.as_ref().ok());
        let watches_nodes = flags.is_some_and(|flags| flags.injection.watches_nodes());
        let managed = flags.and_then(|flags| flags.managed.as_ref());
        let needs = permissions::needs(managed, watches_nodes, flags.map(|flags| &flags.release));
        permissions::results(account, &gather::answers(cluster, account, needs).await)
    }

    fn settings(&self, facts: &Facts) -> CheckResult {
        match &facts.running {
            _ if self.installed.own_flags => assumed("--own-flags is set"),
            Some(running) => running.result(),
            None => assumed(&facts.why_assumed().unwrap_or_default()),
        }
    }
}

/// Writes the commands. While the webhook does not work, restarts would bring no agents: then the failures are written
/// to standard error.
///
/// # Errors
/// If they cannot be written.
fn write_commands(
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
    use crate::check::result::Code;
    use otel_webhook_server::subject::Subject;

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
            about(Code::PodsNotInjected, "a", &restart),
            about(Code::PodsOutdated, "a", &restart),
            about(Code::PodsOutdated, "paused", &[]),
            about(Code::NotInjected, "other", &[]),
        ];
        let expected = "kubectl rollout restart deployment/a -n shop --context c\n\
                        kubectl rollout status deployment/a -n shop --context c\n\
                        # Deployment shop/paused: do it by hand\n";
        assert_eq!(commands(&results, |command| format!("{command} --context c")), expected);
    }
}
