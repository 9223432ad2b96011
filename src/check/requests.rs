//! Checks which workloads opt in but are not injected, and which pods run without the injection.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    result::{CheckResult, Code},
    survey::{Next, Replaced, Survey, Surveyed, Unusable},
};
use otel_webhook_api::ANNOTATION_PREFIX;
use otel_webhook_fleet::{injected::Agent, report::FailureRow};
use otel_webhook_inject as inject;
use otel_webhook_inject::{Finding, language::LANGUAGES, mistakes::Mistake, reason::Reason};
use otel_webhook_server::{
    registration::{Backend, Exclusion, Hook, Labels, Registration},
    subject::Subject,
};
use otel_webhook_store::unread::Unsure;

/// Reasons that are caused by the namespace and not by the pod.
const OF_NAMESPACES: [&str; 11] = [
    "LanguageDisabled",
    "NoInstrumentation",
    "AmbiguousInstrumentation",
    "InstrumentationNotFound",
    "InstrumentationNotGranted",
    "CrossNamespaceDenied",
    "DefaultInstrumentationNotFound",
    "InstrumentationInvalid",
    "ContainerListMissing",
    "PodSecurity",
    "PrivilegedInitContainer",
];

/// With one of these, not all that opt in are injected as they should be.
const SPOILS: [Code; 7] = [
    Code::AnnotationIgnored,
    Code::NotInjected,
    Code::NotReviewed,
    Code::PodsNotInjected,
    Code::PodsOutdated,
    Code::PodsFailing,
    Code::PodsWithoutAgent,
];

/// Returns the results for namespaces and workloads that opt in.
pub fn results(survey: &Survey, registration: &Registration) -> Vec<CheckResult> {
    let mut results: Vec<CheckResult> = survey.unusable.iter().map(unusable).collect();
    results.extend(survey.mistakes.iter().map(|(subject, mistake)| without_effect(subject, mistake)));
    let of_namespaces: Vec<_> = survey.asking.iter().flat_map(not_injected_for_all).collect();
    let (mut asking, mut not_injected) = (0, 0);
    let mut of_workloads = Vec::new();
    for workload in &survey.workloads {
        let own = of_workload(workload, &of_namespaces);
        asking += usize::from(asks(workload));
        not_injected += usize::from(is_in_vain(workload));
        of_workloads.extend(own);
        let mistakes = workload.mistakes.iter();
        of_workloads.extend(mistakes.map(|mistake| without_effect(&workload.subject, mistake)));
        of_workloads.extend(unknown(workload));
        of_workloads.extend(warned(workload));
        of_workloads.extend(failing(workload));
        of_workloads.extend(not_reviewed(workload, survey, registration));
        if is_short_lived(workload) {
            continue;
        }
        let hooks = reviewers(workload, survey, registration);
        of_workloads.extend(without(workload).filter(|_| !hooks.is_empty()));
        // Only the current agents of this webhook are known.
        let is_known = survey.unread.flags.is_none();
        let is_ours = is_known && hooks.iter().any(|hook| registration.names.contains(&hook.configuration));
        // While injection is paused, a restart would remove the agents.
        let is_paused = workload.decided().iter().any(is_paused);
        of_workloads.extend(outdated(workload).filter(|_| is_ours && !is_paused));
    }
    results.extend(of_namespaces);
    results.extend(of_workloads);
    results.extend(without_agent(survey, registration));
    let is_amiss = |result: &CheckResult| SPOILS.contains(&result.code);
    let is_certain = survey.failed.is_empty() && survey.unread.flags.is_none();
    let unsure = survey.workloads.iter().filter(|workload| !workload.unsure.is_empty()).count();
    if not_injected == 0 && unsure == 0 && is_certain && !results.iter().any(is_amiss) {
        let all = survey.workloads.len();
        let message =
            format!("{asking} of {all} workloads opt in, and all of their pods run the current agents");
        results.push(CheckResult::new(Code::RequestsMet, message));
    }
    results.extend(versions(survey));
    results
}

fn unusable(Unusable { subject, problem, advice }: &Unusable) -> CheckResult {
    let result = CheckResult::new(Code::InstrumentationUnusable, format!("cannot be used: {problem}"));
    result.about(subject.clone()).advise(advice.as_str())
}

