//! `check --preview`: lists the running workloads with what is injected now, and into new pods.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    requests::reviewers,
    survey::{Next, Survey, Surveyed},
};
use crate::output;
use otel_webhook_fleet::injected::By;
use otel_webhook_inject::{Finding, Note, language::LANGUAGES, warnings_of};
use otel_webhook_review::one_line;
use otel_webhook_server::registration::Registration;
use otel_webhook_store::unread::Unsure;

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
            let warnings = warnings_of(findings).into_iter().filter(|warning| warning.note.is_some());
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
mod tests {
    use super::*;
    use crate::check::{
        registration::tests::{operator, registration},
        survey::{
            Pods,
            tests::{SurveyedBuilder, seen},
        },
    };
    use otel_webhook_api::{
        defaults::{DefaultImages, JAVA},
        image::Stored,
    };
    use otel_webhook_fleet::injected::Agent;
    use otel_webhook_inject::reason::{ObjectName, Reason, Sign};

    /// The warning of `SurveyedBuilder::warned`.
    const WARNING: &str =
        "OTEL_EXPORTER_OTLP_ENDPOINT is \"c:4317\", without a scheme; set it to http://c:4317";

    fn none() -> Reason {
        Reason::NoInstrumentation {
            namespace: "shop".to_owned(),
            advice: "create one, or name one as namespace/name",
        }
    }

    fn already() -> Reason {
        Reason::AlreadyInjected { sign: Sign::Container("c".to_owned()) }
    }

    /// An agent by the operator.
    fn agent(image: &str) -> Agent {
        Agent {
            language: "java",
            by: By::Operator,
            instrumentation: None,
            hash: None,
            image: Some(image.into()),
        }
    }

    fn all() -> SurveyedBuilder {
        let same = seen("Deployment", "shop", "same").pods(2).has("java", 2).asks("java", Reason::Injected);
        let changed = seen("Deployment", "shop", "changed").pods(2).asks("java", Reason::Injected);
        same.and(changed.agent(agent("java:2"), &[(agent("java:1"), 2)]))
            .and(seen("StatefulSet", "shop", "added").pods(1).asks("java", Reason::Injected))
            .and(seen("DaemonSet", "shop", "removed").pods(3).has("go", 3).asks("go", none()).collector())
            .and(seen("Pod", "shop", "kept").pods(1).has("java", 1).asks("java", already()))
            .and(seen("CronJob", "shop", "later").asks("java", Reason::Injected))
            .and(seen("CloneSet", "shop", "hidden").pods(1).has("java", 1).unknown())
            .and(seen("Job", "shop", "vain").pods(1).asks("java", none()))
            .and(seen("Job", "shop", "silent").pods(1))
    }

    #[test]
    fn each_change_has_a_name() {
        let survey = all().survey();
        let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
        let objects: Vec<_> = objects(&survey, Some(&registration)).collect();
        let change = |name: &str| {
            let found = objects.iter().find(|object| object["name"] == name).expect(name);
            found["languages"][0]["change"].as_str().map(str::to_owned)
        };
        for (name, word) in [
            ("same", "same"),
            ("changed", "changed"),
            ("added", "added"),
            ("removed", "removed"),
            ("kept", "same"),
            ("later", "unknown"),
            ("hidden", "unknown"),
            ("vain", "none"),
        ] {
            assert_eq!(change(name).as_deref(), Some(word), "{name}");
        }
        assert_eq!(change("silent"), None);
    }

