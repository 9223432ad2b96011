//! Questions of platform engineers, each answered within two clicks from the front page.

use super::{
    links::target,
    markdown::{Page, pages},
};

/// A question, the links to follow from the front page, and words of the answer.
type Question = (&'static str, &'static [&'static str], &'static str);

const QUESTIONS: [Question; 13] = [
    ("How do I get a first trace?", &["docs/guides/first-service.md"], "## 6. See that telemetry arrives"),
    ("How do I install it?", &["docs/install.md"], "helm"),
    ("How do I opt a pod in?", &["docs/annotations.md#annotations"], "instrumentation.opentelemetry.io/"),
    (
        "Why was my pod not injected?",
        &["docs/troubleshooting.md#where-to-look", "docs/reference/reasons.md"],
        "AmbiguousInstrumentation",
    ),
    ("It was injected, and there is no data. Why?", &["docs/troubleshooting.md#no-data"], "endpoint"),
    (
        "What happens to pods while the webhook is down?",
        &["docs/concepts/failure-modes.md"],
        "created without an agent (`Ignore`)",
    ),
    ("Which running pods still have an earlier agent?", &["docs/day-two.md#states"], "| `stale` |"),
    (
        "How do I move over from the OpenTelemetry Operator, and what changes?",
        &["docs/migration.md", "docs/injection.md#differences-from-the-operator"],
        "D1",
    ),
    ("Which permissions does it have?", &["docs/reference/rbac.md"], "mutatingwebhookconfigurations"),
    ("How is the certificate issued and renewed?", &["docs/concepts/certificates.md"], "who rotates"),
    ("An agent harms pods. How do I stop injection now?", &["docs/pause.md"], "otel-webhook/paused=true"),
    ("An alert fires. What do I do?", &["docs/runbook.md#alerts"], "### OtelWebhookFailingOpen"),
    (
        "How do I keep one tenant out of the Instrumentations of another?",
        &["docs/guides/tenants.md"],
        "injection.crossNamespace",
    ),
];

#[test]
fn questions_are_answered_within_two_clicks() {
    let pages = pages();
    let page = |path: &str| pages.iter().find(|page| page.path == path).expect("a page");
    for (question, clicks, words) in QUESTIONS {
        assert!(clicks.len() <= 2, "{question}: more than two clicks");
        let mut now = page("docs/README.md");
        for click in clicks {
            let links = now.links.iter().filter_map(|link| target(now, link));
            let leads =
                |(file, anchor): (std::path::PathBuf, String)| joined(&file.display().to_string(), &anchor);
            assert!(
                links.map(leads).any(|link| link == *click),
                "{question}: {} does not link {click}",
                now.path
            );
            now = page(click.split('#').next().unwrap_or_default());
        }
        let last = clicks.last().expect("a click");
        let answer = section(now, last.split_once('#').map(|parts| parts.1));
        assert!(answer.contains(words), "{question}: {last} does not say {words:?}");
    }
}

fn joined(file: &str, anchor: &str) -> String {
    if anchor.is_empty() { file.to_owned() } else { format!("{file}#{anchor}") }
}

/// The page from the heading on, or all of it.
fn section<'p>(page: &'p Page, anchor: Option<&str>) -> &'p str {
    let Some(anchor) = anchor else { return &page.text };
    let place = page.anchors.iter().position(|one| one == anchor).expect("the heading");
    let headings = page.text.match_indices("\n#").map(|(start, _)| start);
    // The first heading of a page has no line before it.
    headings.into_iter().nth(place.saturating_sub(1)).map_or(&page.text, |start| &page.text[start..])
}
