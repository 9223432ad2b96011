//! The status page: what running pods have, as one HTML file that needs nothing else.
//!
//! The rows are in the file; the script only filters and sorts them, so that the page can be read without it, too.
//! Everything comes from users' objects: maud escapes all of it, and the policy allows this style and this script,
//! by their hashes, and nothing that is fetched.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use otel_webhook_fleet::{
    report::{ClusterReport, Counts, LanguageRow, WorkloadRow},
    state::State,
};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Headings of the workloads.
const COLUMNS: [&str; 9] =
    ["Namespace", "Workload", "Language", "Pods", "State", "Reason", "Agent image", "Since", "What to do"];

/// Headings of the Instrumentations, before those of the states.
const INSTRUMENTATION: [&str; 2] = ["Namespace", "Instrumentation"];

/// Returns the page.
pub fn page(clusters: &[ClusterReport]) -> String {
    let title = "Running pods and their agents";
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "otel-webhook: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    @for cluster in clusters {
                        p.muted { (cluster.cluster) ", " (cluster.taken.strftime("%Y-%m-%d %H:%M:%S UTC")) }
                    }
                }
                main {
                    (incomplete(clusters))
                    (counts(clusters))
                    (workloads(clusters))
                    (instrumentations(clusters))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
}

/// Returns the value of the header `Content-Security-Policy`: this style, this script, and nothing that is fetched.
pub fn policy() -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Returns the headers with which the page is served.
pub fn headers() -> [(&'static str, String); 6] {
    [
        ("content-type", "text/html; charset=utf-8".to_owned()),
        ("content-security-policy", format!("{}; frame-ancestors 'none'", policy())),
        ("x-content-type-options", "nosniff".to_owned()),
        ("referrer-policy", "no-referrer".to_owned()),
        ("cache-control", "no-store".to_owned()),
        ("cross-origin-opener-policy", "same-origin".to_owned()),
    ]
}

fn incomplete(clusters: &[ClusterReport]) -> Markup {
    let is_complete = clusters.iter().all(|cluster| cluster.incomplete.is_empty());
    html! {
        @if !is_complete {
            h2 { "What could not be read" }
            ul.incomplete {
                @for cluster in clusters {
                    @for problem in &cluster.incomplete {
                        li { @if clusters.len() > 1 { (cluster.cluster) ": " } (problem) }
                    }
                }
            }
        }
    }
}

fn counts(clusters: &[ClusterReport]) -> Markup {
    let languages = || rows(clusters).flat_map(|(_, row)| &row.languages);
    let of = |state: State| languages().map(|language| language.pods.of(state)).sum::<usize>();
    html! {
        h2 #states { "Pods by state" }
        p.muted { "A pod with several languages is counted for each." }
        ul.counts aria-labelledby="states" {
            @for state in State::ALL {
                li { strong { (of(state)) } span class=(state.name()) { (state.name()) } }
            }
        }
    }
}

fn rows(clusters: &[ClusterReport]) -> impl Iterator<Item = (&ClusterReport, &WorkloadRow)> {
    clusters.iter().flat_map(|cluster| cluster.report.workloads.iter().map(move |row| (cluster, row)))
}

fn workloads(clusters: &[ClusterReport]) -> Markup {
    let are_several = clusters.len() > 1;
    html! {
        h2 { "Workloads" }
        (filters(clusters))
        p #shown role="status" aria-live="polite" {}
        div.table tabindex="0" role="region" aria-label="Workloads" {
            table #workloads {
                caption { "Workloads whose pods have an agent or opt in" }
                thead {
                    tr {
                        @for heading in are_several.then_some("Cluster").into_iter().chain(COLUMNS) {
                            th scope="col" { button type="button" { (heading) } }
                        }
                    }
                }
                tbody {
                    @for (cluster, row) in rows(clusters) {
                        @for language in &row.languages { (line(cluster, row, language, are_several)) }
                    }
                }
            }
        }
    }
}

