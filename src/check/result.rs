//! The results of checks: a closed list of codes, each with its check and level.
//!
//! The codes and the fields of the JSON are stable, since programs read them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::cluster::reader::FailedRequest;
use otel_webhook_review::one_line;
use otel_webhook_server::subject::Subject;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident: $check:literal $level:ident;)*) => {
        /// The code of a result.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes, in the order of the list.
            #[cfg(test)]
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the stable name, in camel case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the check.
            pub fn check(self) -> &'static str {
                match self {
                    $(Self::$name => $check,)*
                }
            }

            /// Returns the level.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }
        }
    };
}

/// The page that says what to do about each code, in the repository.
const RUNBOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/operations/runbook.md");

impl Code {
    /// Returns the link to what to do about it. None if it is no problem.
    pub fn runbook(self) -> Option<String> {
        (self.level() != Level::Ok).then(|| format!("{RUNBOOK}#{}", self.name().to_lowercase()))
    }
}

codes! {
    /// Injection is paused by the annotation of the object.
    InjectionPaused: "paused" Warning;
    /// The CRD has every field of this version.
    CrdCurrent: "crd" Ok;
    /// The CRD is not installed.
    CrdMissing: "crd" Failure;
    /// The CRD does not serve the required version.
    CrdNotServed: "crd" Failure;
    /// The CRD drops fields of this version.
    CrdPrunesFields: "crd" Warning;
    /// The API server cannot convert Instrumentations between versions.
    CrdConversionFails: "crd" Failure;
    /// Uninstalling another Helm release deletes the CRD, and every Instrumentation.
    CrdDeletedWithRelease: "crd" Warning;
    /// A configuration sends new pods to the webhook.
    PodsRegistered: "registration" Ok;
    /// The webhook configuration does not exist.
    ConfigurationMissing: "registration" Failure;
    /// No configuration sends new pods.
    PodsNotRegistered: "registration" Failure;
    /// Pods are rejected while the webhook is unavailable.
    PodsFailClosed: "registration" Warning;
    /// Instrumentations are stored without defaulting or validation.
    InstrumentationsNotRegistered: "registration" Warning;
    /// The path of a webhook is unknown.
    PathUnknown: "registration" Failure;
    /// The Service has ready endpoints.
    EndpointsReady: "service" Ok;
    /// The Service does not exist.
    ServiceMissing: "service" Failure;
    /// The Service does not have the port.
    PortMissing: "service" Failure;
    /// The Service has no ready endpoints.
    EndpointsMissing: "service" Failure;
    /// API servers trust the certificate.
    CertificateTrusted: "certificate" Ok;
    /// API servers do not trust the certificate.
    CertificateNotTrusted: "certificate" Failure;
    /// `caBundle` is not set, so that API servers use the CAs of their hosts.
    CaBundleMissing: "certificate" Failure;
    /// `caBundle` cannot be read.
    CaBundleInvalid: "certificate" Failure;
    /// The certificate expires soon and was not renewed.
    CertificateExpiresSoon: "certificate" Warning;
    /// The certificate could not be checked.
    CertificateNotChecked: "certificate" Warning;
    /// The service account has all permissions.
    PermissionsSuffice: "permissions" Ok;
    /// The service account lacks a permission.
    PermissionMissing: "permissions" Failure;
    /// The permissions could not be checked.
    PermissionsNotChecked: "permissions" Warning;
    /// A replica of the controller is ready.
    ControllerReady: "controller" Ok;
    /// There is no pod of the controller.
    NoController: "controller" Ok;
    /// No replica of the controller is ready.
    ControllerNotReady: "controller" Warning;
    /// The service account of the controller lacks a permission.
    ControllerPermissionMissing: "controller" Warning;
    /// The controller restarts workloads, and no policy restricts what it changes of them.
    RestartsUnrestricted: "controller" Warning;
    /// No other webhook injects.
    NoOtherInjector: "injectors" Ok;
    /// Another webhook injects, in other namespaces.
    OtherInjectorApart: "injectors" Ok;
    /// Another webhook injects, in namespaces that this webhook selects as well.
    OtherInjectorActive: "injectors" Warning;
    /// The flags of the webhook's pods are used for the results that follow.
    SettingsFound: "settings" Ok;
    /// The flags of this command are used instead.
    SettingsAssumed: "settings" Warning;
    /// Agents are copied, and every node can mount their images.
    ImageVolumesPossible: "delivery" Ok;
    /// Agents are mounted as image volumes, and a node cannot mount them.
    ImageVolumesNotSupported: "delivery" Warning;
    /// An Instrumentation cannot be used.
    InstrumentationUnusable: "requests" Warning;
    /// All pods that opt in run the current agents.
    RequestsMet: "requests" Ok;
    /// A language is skipped; `reason` is the reason code.
    NotInjected: "requests" Warning;
    /// An injection will probably not do what was meant; `reason` is the code of the warning.
    InjectedWithWarning: "requests" Warning;
    /// An annotation or a label has no effect; `reason` is the code of the mistake.
    AnnotationIgnored: "requests" Warning;
    /// The Secret or `ConfigMap` of an exporter does not exist.
    ExporterFilesMissing: "requests" Warning;
    /// The Secret or `ConfigMap` of a variable does not exist, and new pods do not start without it.
    EnvSourceMissing: "requests" Warning;
    /// A workload opts in, but no configuration selects its pods.
    NotReviewed: "requests" Warning;
    /// Pods were created before, and run without the injection of new pods.
    PodsNotInjected: "requests" Warning;
    /// Whether a language is injected depends on something that the user who runs the check may not read.
    NotReadable: "requests" Warning;
    /// Pods run with an agent of another version, or of another configuration, than new pods.
    PodsOutdated: "requests" Warning;
    /// Pods cannot start because of a container or a volume that injection added; `reason` is the kubelet's.
    PodsFailing: "requests" Failure;
    /// How many pods opt in and run without an agent, by cause.
    PodsWithoutAgent: "requests" Warning;
    /// The versions of the agents, of running pods and of new ones.
    AgentVersions: "requests" Ok;
    /// The user who runs the check lacks a permission.
    NotAllowed: "access" Warning;
    /// The connection to the webhook works.
    Connected: "connection" Ok;
    /// The connection to the webhook failed.
    NotConnected: "connection" Failure;
    /// The CA bundle of the flag verifies the certificate.
    Verified: "certificate" Ok;
    /// The flag for the CA bundle is not set.
    NotVerified: "certificate" Warning;
    /// The CA bundle of the flag does not verify the certificate.
    VerificationFailed: "certificate" Failure;
    /// The response of the webhook is correct.
    Answered: "answer" Ok;
    /// The response of the webhook is not correct.
    ResponseInvalid: "answer" Failure;
}

