//! `check --preview`: lists the running workloads with what is injected now, and into new pods.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    requests::reviewers,
    survey::{Next, Survey, Surveyed},
};
use crate::registration::Registration;
use crate::{cli::output, unread::Unsure};
use otel_webhook_fleet::injected::By;
use otel_webhook_inject::{Finding, Note, language::LANGUAGES, told};
use otel_webhook_review::one_line;

/// The column headers.
const COLUMNS: [&str; 6] = ["NAMESPACE", "WORKLOAD", "PODS", "LANGUAGE", "NOW", "NEXT"];

/// The result of a language that depends on something that the user may not read.
const NOT_READABLE: &str = "NotReadable";

/// How a language changes with the next pod of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It is injected now, and will be in the same way.
    Same,
    /// It is injected now, and will be by another version or configuration of the agent.
    Changed,
    /// It is not injected now, and will be.
    Added,
    /// It is injected now, and will not be.
    Removed,
    /// It is not injected now, and will not be.
    None,
    /// Unknown, since the workload has no pods or its template is not known.
    Unknown,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// One language of one workload.
struct Row<'s> {
    workload: &'s Surveyed,
    language: &'static str,
    /// The findings about the next pod; none if it does not opt in, or is not known.
    next: Vec<&'s Finding>,
    /// What the result depends on and the user may not read.
    unsure: Option<&'s Unsure>,
}

/// Returns the preview as text: a table, reasons and warnings.
pub fn text(survey: &Survey) -> String {
    if survey.workloads.is_empty() {
        return "There are no workloads.\n".to_owned();
    }
    let rows = survey.workloads.iter().flat_map(|workload| {
        let rows = rows(workload);
        let lines: Vec<_> = if rows.is_empty() {
            vec![cells(workload, ["-", "-", next_word(workload)].map(str::to_owned))]
        } else {
            rows.iter().map(|row| cells(workload, row.cells())).collect()
        };
        lines
    });
    let mut lines = output::table(COLUMNS, rows);
    section(&mut lines, "Reasons and warnings:", survey.workloads.iter().flat_map(reasons));
    let collectors = survey.workloads.iter().filter(|workload| workload.collector == Some(true));
    section(
        &mut lines,
        "Into these, the operator injects a collector sidecar, and continues to:",
        collectors.map(title),
    );
    lines.push(String::new());
    lines.push(summary(survey));
    lines.extend(opted_in(survey));
    lines.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
}

/// Returns the preview as JSON, with one object per workload.
/// `registration` is none if the user may not read it.
pub fn objects<'s>(
    survey: &'s Survey,
    registration: Option<&'s Registration>,
) -> impl Iterator<Item = Value> + 's {
    let registration = registration.filter(|_| !survey.unread.namespaces);
    survey.workloads.iter().map(move |workload| {
        let reviewed_by = registration.map(|registration| {
            let hooks = reviewers(workload, survey, registration).into_iter();
            hooks.map(|hook| &hook.configuration).collect::<Vec<_>>()
        });
        let problem = match &workload.next {
            Next::Unreadable(problem) => Some(problem),
            Next::Decided(_) | Next::Unknown => None,
        };
        json!({
            "kind": workload.subject.kind,
            "namespace": workload.subject.namespace,
            "name": workload.subject.name,
            "pods": count(workload),
            "reviewedBy": reviewed_by,
            "collector": workload.collector == Some(true),
            "languages": rows(workload).iter().map(Row::object).collect::<Vec<_>>(),
            "problem": problem,
        })
    })
}

/// Returns the number of pods, if it is known.
fn count(workload: &Surveyed) -> Option<usize> {
    (!workload.pods.is_unknown).then_some(workload.pods.count)
}

/// Returns the languages that a workload has or opts in to, in the order of the language table.
fn rows(workload: &Surveyed) -> Vec<Row<'_>> {
    let findings: &[Finding] = match &workload.next {
        Next::Decided(findings) => findings,
        Next::Unreadable(_) | Next::Unknown => &[],
    };
    let row = |language: &'static str| {
        let next: Vec<_> = findings.iter().filter(|finding| finding.language == language).collect();
        let unsure = workload.unsure.iter().find(|unsure| unsure.language == language);
        let is_there = !next.is_empty() || unsure.is_some() || workload.pods.with(language) > 0;
        is_there.then_some(Row { workload, language, next, unsure })
    };
    LANGUAGES.iter().filter_map(|language| row(language.name)).collect()
}