fn line(cluster: &ClusterReport, row: &WorkloadRow, language: &LanguageRow, are_several: bool) -> Markup {
    let workload = &row.workload;
    let has = |state: &State| language.pods.of(*state) > 0;
    let states: Vec<_> = State::ALL.into_iter().filter(has).map(State::name).collect();
    let rank = State::ALL.iter().position(|state| *state == language.state).unwrap_or_default();
    html! {
        tr data-cluster=(cluster.cluster) data-namespace=(workload.namespace) data-language=(language.language)
            data-states=(states.join(" ")) {
            @if are_several { td { (cluster.cluster) } }
            td { (workload.namespace) }
            th scope="row" { (workload.kind) "/" (workload.name) }
            td { (language.language) }
            td.number { (language.pods.matched) }
            td.state data-sort=(rank) { (amounts(language.pods)) }
            td {
                @if let Some(reason) = &language.reason { strong { (reason) } }
                @if let Some(message) = &language.message { p { (message) } }
            }
            td {
                @for (image, count) in &language.images {
                    p { code { (image) } @if language.images.len() > 1 { " (" (count) " pods)" } }
                }
            }
            td { @if let Some(since) = language.since { (since.strftime("%Y-%m-%d %H:%M")) } }
            td {
                @if language.state.is_outdated() && language.reason.as_deref() != Some("NotSelected") {
                    @if let Some(command) = &row.command { code { (command) } }
                }
            }
        }
    }
}

/// The number of pods in each state. Its name says it, and not the colour alone.
fn amounts(pods: Counts) -> Markup {
    html! {
        @for state in State::ALL.into_iter().rev() {
            @let count = pods.of(state);
            @if count > 0 { p class=(state.name()) { (count) " " (state.name()) } }
        }
    }
}

fn filters(clusters: &[ClusterReport]) -> Markup {
    let distinct = |values: Vec<&str>| {
        let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let namespaces = distinct(rows(clusters).map(|(_, row)| &*row.workload.namespace).collect());
    let languages = distinct(
        rows(clusters).flat_map(|(_, row)| &row.languages).map(|language| &*language.language).collect(),
    );
    let states: Vec<String> = State::ALL.map(|state| state.name().to_owned()).to_vec();
    html! {
        form #filters role="search" hidden {
            label { "Search" input type="search" name="search" autocomplete="off"; }
            label {
                "State"
                select name="state" {
                    option value="" { "all" }
                    option value="outdated" { "stale or missed" }
                    @for state in states { option { (state) } }
                }
            }
            (choice("Namespace", "namespace", &namespaces))
            (choice("Language", "language", &languages))
            @if clusters.len() > 1 {
                (choice("Cluster", "cluster", &distinct(clusters.iter().map(|cluster| &*cluster.cluster).collect())))
            }
        }
    }
}

fn choice(title: &str, name: &str, values: &[String]) -> Markup {
    html! {
        label {
            (title)
            select name=(name) {
                option value="" { "all" }
                @for value in values { option value=(value) { (value) } }
            }
        }
    }
}

fn instrumentations(clusters: &[ClusterReport]) -> Markup {
    let are_several = clusters.len() > 1;
    let headings = are_several.then_some("Cluster").into_iter().chain(INSTRUMENTATION);
    html! {
        h2 { "Instrumentations" }
        div.table tabindex="0" role="region" aria-label="Instrumentations" {
            table {
                caption { "Pods of each Instrumentation by state" }
                thead {
                    tr {
                        @for heading in headings { th scope="col" { (heading) } }
                        th.number scope="col" { "matched" }
                        @for state in State::ALL { th.number scope="col" { (state.name()) } }
                    }
                }
                tbody {
                    @for cluster in clusters {
                        @for row in &cluster.report.instrumentations {
                            tr {
                                @if are_several { td { (cluster.cluster) } }
                                td { (row.namespace) }
                                th scope="row" { (row.name) }
                                td.number { (row.pods.matched) }
                                @for state in State::ALL { td.number { (row.pods.of(state)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