impl Code {
    /// Returns whether it is about pods that a restart replaces.
    pub fn is_of_running_pods(self) -> bool {
        matches!(self, Self::PodsNotInjected | Self::PodsOutdated)
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// The code of a result.
    pub code: Code,
    /// The object.
    pub subject: Option<Subject>,
    /// The code of the reason or of the warning.
    pub reason: Option<&'static str>,
    /// Path of the field in the object.
    pub field: Option<String>,
    /// The message.
    pub message: String,
    /// The remedy.
    pub advice: Option<String>,
    /// The commands of the remedy, to be run one after another.
    pub commands: Vec<String>,
    /// The numbers of the message.
    pub details: Option<Value>,
}

impl CheckResult {
    /// Returns a result without an object.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        let (commands, details) = (Vec::new(), None);
        Self { code, subject: None, reason: None, field: None, message, advice: None, commands, details }
    }

    /// Adds the object.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// Returns the result as a line of text.
    pub fn line(&self) -> String {
        let Self { code, subject, field, message, advice, .. } = self;
        let subject = subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        let field = field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        let advice = advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        let (level, check) = (code.level().word(), code.check());
        one_line(format!("{level:<7}  {check:<12}  {subject}{field}{message}{advice}"))
    }

    /// Returns the result as JSON.
    pub fn object(&self) -> Value {
        let subject = self.subject.as_ref().map(|subject| {
            let namespace = Some(&subject.namespace).filter(|namespace| !namespace.is_empty());
            json!({"kind": subject.kind, "namespace": namespace, "name": subject.name})
        });
        json!({
            "check": self.code.check(),
            "level": self.code.level().word(),
            "code": self.code.name(),
            "object": subject,
            "reason": self.reason,
            "field": self.field,
            "message": self.message,
            "advice": self.advice,
            "runbook": self.code.runbook(),
            "commands": self.commands,
            "details": self.details,
        })
    }
}