impl Row<'_> {
    fn is_injected(&self) -> bool {
        self.next.iter().any(|finding| finding.reason.is_injected())
    }

    /// Returns whether a pod is not recreated by a controller.
    fn stays(&self) -> bool {
        self.next.iter().any(|finding| finding.reason.code() == "AlreadyInjected")
    }

    /// Returns whether pods have the agent in another version or configuration than a new pod gets it.
    fn is_outdated(&self) -> bool {
        let next = self.workload.agents.iter().find(|agent| agent.language == self.language);
        let mut own = self.workload.pods.agents_of(self.language);
        next.is_some() && own.any(|(agent, _)| agent.is_outdated(next))
    }

    fn change(&self) -> Change {
        let (has, pods) = (self.workload.pods.with(self.language), self.workload.pods.count);
        match (&self.workload.next, has > 0, self.is_injected()) {
            (Next::Unknown | Next::Unreadable(_), ..) => Change::Unknown,
            _ if self.unsure.is_some() || self.workload.pods.is_unknown => Change::Unknown,
            (_, _, true) if pods == 0 => Change::Unknown,
            (_, false, true) => Change::Added,
            (_, true, true) if self.is_outdated() => Change::Changed,
            (_, true, true) => Change::Same,
            (_, true, false) if self.stays() => Change::Same,
            (_, true, false) => Change::Removed,
            (_, false, false) => Change::None,
        }
    }

    fn cells(&self) -> [String; 3] {
        [self.language.to_owned(), self.now(), self.next()]
    }

    fn now(&self) -> String {
        let pods = &self.workload.pods;
        let by = pods.by(self.language).into_iter();
        let said: Vec<_> = by.map(|(by, count)| format!("{} {count}/{}", by.word(), pods.count)).collect();
        if said.is_empty() { "-".to_owned() } else { said.join(", ") }
    }

    fn next(&self) -> String {
        if self.unsure.is_some() {
            return NOT_READABLE.to_owned();
        }
        if !self.is_injected() {
            return self
                .next
                .first()
                .map_or(next_word(self.workload), |finding| finding.reason.code())
                .to_owned();
        }
        let mut injected = self.next.iter().filter(|finding| finding.reason.is_injected());
        let containers: Vec<_> = injected.clone().filter_map(|one| one.container.as_deref()).collect();
        let used = injected.find_map(|one| one.instrumentation.as_ref());
        let by = used.map(|used| format!(" by {used}")).unwrap_or_default();
        format!("{}{by}", containers.join(","))
    }

    fn object(&self) -> Value {
        let by = self.workload.pods.by(self.language);
        let count = |injector: By| by.get(&injector).copied().unwrap_or_default();
        let injected = self.next.iter().find(|finding| finding.reason.is_injected());
        let outcome = injected.or(self.next.first()).map(|finding| finding.reason.code());
        let outcome = outcome.or(self.unsure.map(|_| NOT_READABLE));
        let containers = self.next.iter().filter(|finding| finding.reason.is_injected());
        let used = injected.and_then(|finding| finding.instrumentation.as_ref());
        let others = self.next.iter().filter(|finding| !finding.reason.is_injected());
        let unsure = self.unsure.map(ToString::to_string);
        let all = self.next.iter().flat_map(|finding| &finding.notes);
        let warnings = all.filter(|note| note.is_warning());
        let notes = self.next.iter().copied().flat_map(told_notes);
        json!({
            "language": self.language,
            "now": {By::Webhook.word(): count(By::Webhook), By::Operator.word(): count(By::Operator)},
            "next": outcome,
            "containers": containers.filter_map(|finding| finding.container.as_ref()).collect::<Vec<_>>(),
            "instrumentation": used.map(ToString::to_string),
            "warnings": warnings.map(ToString::to_string).collect::<Vec<_>>(),
            "reasons": others.map(ToString::to_string).chain(unsure).collect::<Vec<_>>(),
            "notes": notes.map(ToString::to_string).collect::<Vec<_>>(),
            "change": self.change().word(),
            "agents": self.agents(),
        })
    }
}

