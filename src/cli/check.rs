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

use super::{
    cluster::{
        facts::Facts,
        flags::{ClusterFlags, RegistrationFlags},
        object::Account,
        reader::{ClusterReader, NotTold},
    },
    flags::InjectionFlags,
    output::{Failure, ReportFlags},
    stream::FileFlags,
};
use crate::manifest;
use installation::assumed;
use otel_webhook_inject::object;
use otel_webhook_review::one_line;
use result::{CheckResult, Level};
use review::ReviewUrl;

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
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Cluster")]
    namespace: Option<String>,

    #[command(flatten)]
    files: FileFlags,

    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    registration: RegistrationFlags,

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

    /// Print only the commands that replace pods without the present agents, one rollout after another; they are not
    /// run
    #[arg(long, help_heading = "Output", conflicts_with_all = ["preview", "review", "output"])]
    fix_commands: bool,

    /// Use the injection flags of this command instead of those of the webhook's pods
    #[arg(long, env = "OTEL_WEBHOOK_OWN_FLAGS", help_heading = "Injection")]
    own_flags: bool,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// The help of the files, which differs from that of other subcommands.
const FILE_HELP: &str = "File of YAML or JSON documents, or \"-\" for standard input; may be repeated: preview as if its \
                         Instrumentations were stored";

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
  Print the commands that restart what runs without the present agents, one rollout after another:
    otel-webhook check -n shop --fix-commands
  In a pipeline:
    otel-webhook check --context production -o json --strict
  Check that a webhook responds, with a certificate that the CA bundle verifies:
    otel-webhook check --review https://otel-webhook.otel-webhook.svc/mutate-v1-pod --ca ca.crt

Exit status: 0; 1 on failures, and with --strict on warnings; 2 if nothing could be checked. A preview exits with
status 0, and --fix-commands with status 1 if failures come first.";

/// Runs the subcommand.
///
/// # Errors
/// If nothing could be checked, or the report cannot be written.
pub fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::failed)?.block_on(check(args))
}

async fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    if let Some(url) = &args.review {
        let patience = Duration::from_secs(args.timeout);
        let client = args.client_cert.as_deref().zip(args.client_key.as_deref());
        let results = review::review(url, args.ca.as_deref(), client, patience).await?;
        return report(args, &results);
    }
    let ahead = args.instrumentations()?;
    let cluster = ClusterReader::connect(&args.cluster).await?;
    let facts = Facts::gather(&cluster, &args.registration.webhook_configuration).await;
    let mut flags = facts.flags(&args.injection, args.own_flags);
    flags.ahead = ahead;
    let mut survey = survey::take(&cluster, args.namespace.as_deref(), &facts, flags).await;
    survey.is_registration_unread = !facts.is_registration_told;
    if let Some(name) = args.namespace.as_deref().filter(|_| survey.is_of_nowhere()) {
        return Err(Failure::unreadable(format!("--namespace: namespace \"{name}\" not found")));
    }
    if args.preview {
        let doubts = facts.not_told.iter().chain(&survey.not_told).map(NotTold::result);
        for doubt in doubts.chain([args.settings(&facts)]).filter(|doubt| doubt.code.level() > Level::Ok) {
            eprintln!("{}", doubt.line());
        }
        let registration = Some(&facts.registration).filter(|_| facts.is_registration_told);
        let text = || preview::text(&survey);
        return args.report.write(ExitCode::SUCCESS, text, || preview::objects(&survey, registration));
    }
    let mut results = installation::pauses(&survey.paused);
    results.extend(args.of_installation(&cluster, &facts).await);
    if facts.is_registration_told {
        results.extend(registration::injectors(&facts.registration, &survey.namespaces));
    }
    results.push(args.settings(&facts));
    results.extend(installation::delivery(&cluster, &facts).await);
    results.extend(requests::results(&survey, &facts.registration));
    results.extend(references::results(&cluster, &survey).await);
    results.extend(facts.not_told.iter().chain(&survey.not_told).map(NotTold::result));
    if args.fix_commands {
        return write_commands(&results, &args.cluster, args.report);
    }
    report(args, &results)
}

fn report(args: &CheckArgs, results: &[CheckResult]) -> Result<ExitCode, Failure> {
    let worst = results.iter().map(|result| result.code.level()).max().unwrap_or(Level::Ok);
    let bad = if args.strict { Level::Warning } else { Level::Failure };
    let code = ExitCode::from(u8::from(worst >= bad));
    args.report.write(code, || result::text(results), || results.iter().map(CheckResult::object))
}

/// Returns the results about the controller. None if its pods could not be listed.
async fn of_controller(cluster: &ClusterReader, facts: &Facts) -> Vec<CheckResult> {
    match &facts.controller {
        Some(running) => {
            let needs = controller::needs(running);
            controller::results(running, &gather::answers(cluster, &running.account, needs).await)
        }
        None if facts.not_told.is_empty() && !facts.services.is_empty() => vec![controller::none()],
        None => Vec::new(),
    }
}

impl CheckArgs {
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
            Err(not_told) => vec![not_told.result()],
        };
        if facts.is_registration_told {
            results.extend(facts.registration.results());
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
            _ if self.own_flags => assumed("--own-flags is set"),
            Some(running) => running.result(),
            None => assumed(&facts.why_assumed().unwrap_or_default()),
        }
    }
}

/// Writes the commands. While the webhook does not work, restarts would be in vain: then the failures are written to
/// standard error.
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
