//! Differences that are derived from the findings.

use super::seen::{Seen, is_extension, items};
use otel_webhook_inject::{
    Note,
    annotation::Ask,
    language::{self, LANGUAGES, Language, NGINX_ATTACH, Shape},
    reason::{Reason, Sign},
};

/// Reasons for which the operator skips a container, but leaves the additions for it in the pod.
const SKIPPED: [&str; 3] = ["OptionalReference", "AutoHomeSet", "PlatformUnknown"];

/// Reasons that are errors in the operator, after which it skips every language.
const ERRORS: [&str; 7] = [
    "NoInstrumentation",
    "NoneSelectsPod",
    "AmbiguousInstrumentation",
    "InstrumentationNotFound",
    "DefaultInstrumentationNotFound",
    "InstrumentationInvalid",
    "ContainerNamedTwice",
];

/// Reasons that only this webhook has, and checks before the operator's error of a missing Instrumentation.
const NOT_ASKED: [&str; 3] = ["LanguageDisabled", "InstrumentationNotGranted", "CrossNamespaceDenied"];

/// D2: the operator adds an unused volume and init container.
pub fn every_target_skipped(seen: &Seen<'_>) -> bool {
    let of = |name: &'static str| seen.findings().iter().filter(move |finding| finding.language == name);
    LANGUAGES.iter().any(|language| {
        let is_skipped = of(language.name).any(|finding| SKIPPED.contains(&finding.reason.code()));
        is_skipped && !of(language.name).any(|finding| finding.reason.is_injected())
    })
}

/// D5: unknown names, and names with spaces around them.
pub fn names_unknown_or_padded(seen: &Seen<'_>) -> bool {
    let keys = seen.findings().iter().filter_map(|finding| {
        LANGUAGES
            .iter()
            .find(|language| language.name == finding.language)
            .map(|language| language.containers)
    });
    let mut lists = keys.chain(["container-names"]).flat_map(|key| seen.annotation(key)).flatten();
    let is_padded = |list: &str| list.split(',').any(|name| name.trim() != name);
    seen.has("ContainerNotFound") || lists.any(is_padded)
}

/// D15: a target was skipped before the first injected one.
pub fn first_target_skipped(seen: &Seen<'_>) -> bool {
    seen.injected().any(|(injected, language)| {
        let of_language = |finding: &&otel_webhook_inject::Finding| finding.language == language.name;
        let mut before = seen.findings().iter().filter(of_language).take_while(|one| *one != injected);
        before.any(|finding| SKIPPED.contains(&finding.reason.code()))
    })
}

/// D17: the additions of the operator would make the pod invalid.
pub fn would_be_invalid(seen: &Seen<'_>) -> bool {
    let is_taken = ["NameTaken", "ConfigPath"].iter().any(|code| seen.has(code));
    let spec = &seen.case.pod["spec"];
    let claims =
        |claim: &serde_json::Value| items(&spec["resourceClaims"]).all(|own| own["name"] != claim["name"]);
    let by_resource = seen.used().any(|(object, language)| {
        let tls = &object["spec"]["exporter"]["tls"];
        let is_dotted = |name: &serde_json::Value| name.as_str().is_some_and(|name| name.contains('.'));
        let resources = language.defaults.map(|row| &object["spec"][row.field][row.resources]["claims"]);
        let lacks_claims = resources.is_some_and(|list| items(list).any(claims));
        let shares = language.shape == Shape::Sidecar && spec["hostPID"] == true;
        is_dotted(&tls["secretName"]) || is_dotted(&tls["configMapName"]) || lacks_claims || shares
    });
    is_taken || by_resource
}

/// D18: the operator would inject again, since it does not recognise the container that attaches the module to
/// nginx nor those of extensions.
pub fn injected_in_part(seen: &Seen<'_>) -> bool {
    seen.findings().iter().any(|finding| match &finding.reason {
        Reason::AlreadyInjected { sign: Sign::Container(container) } => {
            container == NGINX_ATTACH || is_extension(container)
        }
        _ => false,
    })
}

