//! What a check finds: a closed list of codes, each with its check and level.
//!
//! Codes and the members of the JSON are stable: programs read them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::cli::stream::one_line;

/// How bad a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Something is not as it should be, or could not be looked at.
    Warning,
    /// Injection does not work.
    Failure,
}

impl Level {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident: $check:literal $level:ident;)*) => {
        /// What was found.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// The stable name, in camel case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The check that finds it.
            pub fn check(self) -> &'static str {
                match self {
                    $(Self::$name => $check,)*
                }
            }

            /// How bad it is.
            pub fn level(self) -> Level {
                match self {
                    $(Self::$name => Level::$level,)*
                }
            }
        }
    };
}

codes! {
    /// The CRD has every field of this version.
    CrdCurrent: "crd" Ok;
    /// There is no CRD.
    CrdMissing: "crd" Failure;
    /// The CRD does not serve the version that is used.
    CrdNotServed: "crd" Failure;
    /// The CRD drops fields that this version knows.
    CrdPrunesFields: "crd" Warning;
    /// An uninstall of another release takes the CRD, and every Instrumentation, with it.
    CrdGoesWithRelease: "crd" Warning;
    /// Pods are sent to the webhook.
    PodsRegistered: "registration" Ok;
    /// There is no MutatingWebhookConfiguration of the name.
    ConfigurationMissing: "registration" Failure;
    /// The configuration sends no pods that are created.
    PodsNotRegistered: "registration" Failure;
    /// Pods are refused while the webhook is away.
    PodsHeldBack: "registration" Warning;
    /// Instrumentations are stored without defaults or without a verdict.
    InstrumentationsNotRegistered: "registration" Warning;
    /// A webhook's path is none of ours.
    PathUnknown: "registration" Failure;
    /// The Service has an endpoint that is ready.
    EndpointsReady: "service" Ok;
    /// There is no such Service.
    ServiceMissing: "service" Failure;
    /// The Service has no such port.
    PortMissing: "service" Failure;
    /// Nothing behind the Service is ready.
    EndpointsMissing: "service" Failure;
    /// The API server trusts the certificate.
    CertificateTrusted: "certificate" Ok;
    /// It would not.
    CertificateNotTrusted: "certificate" Failure;
    /// There is no `caBundle`, so that the API server trusts what its machine trusts.
    BundleMissing: "certificate" Failure;
    /// The `caBundle` cannot be read.
    BundleUnreadable: "certificate" Failure;
    /// The certificate should have been renewed by now.
    CertificateNearlyOver: "certificate" Warning;
    /// Nobody could look.
    CertificateNotChecked: "certificate" Warning;
    /// The service account may do all that it needs.
    PermissionsSuffice: "permissions" Ok;
    /// It may not.
    PermissionMissing: "permissions" Failure;
    /// Nobody could ask.
    PermissionsNotChecked: "permissions" Warning;
    /// No other webhook injects.
    NoOtherInjector: "injectors" Ok;
    /// Another one does, for other namespaces.
    OtherInjectorApart: "injectors" Ok;
    /// Another one does, for namespaces that are sent to us as well.
    OtherInjectorBeside: "injectors" Warning;
    /// The flags that the webhook runs with were found, and are used for what follows.
    SettingsFound: "settings" Ok;
    /// They were not; those of this command are used.
    SettingsAssumed: "settings" Warning;
    /// An Instrumentation cannot be used.
    InstrumentationUnusable: "requests" Warning;
    /// Whoever asks gets it.
    RequestsMet: "requests" Ok;
    /// Whoever asks does not get it; `reason` says why.
    RequestInVain: "requests" Warning;
    /// Whoever asks gets it, and it will probably not do what was meant; `reason` says why.
    InjectedWithWarning: "requests" Warning;
    /// Whoever asks is not sent to the webhook.
    NotReviewed: "requests" Warning;
    /// Pods run without what new ones would get.
    RunningWithout: "requests" Warning;
    /// Something may not be read by whoever runs the check.
    NotAllowed: "access" Warning;
    /// The webhook was connected to.
    Connected: "connection" Ok;
    /// It was not.
    NotConnected: "connection" Failure;
    /// The certificate is trusted by the authorities that were given.
    Verified: "certificate" Ok;
    /// No authorities were given.
    NotVerified: "certificate" Warning;
    /// The certificate is not trusted by them.
    VerificationFailed: "certificate" Failure;
    /// The webhook answered as it should.
    Answered: "answer" Ok;
    /// It did not.
    AnswerWrong: "answer" Failure;
}