fn without_effect(subject: &Subject, mistake: &Mistake) -> CheckResult {
    let result = CheckResult::new(Code::AnnotationIgnored, &*mistake.message).about(subject.clone());
    let field = Some(mistake.field.clone());
    CheckResult { reason: Some(mistake.fault.code()), field, ..result.advise(&*mistake.remedy) }
}

fn not_injected(subject: &Subject, finding: &Finding, field: Option<String>) -> CheckResult {
    let said = CheckResult::new(Code::NotInjected, finding.to_string()).about(subject.clone());
    let advice = finding.reason.remedy().map(str::to_owned);
    CheckResult { reason: Some(finding.reason.code()), field, advice, ..said }
}

/// Returns the path of the annotation that opts in to a language.
fn annotation(metadata: &str, language: &str) -> Option<String> {
    let row = inject::language::named(language)?;
    Some(format!("{metadata}.annotations[{ANNOTATION_PREFIX}{}]", row.inject))
}

fn not_injected_for_all((name, findings): &(String, Vec<Finding>)) -> Vec<CheckResult> {
    let subject = Subject::new("Namespace", "", name);
    let own = findings.iter().filter(|finding| OF_NAMESPACES.contains(&finding.reason.code()));
    own.map(|finding| not_injected(&subject, finding, annotation("metadata", finding.language))).collect()
}

fn is_paused(finding: &Finding) -> bool {
    matches!(finding.reason, Reason::Paused { .. })
}

fn asks(workload: &Surveyed) -> bool {
    workload.decided().iter().any(|finding| finding.reason.code() != "SwitchedOff")
}

fn is_in_vain(workload: &Surveyed) -> bool {
    matches!(workload.next, Next::Unreadable(_))
        || workload.decided().iter().any(|one| one.reason.is_trouble())
}

/// Returns the skipped languages of a workload. Results for its whole namespace are not repeated.
fn of_workload(workload: &Surveyed, of_namespaces: &[CheckResult]) -> Vec<CheckResult> {
    if let Next::Unreadable(problem) = &workload.next {
        let message = format!("the pod cannot be read: {problem}");
        let result = CheckResult::new(Code::NotInjected, message).about(workload.subject.clone());
        return vec![CheckResult { reason: Some("Unreadable"), ..result }];
    }
    let is_said = |finding: &Finding| {
        let of_namespace = |said: &&CheckResult| {
            let subject = said.subject.as_ref();
            subject.is_some_and(|subject| subject.name == workload.subject.namespace)
                && said.reason == Some(finding.reason.code())
                && said.message == finding.to_string()
        };
        !workload.own.contains(&finding.language) && of_namespaces.iter().any(|said| of_namespace(&said))
    };
    let troubles =
        workload.decided().iter().filter(|finding| finding.reason.is_trouble() && !is_said(finding));
    // What pauses is reported once.
    let troubles = troubles.filter(|finding| !is_paused(finding));
    let field = |language: &str| {
        let metadata = pod_path(&workload.subject.kind, "metadata");
        workload.own.contains(&language).then(|| annotation(&metadata, language)).flatten()
    };
    troubles.map(|finding| not_injected(&workload.subject, finding, field(finding.language))).collect()
}

/// Returns the languages with an unknown result.
fn unknown(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    let unknown = |unsure: &Unsure| {
        let advice = "ask a user with this permission to run otel-webhook check";
        CheckResult::new(Code::NotReadable, unsure.to_string()).about(workload.subject.clone()).advise(advice)
    };
    workload.unsure.iter().map(unknown)
}

/// Returns the warnings about injections.
fn warned(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    let noted = inject::warnings_of(workload.decided()).into_iter().filter(|warning| warning.note.is_some());
    noted.map(|warning| {
        let result = CheckResult::new(Code::InjectedWithWarning, warning.to_string());
        CheckResult { reason: Some(warning.code()), ..result.about(workload.subject.clone()) }
    })
}

