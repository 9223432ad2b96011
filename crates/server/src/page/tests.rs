use otel_webhook_fleet::{
    advice::{NotAdvised, Outside},
    report::{DataRow, LanguageRow, PauseRow, PausedRow, RestartRow, WorkloadRow, WorstWorkload},
    silent::{Likely, Step},
    state::State,
    workload::Workload,
};
use otel_webhook_inject::{pause::Pause, reason::Silent};
use otel_webhook_testkit::reports::{self, counts, covered, failing, failure};

use super::{
    policy::{SCRIPT, STYLE},
    rows::{ClusterRow, InstrumentationRow},
    *,
};

fn language(state: State, reason: Option<&'static str>) -> LanguageRow {
    let message = format!("a sentence about {}", reason.unwrap_or_default());
    let images = vec![("java:1".to_owned(), 1), ("java:2".to_owned(), 1)];
    LanguageRow { images, ..reports::language("java", &[(state, 2)], reason.map(|code| (code, &*message))) }
}

fn workload(kind: &str, name: &str, languages: Vec<LanguageRow>) -> WorkloadRow {
    reports::workload(kind, "shop", name, languages)
}

fn cluster(name: &str, workloads: Vec<WorkloadRow>) -> ClusterReport {
    let incomplete = vec![format!("something of {name}")];
    ClusterReport { incomplete, ..reports::cluster(name, workloads) }
}

/// Returns the rows of the table of workloads, each without its tags.
fn shown(clusters: &[ClusterReport]) -> Vec<String> {
    let html = page(clusters);
    let (_, table) = html.split_once("id=\"rows\"").expect("the table");
    let (_, body) = table.split_once("<tbody>").expect("its body");
    let (body, _) = body.split_once("</tbody>").expect("its end");
    texts(body).collect()
}

/// Returns rows without their tags.
fn texts(rows: &str) -> impl Iterator<Item = String> {
    let tags = regex::Regex::new("(<[^>]*>)+").expect("an expression");
    let rows = rows.split("</tr>").map(move |row| tags.replace_all(row.trim(), "|").into_owned());
    rows.filter(|row| row.len() > 1)
}

#[test]
fn a_row_has_everything_about_a_language() {
    let mut two = language(State::Stale, Some("ConfigurationChanged"));
    two.pods.add(State::Injected);
    let rows = shown(&[cluster("one", vec![workload("Deployment", "order", vec![two])])]);
    assert_eq!(
        rows,
        ["|shop|Deployment/order|java|stale|2 stale, 1 injected|java:1 (1)|java:2 (1)\
          |ConfigurationChanged| a sentence about ConfigurationChanged|2026-06-30 08:15\
          |kubectl rollout restart deployment/order -n shop|"]
    );
}

#[test]
fn coverage_is_that_of_the_cluster_its_teams_and_its_namespaces() {
    let mut report = cluster("one", Vec::new());
    report.report.coverage = vec![
        covered("cart", Some("sales"), [300, 200, 199]),
        covered("order", Some("sales"), [1, 1, 1]),
        covered("tools", None, [3, 0, 0]),
    ];
    let html = page(&[report]);
    let (_, table) = html.split_once("id=\"coverage\"").expect("the table");
    let rows: Vec<_> = texts(table.split("</table>").next().expect("its end")).skip(1).collect();
    assert_eq!(
        rows,
        [
            "|all namespaces|304|201|200|99 %|65 %|",
            "|team sales|301|201|200|99 %|66 %|",
            "|namespace cart|300|200|199|99 %|66 %|",
            "|namespace order|1|1|1|100 %|100 %|",
            "|namespace tools|3|0|0|–|0 %|",
        ]
    );
}

#[test]
fn stopped_restarts_are_said_first_and_once() {
    let stopped = |name: &str| {
        let mut row =
            workload("Deployment", name, vec![language(State::Stale, Some("ConfigurationChanged"))]);
        let message = "stopped by pod <cart-1>".to_owned();
        row.restart = Some(RestartRow { code: "RestartStopped".to_owned(), message });
        row
    };
    let mut report = cluster("one", vec![stopped("order"), stopped("cart")]);
    report.report.withhold(&Outside::default());
    let html = page(&[report]);
    let banner = "<h2 id=\"stopped\">Restarts are stopped</h2><ul class=\"paused\"><li>stopped by pod &lt;cart-1&gt;</li></ul>";
    assert_eq!(html.matches(banner).count(), 1, "{html}");
    assert!(html.find(banner) < html.find("id=\"clusters\""));
    assert!(!page(&[cluster("one", Vec::new())]).contains("Restarts are stopped"));
}