/// What a result is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subject {
    /// Kind of the object.
    pub kind: String,
    /// Its namespace; empty for one without.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Subject {
    /// An object of a namespace; an empty one for those without.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// What was found.
    pub code: Code,
    /// What it is about.
    pub subject: Option<Subject>,
    /// The code of the reason why a request is in vain, or of what is warned of.
    pub reason: Option<&'static str>,
    /// The sentence for people.
    pub message: String,
    /// What to do.
    pub advice: Option<String>,
}

impl CheckResult {
    /// A result about nothing in particular.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, subject: None, reason: None, message: message.into(), advice: None }
    }

    /// The same about an object.
    #[must_use]
    pub fn about(self, subject: Subject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// The same with what to do.
    #[must_use]
    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// The result as a line of text.
    pub fn line(&self) -> String {
        let Self { code, subject, message, advice, .. } = self;
        let subject = subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        let advice = advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default();
        let (level, check) = (code.level().word(), code.check());
        one_line(&format!("{level:<7}  {check:<12}  {subject}{message}{advice}"))
    }

    /// The result as an object.
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
            "message": self.message,
            "advice": self.advice,
        })
    }
}

/// How many results of one code have a line each; large clusters have thousands.
const MOST_LINES: usize = 50;

/// The report for people: a line each, and how many there are of each level.
pub fn text(results: &[CheckResult]) -> String {
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let mut lines = Vec::new();
    for result in results {
        let before = shown.entry(result.code.name()).or_default();
        if *before < MOST_LINES {
            lines.push(result.line());
        } else if *before == MOST_LINES {
            let all = results.iter().filter(|other| other.code == result.code).count();
            let message = format!("… and {} more; -o json has all", all - MOST_LINES);
            lines.push(CheckResult::new(result.code, message).line());
        }
        *before += 1;
    }
    let count = |level| results.iter().filter(|result| result.code.level() == level).count();
    let of = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let (warnings, failures) = (of(count(Level::Warning), "warning"), of(count(Level::Failure), "failure"));
    lines.push(format!("{} ok, {warnings}, {failures}", count(Level::Ok)));
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_bad_where_what_and_what_to_do() {
        let result = CheckResult::new(Code::ServiceMissing, "there is no such\nService")
            .about(Subject::new("Service", "shop", "webhook"))
            .advise("create it");
        let line = "failure  service       Service shop/webhook: there is no such Service; create it";
        assert_eq!(result.line(), line);
        assert_eq!(text(&[result]), format!("{line}\n0 ok, 0 warnings, 1 failure\n"));
    }

    #[test]
    fn of_many_alike_the_first_have_a_line() {
        let results: Vec<_> =
            (0..60).map(|number| CheckResult::new(Code::RequestInVain, number.to_string())).collect();
        let text = text(&results);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), MOST_LINES + 2);
        assert_eq!(lines[MOST_LINES], "warning  requests      … and 10 more; -o json has all");
        assert_eq!(lines[MOST_LINES + 1], "0 ok, 60 warnings, 0 failures");
    }

    #[test]
    fn the_object_has_every_member_always() {
        let result = CheckResult::new(Code::CrdCurrent, "fine");
        let expected = json!({"check": "crd", "level": "ok", "code": "CrdCurrent", "object": null,
            "reason": null, "message": "fine", "advice": null});
        assert_eq!(result.object(), expected);
        let about = result.about(Subject::new("CustomResourceDefinition", "", "a"));
        let object = json!({"kind": "CustomResourceDefinition", "namespace": null, "name": "a"});
        assert_eq!(about.object()["object"], object);
    }
}
