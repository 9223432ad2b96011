//! What to do: why pods are not selected, and how pods are replaced.

use super::super::{
    result::CheckResult,
    survey::{Replaced, Survey, Surveyed},
};
use crate::registration::{Backend, Exclusion, Hook, Labels, Registration};
use crate::subject::Subject;

/// The label that every namespace has.
const NAME: &str = "kubernetes.io/metadata.name";

/// Why no webhook receives the pods of a workload, and what to do.
pub struct NotSelected {
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub advice: String,
}

/// Returns why none of this webhook's entries for pods selects the pods of a workload. The entry that comes closest
/// counts.
pub fn exclusion(workload: &Surveyed, survey: &Survey, registration: &Registration) -> Option<NotSelected> {
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
                "the match condition of {configuration} excludes pods without an annotation or label of their own"
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
                    "move it to another namespace: kube-system is left out so that the pods of the cluster itself \
                     never wait for the webhook"
                        .to_owned()
                }
                _ if unmet.key() == NAME && Some(namespace) == own => {
                    "move it to another namespace: the webhook does not review the pods of its own".to_owned()
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
pub fn pod_path(kind: &str, field: &str) -> String {
    match kind {
        "Pod" => field.to_owned(),
        "CronJob" => format!("spec.jobTemplate.spec.template.{field}"),
        _ => format!("spec.template.{field}"),
    }
}

/// Adds how to replace the pods of a workload: one rollout, until it is complete.
pub fn renew(result: CheckResult, workload: &Surveyed) -> CheckResult {
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