#[test]
fn a_row_has_what_fails_in_its_language() {
    let order = workload("Deployment", "order", vec![language(State::Injected, None)]);
    let order = failing(order, failure("java", "app", "OOMKilled", true));
    let report = cluster("one", vec![order]);
    let rows = shown(std::slice::from_ref(&report));
    assert!(rows[0].contains("|2 failing|"), "{rows:?}");
    assert!(
        rows[0].contains("|OOMKilled| container app: what it means (&lt;said&gt;\\nby a kubelet)|"),
        "{rows:?}"
    );
    assert!(rows[0].ends_with("|what to do|"), "{rows:?}");
    assert!(page(&[report]).contains("data-values=\"injected failing\""));
}

#[test]
fn a_row_says_how_many_pods_are_heard_and_why_others_are_silent() {
    let mut java = language(State::Injected, None);
    (java.pods.heard, java.pods.silent) = (Some(1), Some(1));
    let cause = Silent::SdkDisabled { container: "<app>".to_owned() };
    let cause = Some(Likely { step: Step::Exported, cause });
    java.data = Some(DataRow { heard: 1, silent: 1, unknown: 0, since: None, why: None, cause });
    let mut report = cluster("one", vec![workload("Deployment", "order", vec![java])]);
    let rows = shown(std::slice::from_ref(&report));
    assert!(rows[0].contains("|1 heard, 1 silent|"), "{rows:?}");
    assert!(
        rows[0].contains("|SdkDisabled| OTEL_SDK_DISABLED of container &quot;&lt;app&gt;&quot; is true"),
        "{rows:?}"
    );
    assert!(
        rows[0].ends_with("|remove the variable from the container, or from the Instrumentation|"),
        "{rows:?}"
    );
    assert!(page(std::slice::from_ref(&report)).contains("data-values=\"injected silent\""));
    let mut pods = counts(&[(State::Injected, 2)]);
    (pods.heard, pods.silent) = (Some(1), Some(1));
    let row = otel_webhook_fleet::report::InstrumentationRow { pods, ..Default::default() };
    report.report.instrumentations = vec![row];
    let html = page(&[report]);
    assert!(html.contains(">heard</th>") && html.contains(">silent</th>"), "{html}");
    assert!(!page(&[cluster("one", Vec::new())]).contains(">heard</th>"), "without a source");
}

#[test]
fn each_row_says_what_to_do() {
    let order = "kubectl rollout restart deployment/order -n shop";
    for (kind, state, reason, expected) in [
        ("Deployment", State::Missed, Some("Unknown"), order),
        ("Deployment", State::Stale, Some("ConfigurationChanged"), order),
        ("Deployment", State::Missed, Some("NotSelected"), "first let the webhook receive its pods"),
        ("Job", State::Stale, Some("ConfigurationChanged"), "pods of a run are not replaced"),
        ("Deployment", State::Foreign, Some("OtherInjector"), ""),
        ("Deployment", State::Injected, None, ""),
    ] {
        let rows = shown(&[cluster("one", vec![workload(kind, "order", vec![language(state, reason)])])]);
        let (_, to_do) = rows[0].split_once("08:15|").expect("the last column");
        assert!(
            to_do.starts_with(expected) && to_do.is_empty() == expected.is_empty(),
            "{kind}, {state:?}: {to_do}"
        );
    }
}

#[test]
fn a_pause_is_said_first_and_no_row_has_a_command_that_would_remove_agents() {
    let mut order =
        workload("Deployment", "order", vec![language(State::Stale, Some("ConfigurationChanged"))]);
    order.paused = Some(PausedRow { by: "Namespace shop".to_owned(), command: order.command.take() });
    let pause = Pause::Namespace("shop".into());
    order.not_advised = Some(NotAdvised::paused(&pause));
    let mut report = cluster("one", vec![order]);
    report.report.paused = vec![PauseRow::from(&pause)];
    let html = page(std::slice::from_ref(&report));
    let (before, after) = html.split_once("Injection is paused").expect("it is said");
    assert!(before.ends_with("<main><h2 id=\"paused\">"), "{before}");
    let said = "<li>Namespace shop: its pods start without agents; to resume: <code>kubectl annotate namespace shop \
                otel-webhook/paused-</code></li>";
    assert!(after.contains(said), "{after}");
    let rows = shown(&[report]);
    assert!(
        rows[0]
            .ends_with("|wait: injection is paused by Namespace shop, so a restart would remove the agent|"),
        "{rows:?}"
    );
    assert!(!page(&[cluster("one", Vec::new())]).contains("id=\"paused\""));
}