    #[test]
    fn an_object_has_all_fields() {
        let changed = seen("Deployment", "shop", "order").pods(2).asks("java", Reason::Injected);
        let changed = changed.agent(agent("java:2"), &[(agent("java:1"), 1)]);
        let survey = changed.warned().asks("go", none()).collector().survey();
        let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
        let object = objects(&survey, Some(&registration)).next().expect("one");
        let reason = "go: there is no Instrumentation in namespace \"shop\" and no default is set; create one, or \
                      name one as namespace/name";
        let now = |operator: usize| json!({"otel-webhook": 0, "operator": operator});
        let expected = json!({
            "kind": "Deployment", "namespace": "shop", "name": "order", "pods": 2,
            "reviewedBy": ["a-operator", "otel-webhook"], "collector": true,
            "languages": [
                {"language": "java", "now": now(1), "next": "Injected", "containers": ["app"],
                 "instrumentation": null, "reasons": [], "warnings": [WARNING], "notes": [], "change": "changed",
                 "agents": {"now": {"java:1": 1}, "next": "java:2"}},
                {"language": "go", "now": now(0), "next": "NoInstrumentation", "containers": [],
                 "instrumentation": null, "reasons": [reason], "warnings": [], "notes": [], "change": "none",
                 "agents": {"now": {}, "next": null}},
            ],
            "problem": null,
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn the_table_has_a_row_per_workload_and_reasons_below() {
        let warned = seen("Deployment", "shop", "warned").asks("java", Reason::Injected).warned();
        let odd = seen("Deployment", "shop", "odd").unreadable("no list");
        let text = text(&all().and(odd).and(warned).survey());
        let warning = format!("  Deployment shop/warned: java in app: {WARNING}");
        for line in [
            &*warning,
            "shop       Deployment/changed  2     java      operator 2/2  app",
            "shop       DaemonSet/removed   3     go        operator 3/3  NoInstrumentation",
            "shop       CloneSet/hidden     1     java      operator 1/1  unknown",
            "shop       Job/silent          1     -         -             -",
            "shop       Deployment/odd      0     -         -             unreadable",
            "  Deployment shop/odd: the pod cannot be read: no list",
            "  CloneSet shop/hidden: unknown, since its pods are already injected and its template cannot be read",
            "Into these, the operator injects a collector sidecar, and continues to:",
            "  DaemonSet shop/removed",
            "11 workloads with their next pods: 1 removed, 1 added, 1 changed, 3 unknown, 2 same, 3 none",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
        }
        assert_eq!(super::text(&Survey::default()), "There are no workloads.\n");
    }

    #[test]
    fn kept_and_replaced_images_are_reported() {
        let stored = Stored { image: Some("own:1"), recorded: Some("own:1"), is_blocked: false };
        let choice = DefaultImages::default().choose(&JAVA, stored);
        let said = choice.to_string();
        let kept =
            seen("Deployment", "shop", "kept").asks("java", Reason::Injected).notes(Note::Image(choice));
        let survey = kept.survey();
        let line = format!("  Deployment shop/kept: java: {said}");
        let text = text(&survey);
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
        let registration = registration(&[operator("a-operator", json!({}))], |_, _| ());
        let object = objects(&survey, Some(&registration)).next().expect("one");
        assert_eq!(object["languages"][0]["notes"], json!([said]));
    }

    #[test]
    fn what_is_not_readable_is_unknown_and_not_missing() {
        let hidden = seen("Deployment", "shop", "order").pods(2).has("java", 2).unsure("java");
        let mut survey = hidden.survey();
        let object = objects(&survey, None).next().expect("one");
        assert_eq!(object["reviewedBy"], json!(null));
        let java = &object["languages"][0];
        assert_eq!((&java["next"], &java["change"]), (&json!("NotReadable"), &json!("unknown")), "{java}");
        let expected = "java: unknown, since the Instrumentations of namespace \"ta\" are not readable by you (list \
                        instrumentations in ta)";
        assert_eq!(java["reasons"], json!([expected]));
        let report = text(&survey);
        assert!(report.contains(&format!("  Deployment shop/order: {expected}\n")), "{report}");

        survey.workloads[0].pods = Pods { is_unknown: true, ..Pods::default() };
        assert!(
            text(&survey).contains("Deployment/order  ?     java      -    NotReadable"),
            "{}",
            text(&survey)
        );
        assert_eq!(objects(&survey, None).next().expect("one")["pods"], json!(null));
    }

    #[test]
    fn what_selectors_opt_in_is_counted() {
        let name = ObjectName { namespace: "shop".into(), name: "java".into() };
        let note = || Note::OptedInBySelector { name: name.clone() };
        let survey = seen("Deployment", "shop", "order")
            .pods(2)
            .asks("java", Reason::Injected)
            .notes(note())
            .and(seen("DaemonSet", "shop", "log").pods(3).asks("java", Reason::Injected).notes(note()))
            .and(seen("Deployment", "shop", "cart").pods(4).asks("java", Reason::Injected))
            .survey();
        let text = text(&survey);
        assert!(
            text.ends_with("\nInjected by selectors, without an annotation: workloads 2, pods 5\n"),
            "{text}"
        );
        let line = "Deployment shop/order: java: opted in by the selector of Instrumentation \"shop/java\"";
        assert!(text.contains(line), "{text}");
        let object = objects(&survey, None).next().expect("one");
        assert_eq!(object["languages"][0]["notes"], json!([note().to_string()]));
    }
}