/// D20: the operator does not inject if a Secret or ConfigMap is missing.
pub fn certificates_not_checked(seen: &Seen<'_>) -> bool {
    let is_note = |note: &Note| matches!(note, Note::CertificateNotChecked { .. });
    seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D30: the operator always selects the first container.
pub fn helpers_skipped(seen: &Seen<'_>) -> bool {
    let is_note = |note: &Note| matches!(note, Note::HelpersSkipped { .. });
    seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D35: the operator always copies the agent.
pub fn image_mounted(seen: &Seen<'_>) -> bool {
    let is_note = |note: &Note| matches!(note, Note::ImageVolume);
    seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D32: the operator's pod would be rejected, or wait for a resource claim that would be.
pub fn bounded_by_namespace(seen: &Seen<'_>) -> bool {
    const SKIPPED: [&str; 4] = ["ResourcesRefused", "ClaimRefused", "SecretRefused", "MirrorPod"];
    let is_fitted = |note: &Note| match note {
        Note::ResourcesLowered { due_to, .. } | Note::SidecarFitted { due_to, .. } => !due_to.is_empty(),
        _ => false,
    };
    // With the operator's resources, they are only fitted if the pod would be rejected.
    let mut exact = seen.case.exact.findings.iter();
    SKIPPED.iter().any(|code| seen.has(code)) || exact.any(|finding| finding.notes.iter().any(is_fitted))
}

/// D21: one language fails, and another one is injected.
pub fn other_language_fails(seen: &Seen<'_>) -> bool {
    let fails = seen.findings().iter().any(|finding| {
        ERRORS.contains(&finding.reason.code())
            || NOT_ASKED.contains(&finding.reason.code()) && names_none(seen, finding.language)
    });
    seen.injected().next().is_some() && fails
}

/// Returns whether a language names an Instrumentation that does not exist.
fn names_none(seen: &Seen<'_>, language: &str) -> bool {
    let row = LANGUAGES.iter().find(|row| row.name == language);
    let mut said = row.into_iter().flat_map(|row| seen.annotation(row.inject)).flatten();
    said.any(|value| match Ask::parse(value) {
        Ask::Named { namespace, name } => {
            let namespace = namespace.unwrap_or(seen.case.around.namespace).to_owned();
            !seen.case.instrumentations.contains_key(&(namespace, name.to_owned()))
        }
        _ => false,
    })
}

/// D36: the selector of an Instrumentation opts in.
pub fn opted_in_by_selector(seen: &Seen<'_>) -> bool {
    const FAILED: [&str; 3] = ["AmbiguousOptIn", "NamespaceSelectorDenied", "SelectorLanguageIgnored"];
    let is_note = |note: &Note| matches!(note, Note::OptedInBySelector { .. });
    FAILED.iter().any(|code| seen.has(code))
        || seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D38: the operator has no agents but those of its languages.
pub fn agent_of_the_instrumentation(seen: &Seen<'_>) -> bool {
    let mut languages = seen.findings().iter().filter_map(|finding| language::named(finding.language));
    languages.any(Language::names_agents)
}

/// D39: the operator has no default images of namespaces.
pub fn image_of_the_namespace(seen: &Seen<'_>) -> bool {
    let is_note = |note: &Note| matches!(note, Note::ImageOfNamespace { .. });
    seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D41: the kubelet would not start the operator's containers in a pod that must not run as root.
pub fn must_not_run_as_root(seen: &Seen<'_>) -> bool {
    let is_note = |note: &Note| matches!(note, Note::UserSet { .. });
    ["RootNotAllowed", "ClaimNotWritable"].iter().any(|code| seen.has(code))
        || seen.findings().iter().any(|finding| finding.notes.iter().any(is_note))
}

/// D37: the operator reads annotations only.
pub fn opted_in_or_out_by_label(seen: &Seen<'_>) -> bool {
    let languages = seen.findings().iter().filter_map(|finding| language::named(finding.language));
    languages.flat_map(|language| seen.label(language.inject)).any(|label| label.is_some())
}