/// Returns what keeps running pods from starting or staying, as `status` counts it.
fn failing(workload: &Surveyed) -> impl Iterator<Item = CheckResult> {
    workload.failures.iter().filter(|row| row.is_counted).map(|row| {
        let FailureRow { container, code, message, remedy, kubelet, pods, .. } = row;
        let count = workload.pods.count;
        let said = if kubelet.is_empty() { String::new() } else { format!(" ({kubelet})") };
        let message =
            format!("{pods} of {count} pods fail: {code} of container {container}: {message}{said}");
        let result = CheckResult::new(Code::PodsFailing, message).about(workload.subject.clone());
        CheckResult { reason: Some(code), ..result.advise(remedy.as_str()) }
    })
}

fn not_reviewed(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    if !is_unreviewed(workload, survey, registration) {
        return None;
    }
    let exclusion = exclusion(workload, survey, registration)?;
    let would = injected(workload).join(", ");
    let message = format!("opts in to {would}, but {}", exclusion.cause);
    let result = CheckResult::new(Code::NotReviewed, message).about(workload.subject.clone());
    Some(result.advise(exclusion.advice))
}

/// Returns the webhooks that select a new pod of a workload, in the order of their calls.
pub fn reviewers<'r>(workload: &Surveyed, survey: &Survey, registration: &'r Registration) -> Vec<&'r Hook> {
    let nothing = Labels::new();
    let namespace = survey.namespaces.get(&workload.subject.namespace).unwrap_or(&nothing);
    registration.reviewers(namespace, &workload.labels, !workload.own.is_empty())
}

/// Returns the languages that a new pod gets.
fn injected(workload: &Surveyed) -> Vec<&'static str> {
    let mut languages: Vec<_> =
        workload.decided().iter().filter(|one| one.reason.is_injected()).map(|one| one.language).collect();
    languages.dedup();
    languages
}

/// Returns whether a workload would be injected, but no webhook receives its pods.
fn is_unreviewed(workload: &Surveyed, survey: &Survey, registration: &Registration) -> bool {
    !injected(workload).is_empty()
        && survey.namespaces.contains_key(&workload.subject.namespace)
        && registration.pods().next().is_some()
        && reviewers(workload, survey, registration).is_empty()
}

/// The label that every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// Why no webhook receives the pods of a workload, and what to do.
struct NotSelected {
    cause: String,
    advice: String,
}