/// How many results of one code are listed; large clusters have thousands.
const MOST_LINES: usize = 50;

/// Returns the report as text: a line for each result, and the number of results of each level.
pub fn text(results: &[CheckResult]) -> String {
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let mut lines = Vec::new();
    for result in results {
        let before = shown.entry(result.code.name()).or_default();
        if *before < MOST_LINES {
            lines.push(result.line());
            // Those that restart workloads are printed by --commands.
            let commands = result.commands.iter().filter(|_| !result.code.is_of_running_pods());
            lines.extend(commands.map(|command| format!("         $ {command}")));
        } else if *before == MOST_LINES {
            let all = results.iter().filter(|other| other.code == result.code).count();
            let message = format!("… and {} more; -o json lists all", all - MOST_LINES);
            lines.push(CheckResult::new(result.code, message).line());
        }
        *before += 1;
    }
    let count = |level| results.iter().filter(|result| result.code.level() == level).count();
    let of = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let (warnings, failures) = (of(count(Level::Warning), "warning"), of(count(Level::Failure), "failure"));
    lines.push(format!("{} ok, {warnings}, {failures}", count(Level::Ok)));
    lines.extend(links(results));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Returns a line for each kind of problem, with the link to what to do about it.
fn links(results: &[CheckResult]) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    for result in results {
        let link = result.code.runbook().map(|link| format!("{}: {link}", result.code.name()));
        links.extend(link.filter(|link| !links.contains(link)));
    }
    links
}

/// The severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No problem.
    Ok,
    /// A problem, or something that could not be checked.
    Warning,
    /// Injection does not work.
    Failure,
}

impl Level {
    /// Returns the name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

impl FailedRequest {
    /// Returns the warning that the report is incomplete.
    pub fn result(&self) -> CheckResult {
        let Self { question, problem } = self;
        CheckResult::new(Code::NotAllowed, format!("cannot {question}: {problem}"))
            .advise("checks that depend on it are skipped; run the command as a user with this permission")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_links_its_section_of_the_runbook() {
        let runbook = include_str!("../../docs/operations/runbook.md");
        for code in Code::ALL {
            let heading = format!("### {}", code.name());
            let has_section = runbook.lines().any(|line| line == heading);
            assert_eq!(has_section, code.level() != Level::Ok, "{heading}");
            let anchor = format!("/docs/operations/runbook.md#{}", code.name().to_lowercase());
            assert_eq!(code.runbook().is_some_and(|link| link.ends_with(&anchor)), has_section, "{anchor}");
        }
    }

    #[test]
    fn a_line_has_level_check_object_message_and_remedy() {
        let result = CheckResult::new(Code::ServiceMissing, "there is no such\nService")
            .about(Subject::new("Service", "shop", "webhook"))
            .advise("create it");
        let line = "failure  service       Service shop/webhook: there is no such\\nService; create it";
        assert_eq!(result.line(), line);
        let section = format!("ServiceMissing: {RUNBOOK}#servicemissing");
        let twice = [result.clone(), result, CheckResult::new(Code::CrdCurrent, "fine")];
        let ok = "ok       crd           fine";
        let expected = format!("{line}\n{line}\n{ok}\n1 ok, 0 warnings, 2 failures\n{section}\n");
        assert_eq!(text(&twice), expected);
    }

    #[test]
    fn only_the_first_of_many_results_are_listed() {
        let results: Vec<_> =
            (0..60).map(|number| CheckResult::new(Code::NotInjected, number.to_string())).collect();
        let text = text(&results);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), MOST_LINES + 3);
        assert_eq!(lines[MOST_LINES], "warning  requests      … and 10 more; -o json lists all");
        assert_eq!(lines[MOST_LINES + 1], "0 ok, 60 warnings, 0 failures");
    }

    #[test]
    fn the_json_always_has_every_field() {
        let result = CheckResult::new(Code::CrdCurrent, "fine");
        let expected = json!({"check": "crd", "level": "ok", "code": "CrdCurrent", "object": null,
            "reason": null, "field": null, "message": "fine", "advice": null, "runbook": null, "commands": [],
            "details": null});
        assert_eq!(result.object(), expected);
        let about = result.about(Subject::new("CustomResourceDefinition", "", "a"));
        let object = json!({"kind": "CustomResourceDefinition", "namespace": null, "name": "a"});
        assert_eq!(about.object()["object"], object);
    }
}