impl Row<'_> {
    /// Returns the images of the agents: of the running pods with their number, and of the next pod.
    fn agents(&self) -> Value {
        let mut now: BTreeMap<&str, usize> = BTreeMap::new();
        for (agent, count) in self.workload.pods.agents_of(self.language) {
            *now.entry(agent.image.as_deref().unwrap_or_default()).or_default() += count;
        }
        let next = self.workload.agents.iter().find(|agent| agent.language == self.language);
        json!({"now": now, "next": next.map(|agent| agent.image.as_deref().unwrap_or_default())})
    }
}

/// Returns the text for workloads without findings.
fn next_word(workload: &Surveyed) -> &'static str {
    match &workload.next {
        Next::Decided(_) => "-",
        Next::Unreadable(_) => "unreadable",
        Next::Unknown => "unknown",
    }
}

fn cells(workload: &Surveyed, [language, now, next]: [String; 3]) -> [String; 6] {
    let subject = &workload.subject;
    [
        subject.namespace.clone(),
        format!("{}/{}", subject.kind, subject.name),
        count(workload).map_or_else(|| "?".to_owned(), |count| count.to_string()),
        language,
        now,
        next,
    ]
}

fn title(workload: &Surveyed) -> String {
    workload.subject.to_string()
}

/// Returns a line for each skipped language, for each default image that is kept or replaced, and for each warning.
fn reasons(workload: &Surveyed) -> Vec<String> {
    match &workload.next {
        Next::Decided(findings) => {
            let reasons = findings.iter().filter(|finding| !finding.reason.is_injected());
            let images = findings
                .iter()
                .flat_map(|finding| told_notes(finding).map(|note| format!("{}: {note}", finding.language)));
            let warnings = told(findings).into_iter().filter(|warning| warning.note.is_some());
            let warnings = warnings.map(|warning| warning.to_string());
            let unsure = workload.unsure.iter().map(ToString::to_string);
            let said = reasons.map(ToString::to_string).chain(unsure).chain(images).chain(warnings);
            said.map(|sentence| format!("{}: {sentence}", title(workload))).collect()
        }
        Next::Unreadable(problem) => vec![format!("{}: the pod cannot be read: {problem}", title(workload))],
        Next::Unknown => {
            vec![format!(
                "{}: unknown, since its pods are already injected and its template cannot be read",
                title(workload)
            )]
        }
    }
}

/// Returns the notes about default images, and about the selector that opts in.
fn told_notes(finding: &Finding) -> impl Iterator<Item = &Note> {
    let is_told =
        |note: &&Note| matches!(note, Note::Image(_) | Note::ImageOfNamespace { .. }) || is_opt_in(note);
    finding.notes.iter().filter(is_told)
}

fn is_opt_in(note: &Note) -> bool {
    matches!(note, Note::OptedInBySelector { .. })
}

/// Returns how many workloads and pods a selector opts in that will be injected; none if there are none.
fn opted_in(survey: &Survey) -> Option<String> {
    let is_opted_in = |workload: &&Surveyed| {
        let findings = rows(workload).into_iter().flat_map(|row| row.next);
        findings.into_iter().any(|one| one.reason.is_injected() && one.notes.iter().any(is_opt_in))
    };
    let opted_in: Vec<_> = survey.workloads.iter().filter(is_opted_in).collect();
    let pods: usize = opted_in.iter().filter_map(|workload| count(workload)).sum();
    (!opted_in.is_empty()).then(|| {
        format!("Injected by selectors, without an annotation: workloads {}, pods {pods}", opted_in.len())
    })
}

fn section(lines: &mut Vec<String>, head: &str, said: impl Iterator<Item = String>) {
    let said: Vec<_> = said.map(|line| format!("  {line}")).collect();
    if !said.is_empty() {
        lines.extend([String::new(), head.to_owned()]);
        lines.extend(said);
    }
}

/// Returns how many workloads have which change; for several languages, the first in the order below.
fn summary(survey: &Survey) -> String {
    let order =
        [Change::Removed, Change::Added, Change::Changed, Change::Unknown, Change::Same, Change::None];
    let of = |workload: &Surveyed| {
        let changes: Vec<_> = rows(workload).iter().map(Row::change).collect();
        order.into_iter().find(|change| changes.contains(change)).unwrap_or(Change::None)
    };
    let all: Vec<Change> = survey.workloads.iter().map(of).collect();
    let counts =
        order.map(|change| format!("{} {}", all.iter().filter(|one| **one == change).count(), change.word()));
    format!("{} workloads with their next pods: {}", all.len(), counts.join(", "))
}

#[cfg(test)]
mod tests;