/// Returns why none of this webhook's entries for pods selects the pods of a workload. The entry that comes closest
/// counts.
fn exclusion(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<NotSelected> {
    let nothing = Labels::new();
    let namespace = survey.namespaces.get(&workload.subject.namespace).unwrap_or(&nothing);
    let excluded = registration.pods().filter_map(|hook| {
        let exclusion = hook.exclusion(namespace, &workload.labels, !workload.own.is_empty())?;
        Some((hook, exclusion))
    });
    let (hook, exclusion) = excluded.min_by_key(|(_, exclusion)| match exclusion {
        Exclusion::NotAnnotated => 0,
        Exclusion::Object(_) => 1,
        Exclusion::Namespace(_) => 2,
    })?;
    Some(not_selected(&workload.subject, hook, &exclusion))
}

fn not_selected(subject: &Subject, hook: &Hook, exclusion: &Exclusion<'_>) -> NotSelected {
    let (namespace, configuration) = (&subject.namespace, &hook.configuration);
    match exclusion {
        Exclusion::NotAnnotated => NotSelected {
            cause: format!(
                "the match condition of {configuration} excludes pods without their own annotation or label"
            ),
            advice: format!(
                "annotate the pods, in {}: with registration.pods.shape=annotated, neither the annotation of the \
                 namespace nor the selector of an Instrumentation is enough",
                pod_path(&subject.kind, "metadata.annotations")
            ),
        },
        Exclusion::Object(unmet) => {
            let labels = pod_path(&subject.kind, "metadata.labels");
            let change = match unmet.value() {
                Some(value) => format!("set the label {}: {value:?} in {labels}", unmet.key()),
                None => format!("remove the label {} from {labels}", unmet.key()),
            };
            NotSelected {
                cause: format!("the objectSelector of {configuration} does not select its pods: {unmet}"),
                advice: format!("{change}, or change the objectSelector of {configuration}"),
            }
        }
        Exclusion::Namespace(unmet) => {
            let own = match &hook.backend {
                Backend::Service { namespace, .. } => Some(namespace),
                Backend::Url(_) => None,
            };
            let selector = format!("the namespaceSelector of {configuration}");
            let advice = match unmet.value() {
                _ if unmet.key() == NAME && namespace == "kube-system" => {
                    "move it to another namespace: kube-system is excluded so that the pods of the cluster itself \
                     never wait for the webhook"
                        .to_owned()
                }
                _ if unmet.key() == NAME && Some(namespace) == own => {
                    "move it to another namespace: the namespace of the webhook is excluded from injection".to_owned()
                }
                _ if unmet.key() == NAME => format!("change {selector} to include namespace {namespace}"),
                Some(value) => {
                    format!("kubectl label namespace {namespace} {}={value}, or change {selector}", unmet.key())
                }
                None => format!("kubectl label namespace {namespace} {}-, or change {selector}", unmet.key()),
            };
            NotSelected {
                cause: format!("{selector} does not select namespace {namespace}: {unmet}"),
                advice,
            }
        }
    }
}

/// Returns the path of a field of the pod in a workload of a kind.
fn pod_path(kind: &str, field: &str) -> String {
    match kind {
        "Pod" => field.to_owned(),
        "CronJob" => format!("spec.jobTemplate.spec.template.{field}"),
        _ => format!("spec.template.{field}"),
    }
}

/// Adds how to replace the pods of a workload: one rollout, until it is complete; or why that is not advised now.
fn renew(result: CheckResult, workload: &Surveyed) -> CheckResult {
    if let Some(not_advised) = &workload.not_advised {
        return result.advise(&*not_advised.message);
    }
    let commands = commands(workload);
    let advice = commands.first().cloned().unwrap_or_else(|| by_hand(workload));
    CheckResult { commands, ..result.advise(advice) }
}

/// Returns the commands that replace the pods of a workload, none if no command does.
fn commands(workload: &Surveyed) -> Vec<String> {
    let Subject { kind, namespace, name } = &workload.subject;
    match (&**kind, workload.replaced) {
        ("Deployment" | "StatefulSet" | "DaemonSet", Replaced::ByRestart) => {
            let of_kind = format!("{}/{name} -n {namespace}", kind.to_lowercase());
            vec![
                format!("kubectl rollout restart {of_kind}"),
                format!("kubectl rollout status {of_kind} --timeout=15m"),
            ]
        }
        ("Rollout", _) => vec![
            format!("kubectl argo rollouts restart {name} -n {namespace}"),
            format!("kubectl argo rollouts status {name} -n {namespace} --timeout 15m"),
        ],
        _ => Vec::new(),
    }
}

fn by_hand(workload: &Surveyed) -> String {
    let Subject { kind, namespace, name } = &workload.subject;
    match (&**kind, workload.replaced) {
        ("Deployment", _) => {
            format!("it is paused: kubectl rollout resume deployment/{name} -n {namespace}, then restart it")
        }
        ("StatefulSet" | "DaemonSet", _) => {
            "its update strategy is OnDelete: delete its pods one after another".to_owned()
        }
        ("Pod", _) => {
            let again = "kubectl replace --force -f -";
            format!("create it again: kubectl get pod {name} -n {namespace} -o yaml | {again}")
        }
        _ => "delete them one after another, so that their controller creates them again".to_owned(),
    }
}

/// Kinds of workloads with short-lived pods.
const SHORT_LIVED: [&str; 2] = ["Job", "CronJob"];

/// Returns whether the next pods come soon.
fn is_short_lived(workload: &Surveyed) -> bool {
    SHORT_LIVED.contains(&&*workload.subject.kind)
}

/// Returns the number of pods that lack a language.
fn lacking(workload: &Surveyed, language: &str) -> usize {
    let pods = &workload.pods;
    pods.count - pods.with(language).min(pods.count)
}

/// Returns the result for pods without a language that new pods get.
fn without(workload: &Surveyed) -> Option<CheckResult> {
    let lacking: Vec<_> = injected(workload)
        .into_iter()
        .map(|name| (name, lacking(workload, name)))
        .filter(|one| one.1 > 0)
        .collect();
    let most = lacking.iter().map(|(_, count)| *count).max()?;
    let names: Vec<_> = lacking.iter().map(|(name, _)| *name).collect();
    let mut causes: Vec<String> = Vec::new();
    for (language, count) in &lacking {
        for (cause, count) in then(workload, language, *count) {
            let said = format!("{count} {cause}");
            if !causes.contains(&said) {
                causes.push(said);
            }
        }
    }
    let message = format!(
        "{most} of {} pods run without {} ({}); new pods are injected",
        workload.pods.count,
        names.join(", "),
        causes.join(", "),
    );
    let result = CheckResult::new(Code::PodsNotInjected, message).about(workload.subject.clone());
    Some(renew(result, workload))
}

/// Returns why pods lack a language: what their stamps say of their creation.
fn then(workload: &Surveyed, language: &str, lacking: usize) -> Vec<(String, usize)> {
    let skipped = workload.pods.skipped.iter().filter(|((of, _), _)| *of == language);
    let mut causes: Vec<_> =
        skipped.map(|((_, code), count)| (format!("skipped at creation: {code}"), *count)).collect();
    let stamped: usize = causes.iter().map(|(_, count)| count).sum();
    if lacking > stamped {
        causes.push(("not reviewed at creation".to_owned(), lacking - stamped));
    }
    causes
}

/// Returns the result for pods with another version or configuration of an agent than new pods get.
fn outdated(workload: &Surveyed) -> Option<CheckResult> {
    let mut said = Vec::new();
    for language in LANGUAGES.iter().map(|row| row.name) {
        let next = workload.agents.iter().find(|agent| agent.language == language);
        if next.is_none() && !is_none_certain(workload) {
            continue;
        }
        let own = workload.pods.agents_of(language);
        let outdated: Vec<_> = own.filter(|(agent, _)| agent.is_outdated(next)).collect();
        let count: usize = outdated.iter().map(|(_, count)| count).sum();
        if count > 0 {
            let of = format!("{count} of {} pods", workload.pods.count);
            said.push(match next {
                Some(next) => format!("{of} {}", difference(&outdated, next)),
                None => format!("{of} run with {language}; new pods get none"),
            });
        }
    }
    if said.is_empty() {
        return None;
    }
    let result = CheckResult::new(Code::PodsOutdated, said.join("; ")).about(workload.subject.clone());
    Some(renew(result, workload))
}

/// Returns whether new pods certainly get no agent of the other languages. Of an injected pod that shows the template
/// of its workload this is not known.
fn is_none_certain(workload: &Surveyed) -> bool {
    let Next::Decided(findings) = &workload.next else { return false };
    let shows_itself = |finding: &Finding| matches!(finding.reason, Reason::AlreadyInjected { .. });
    workload.unsure.is_empty() && !findings.iter().any(shows_itself)
}

fn difference(outdated: &[(&Agent, usize)], next: &Agent) -> String {
    let mut versions: Vec<_> = outdated.iter().map(|(agent, _)| agent.version()).collect();
    versions.sort_unstable();
    versions.dedup();
    versions.retain(|version| *version != next.version());
    let used = next.origin().instrumentation;
    let mut others: Vec<_> = outdated.iter().map(|(agent, _)| agent.origin().instrumentation).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|name| !name.is_empty() && *name != used);
    if versions.is_empty() && !others.is_empty() {
        return format!(
            "were injected with {} by {}; new pods use {used}",
            next.language,
            others.join(" and "),
        );
    }
    if versions.is_empty() {
        return format!(
            "were injected with {} as its Instrumentation was configured before; new pods get the present \
             configuration",
            next.language
        );
    }
    format!("run with {} {}; new pods get {}", next.language, versions.join(" and "), next.version())
}