#[test]
fn the_command_of_a_workload_stands_only_at_languages_that_it_helps() {
    let languages = vec![language(State::Injected, None), language(State::Missed, Some("Unknown"))];
    let rows = shown(&[cluster("one", vec![workload("Deployment", "order", languages)])]);
    assert!(rows[0].contains("|missed|") && rows[0].contains("kubectl"), "{rows:?}");
    assert!(rows[1].contains("|injected|") && !rows[1].contains("kubectl"), "{rows:?}");
}

#[test]
fn rows_of_several_clusters_name_theirs_the_worst_first() {
    let of = |name, state| cluster(name, vec![workload("Job", name, vec![language(state, None)])]);
    let rows = shown(&[of("a", State::Injected), of("b", State::Missed), of("c", State::Stale)]);
    let names: Vec<_> = rows.iter().map(|row| row.split('|').nth(1).expect("a cell")).collect();
    assert_eq!(names, ["b", "c", "a"]);
}

#[test]
fn clusters_and_instrumentations_are_counted() {
    let of = |state| workload("Job", "order", vec![language(state, None)]);
    let mut report = cluster("one", vec![of(State::Missed), of(State::Missed), of(State::Injected)]);
    let row = ClusterRow::of(&report);
    assert_eq!((row.pods, row.workloads, row.by_state), (6, 3, [2, 0, 0, 0, 0, 1]));

    let pods = counts(&[(State::Missed, 2), (State::Stale, 1), (State::Injected, 1)]);
    report.report.instrumentations = vec![otel_webhook_fleet::report::InstrumentationRow {
        namespace: "shop".to_owned(),
        name: "default".to_owned(),
        pods,
        workloads: vec![WorstWorkload {
            workload: Workload::new("Deployment", "shop", "order"),
            stale: 1,
            missed: 2,
            failing: 0,
            silent: Some(3),
            reason: "Unknown".to_owned(),
        }],
        more: 7,
    }];
    let rows: Vec<_> = InstrumentationRow::of(&report).collect();
    assert_eq!((rows[0].matched, rows[0].by_state), (4, [2, 1, 0, 0, 0, 1]));
    assert_eq!(rows[0].outdated, ["Deployment/order in shop: 2 missed, 1 stale, 3 silent"]);
    let html = page(&[report]);
    assert!(html.contains("and 7 more") && html.contains("something of one"), "{html}");
}

#[test]
fn text_of_a_cluster_is_escaped() {
    let name = "<b title=xq\" &'>\u{202e}\u{2028}\u{2029}";
    let mut report = cluster(name, vec![workload(name, name, vec![language(State::Stale, Some(name))])]);
    report.report.workloads[0].workload.namespace = name.to_owned();
    report.report.workloads[0].languages[0].images = vec![(name.to_owned(), 1)];
    let html = page(&[report.clone(), report]);
    for part in ["<b ", "xq\"", "&'", "\u{202e}", "\u{2028}", "\u{2029}"] {
        let rest = html.replace(STYLE, "").replace(SCRIPT, "");
        assert!(!rest.contains(part), "{part} is in the page");
    }
}

#[test]
fn the_policy_allows_the_style_and_the_script_as_they_stand_in_the_page() {
    let html = page(&[]);
    for (open, close, directive) in
        [("<style>", "</style>", "style-src"), ("<script>", "</script>", "script-src")]
    {
        let parts: Vec<_> = html.split(open).collect();
        assert_eq!(parts.len(), 2, "one {open}");
        let (content, _) = parts[1].split_once(close).expect("an end");
        let hash = ring::digest::digest(&ring::digest::SHA256, content.as_bytes());
        let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, hash);
        let allowed = format!("{directive} 'sha256-{hash}';");
        assert!(policy::of_document().contains(&allowed), "{allowed}: {}", policy::of_document());
    }
    assert!(!policy::of_document().contains("unsafe"));
}

#[test]
fn the_script_makes_no_markup_and_asks_for_nothing() {
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "fetch(",
        "XMLHttp",
        "import(",
    ];
    for part in forbidden {
        assert!(!SCRIPT.contains(part), "{part}");
    }
    for part in ["url(", "@import"] {
        assert!(!STYLE.contains(part), "{part}");
    }
}

#[test]
fn it_is_served_with_strict_headers() {
    let headers = headers();
    let of = |name: &str| {
        let own = headers.iter().filter(|header| header.0 == name).map(|header| &*header.1);
        own.collect::<Vec<_>>().join("; twice: ")
    };
    assert_eq!(of("content-security-policy"), format!("{}; frame-ancestors 'none'", policy::of_document()));
    assert!(of("content-security-policy").starts_with("default-src 'none'; "));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(of(name), value, "{name}");
    }
}
