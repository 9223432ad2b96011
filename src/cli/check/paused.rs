//! Reports what pauses injection, before everything else.

use super::result::{CheckResult, Code};
use crate::subject::Subject;
use otel_webhook_inject::{pause::Pause, reason::ObjectName};

/// Returns a result for each object that pauses injection.
pub fn results(pauses: &[Pause]) -> Vec<CheckResult> {
    pauses.iter().map(result).collect()
}

fn result(pause: &Pause) -> CheckResult {
    let message = format!(
        "injection is paused: {} start without agents, and no workload of them is restarted",
        pause.pods()
    );
    let advice = format!(
        "to resume: {}; the agents of running pods stay, and otel-webhook status prints the commands that remove them",
        pause.resume_command()
    );
    CheckResult::new(Code::InjectionPaused, message).advise(advice).about(subject(pause))
}

fn subject(pause: &Pause) -> Subject {
    match pause {
        Pause::Release(name) | Pause::Namespace(name) => Subject::new("Namespace", "", name),
        Pause::Lease(ObjectName { namespace, name }) => Subject::new("Lease", namespace, name),
        Pause::Instrumentation(ObjectName { namespace, name }) => {
            Subject::new("Instrumentation", namespace, name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_named_with_the_command_that_resumes() {
        let name = || ObjectName { namespace: "shop".into(), name: "java".into() };
        let pauses = [Pause::Release("home".into()), Pause::Lease(name()), Pause::Instrumentation(name())];
        let lines: Vec<_> = results(&pauses).iter().map(CheckResult::line).collect();
        for (line, (subject, pods, target)) in lines.iter().zip([
            ("Namespace home", "all pods", "namespace home"),
            ("Lease shop/java", "all pods", "leases.coordination.k8s.io java -n shop"),
            (
                "Instrumentation shop/java",
                "the pods that would use it",
                "instrumentations.opentelemetry.io java -n shop",
            ),
        ]) {
            let expected = format!(
                "warning  paused        {subject}: injection is paused: {pods} start without agents, and no workload of \
                 them is restarted; to resume: kubectl annotate {target} otel-webhook/paused-; "
            );
            assert!(line.starts_with(&expected), "{line}");
        }
    }
}