/// Returns how many pods opt in and run without an agent, by the cause; none where some of them are not known.
fn without_agent(survey: &Survey, registration: &Registration) -> Option<CheckResult> {
    let unread = &survey.unread;
    let is_unsure = survey.workloads.iter().any(|workload| !workload.unsure.is_empty());
    if is_unsure || unread.namespaces || unread.flags.is_some() || survey.is_registration_unread {
        return None;
    }
    let mut causes: BTreeMap<&'static str, usize> = BTreeMap::new();
    let workloads = survey.workloads.iter().filter(|workload| !is_short_lived(workload));
    for workload in workloads {
        let is_unregistered = registration.pods().chain(&registration.others).next().is_none();
        let to_come = if is_unregistered {
            Code::PodsNotRegistered
        } else if is_unreviewed(workload, survey, registration) {
            Code::NotReviewed
        } else {
            Code::PodsNotInjected
        };
        for (cause, count) in causes_of(workload, to_come) {
            *causes.entry(cause).or_default() += count;
        }
    }
    let all: usize = causes.values().sum();
    if all == 0 {
        return None;
    }
    causes.retain(|_, count| *count > 0);
    let listed: Vec<_> = causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    let noun = if all == 1 { "pod opts in and runs" } else { "pods opt in and run" };
    let message = format!("{all} {noun} without an agent, by cause: {}", listed.join(", "));
    let result = CheckResult::new(Code::PodsWithoutAgent, message);
    Some(CheckResult { details: Some(json!(causes)), ..result.advise("see the findings of the workloads") })
}

/// Returns the causes for which pods of a workload lack an agent: each pod once, for its first language.
fn causes_of(workload: &Surveyed, to_come: Code) -> Vec<(&'static str, usize)> {
    let pods = workload.pods.count;
    if matches!(workload.next, Next::Unreadable(_)) {
        return vec![("Unreadable", pods)];
    }
    let trouble = workload.decided().iter().find(|finding| finding.reason.is_trouble());
    let lacking = |language: &str| lacking(workload, language);
    let injectable = injected(workload).into_iter().map(lacking).max().unwrap_or_default();
    let by_reason = trouble.map(|finding| (finding.reason.code(), lacking(finding.language)));
    let by_creation = (to_come.name(), injectable);
    let has_mistake = workload.mistakes.iter().any(Mistake::is_of_opt_in);
    let mistaken = workload.decided().is_empty() && workload.unsure.is_empty() && has_mistake;
    let injected = workload.pods.agents.keys().map(|agent| workload.pods.with(agent.language)).max();
    let by_mistake = mistaken
        .then_some((Code::AnnotationIgnored.name(), pods.saturating_sub(injected.unwrap_or_default())));
    let all = by_reason.into_iter().chain([by_creation]).chain(by_mistake);
    all.filter(|(_, count)| *count > 0).collect()
}

/// Returns the versions of each language's agents that run, and those that new pods get.
fn versions(survey: &Survey) -> Vec<CheckResult> {
    // The default images are flags.
    if survey.unread.flags.is_some() {
        return Vec::new();
    }
    let mut now: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut next: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for workload in &survey.workloads {
        for (agent, count) in &workload.pods.agents {
            *now.entry((agent.language, agent.version())).or_default() += count;
        }
        for agent in &workload.agents {
            *next.entry((agent.language, agent.version())).or_default() += 1;
        }
    }
    let mut languages: Vec<&str> = now.keys().chain(next.keys()).map(|(language, _)| *language).collect();
    languages.sort_unstable();
    languages.dedup();
    // Languages without an image have no version.
    languages.retain(|language| {
        now.keys().chain(next.keys()).any(|(of, version)| of == language && !version.is_empty())
    });
    languages.into_iter().map(|language| of_language(language, &now, &next)).collect()
}

fn of_language(
    language: &str,
    now: &BTreeMap<(&str, &str), usize>,
    next: &BTreeMap<(&str, &str), usize>,
) -> CheckResult {
    let of = |all: &BTreeMap<(&str, &str), usize>| -> BTreeMap<String, usize> {
        let own = all.iter().filter(|((of, _), _)| *of == language);
        own.map(|((_, version), count)| ((*version).to_owned(), *count)).collect()
    };
    let (now, next) = (of(now), of(next));
    let list = |all: &BTreeMap<String, usize>, noun: &str| {
        let listed: Vec<_> = all
            .iter()
            .map(|(version, count)| {
                format!("{version} ({count} {noun}{})", if *count == 1 { "" } else { "s" })
            })
            .collect();
        if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
    };
    let message = format!("{language} now: {}; in new pods: {}", list(&now, "pod"), list(&next, "workload"));
    let details = json!({"language": language, "now": now, "next": next});
    CheckResult { details: Some(details), ..CheckResult::new(Code::AgentVersions, message) }
}

#[cfg(test)]
mod tests;
