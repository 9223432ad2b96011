//! The elements of the page. maud escapes all text in them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    policy::{self, SCRIPT, STYLE},
    rows::{self, ClusterRow, CoverageRow, InstrumentationRow, Row, STATES},
};
use otel_webhook_fleet::{report::ClusterReport, state::State};

/// Returns the whole document.
pub fn document(clusters: &[ClusterReport]) -> Markup {
    let are_several = clusters.len() > 1;
    let rows = rows::of(clusters);
    let instrumentations: Vec<_> = clusters.iter().flat_map(InstrumentationRow::of).collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy::of_document());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "otel-webhook: running pods and their agents" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#workloads" { "Skip to the workloads" }
                header {
                    h1 { "Running pods and their agents" }
                    p { "What running pods have, compared with what new pods would get." }
                    label #reload hidden { input type="checkbox" checked; " Reload each minute, unless the page is in use" }
                }
                main {
                    (paused(clusters, are_several))
                    (stopped(clusters, are_several))
                    (summary(clusters))
                    (not_known(clusters, are_several))
                    h2 #workloads tabindex="-1" { "Workloads" }
                    @if rows.is_empty() {
                        p { "No running pod opts in or has an agent." }
                    } @else {
                        (filters(&rows, are_several))
                        (workloads(&rows, are_several))
                    }
                    (mistakes(clusters, are_several))
                    (coverage(clusters, are_several))
                    @if !instrumentations.is_empty() {
                        h2 #instrumentations { "Instrumentations" }
                        (table_of_instrumentations(&instrumentations, are_several))
                    }
                    (states())
                }
                footer { p { "otel-webhook " (env!("CARGO_PKG_VERSION")) } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// A region that scrolls, and that the keyboard reaches.
fn region(heading: &str, table: &Markup) -> Markup {
    html! { div.scroll role="region" aria-labelledby=(heading) tabindex="0" { (table) } }
}

/// The name of a state; the style adds a sign and a colour.
fn name(state: State) -> Markup {
    html! { span.state.(state.name()) { (state.name()) } }
}

fn time(time: Timestamp) -> Markup {
    html! { time datetime=(time) { (time.strftime("%Y-%m-%d %H:%M")) } }
}

fn numbers(counts: [usize; 6]) -> Markup {
    html! { @for count in counts { td.number { (count) } } }
}

fn summary(clusters: &[ClusterReport]) -> Markup {
    let table = html! {
        table {
            caption { "Number of workloads by the worst state of their pods" }
            thead {
                tr {
                    th scope="col" { "Cluster" }
                    th scope="col" { "Read at (UTC)" }
                    th.number scope="col" { "Pods" }
                    th.number scope="col" { "Workloads" }
                    @for state in STATES { th.number scope="col" { (name(state)) } }
                }
            }
            tbody {
                @for row in clusters.iter().map(ClusterRow::of) {
                    tr {
                        th scope="row" { (row.name) }
                        td { (time(row.taken)) }
                        td.number { (row.pods) }
                        td.number { (row.workloads) }
                        (numbers(row.by_state))
                    }
                }
            }
        }
    };
    html! {
        h2 #clusters { "Clusters" }
        (region("clusters", &table))
    }
}

fn paused(clusters: &[ClusterReport], are_several: bool) -> Markup {
    let pauses = rows::paused(clusters);
    html! {
        @if !pauses.is_empty() {
            h2 #paused { "Injection is paused" }
            ul.paused {
                @for pause in pauses {
                    li {
                        @if are_several { (pause.cluster) ": " }
                        (pause.sentence) "; to resume: " code { (pause.command) }
                    }
                }
            }
        }
    }
}

fn stopped(clusters: &[ClusterReport], are_several: bool) -> Markup {
    let sentences = rows::stopped(clusters);
    html! {
        @if !sentences.is_empty() {
            h2 #stopped { "Restarts are stopped" }
            ul.paused {
                @for (cluster, sentence) in sentences {
                    li { @if are_several { (cluster) ": " } (sentence) }
                }
            }
        }
    }
}

fn coverage(clusters: &[ClusterReport], are_several: bool) -> Markup {
    let rows: Vec<_> = clusters.iter().flat_map(CoverageRow::of).collect();
    let share = |row: &CoverageRow, whole| {
        let percent = row.share(whole);
        html! {
            td.number data-order=[percent] {
                @if let Some(percent) = percent { (percent) " %" } @else { "–" }
            }
        }
    };
    let table = html! {
        table.sortable {
            caption { "Number of running pods that have an agent, up to date or not" }
            thead {
                tr {
                    @if are_several { th scope="col" { "Cluster" } }
                    th scope="col" { "Pods of" }
                    @for heading in ["All", "Opted in", "With an agent", "Of those opted in", "Of all"] {
                        th.number scope="col" { (heading) }
                    }
                }
            }
            tbody {
                @for row in &rows {
                    tr {
                        @if are_several { td { (row.cluster) } }
                        th scope="row" { (row.of) }
                        td.number { (row.pods) }
                        td.number { (row.opted_in) }
                        td.number { (row.with_agent) }
                        (share(row, row.opted_in))
                        (share(row, row.pods))
                    }
                }
            }
        }
    };
    html! {
        @if !rows.is_empty() {
            h2 #coverage { "Coverage" }
            (region("coverage", &table))
        }
    }
}

fn not_known(clusters: &[ClusterReport], are_several: bool) -> Markup {
    let sentences = rows::incomplete(clusters);
    html! {
        @if !sentences.is_empty() {
            h3 { "Not known" }
            ul.incomplete {
                @for (cluster, sentence) in sentences {
                    li { @if are_several { (cluster) ": " } (sentence) }
                }
            }
        }
    }
}

/// Hidden until the script is there that they need.
fn filters(rows: &[Row], are_several: bool) -> Markup {
    let distinct = |value: fn(&Row) -> &str| rows.iter().map(value).collect::<BTreeSet<_>>();
    html! {
        form #filters hidden role="search" aria-label="Workloads" {
            label { "Text " input type="search" name="text" autocomplete="off" spellcheck="false"; }
            @if are_several { (choice("Cluster", distinct(|row| &row.cluster))) }
            (choice("Namespace", distinct(|row| &row.namespace)))
            (choice("Language", distinct(|row| &row.language)))
            label {
                "State "
                select name="state" {
                    option value="" { "all" }
                    option value="missed stale" { "missed or stale" }
                    @for state in STATES { option value=(state.name()) { (state.name()) } }
                    option value="failing" { "failing" }
                    option value="silent" { "silent" }
                }
            }
            button type="reset" { "Clear" }
            button #copy-all type="button" { "Copy the commands shown" }
            output #shown {}
            button #show-all type="button" hidden { "Show all" }
            p #said.said role="status" {}
        }
    }
}

fn choice(label: &str, values: BTreeSet<&str>) -> Markup {
    html! {
        label {
            (label) " "
            select name=(label.to_lowercase()) {
                option value="" { "all" }
                @for value in values { option value=(value) { (value) } }
            }
        }
    }
}

fn workloads(rows: &[Row], are_several: bool) -> Markup {
    let table = html! {
        table #rows.sortable {
            caption { "One row for each language of a workload, the worst state first" }
            thead {
                tr {
                    @if are_several { th scope="col" data-column="cluster" { "Cluster" } }
                    th scope="col" data-column="namespace" { "Namespace" }
                    th scope="col" { "Workload" }
                    th scope="col" data-column="language" { "Language" }
                    th scope="col" data-column="state" aria-sort="ascending" { "State" }
                    @for heading in ["Pods", "Agent image", "Reason", "Since (UTC)", "What to do"] {
                        th scope="col" { (heading) }
                    }
                }
            }
            tbody { @for row in rows { (workload(row, are_several)) } }
        }
    };
    region("workloads", &table)
}

fn workload(row: &Row, are_several: bool) -> Markup {
    html! {
        tr {
            @if are_several { td { (row.cluster) } }
            td { (row.namespace) }
            th scope="row" { (row.workload) }
            td { (row.language) }
            td data-order=(row.order) data-values=(row.states) { (name(row.state)) }
            td data-order=(row.matched) {
                (row.pods)
                @if row.failing > 0 { div.failing { (row.failing) " failing" } }
                @if let Some([heard, silent]) = row.data { div { (heard) " heard, " (silent) " silent" } }
            }
            td.image {
                @for image in &row.images {
                    div { @for part in image.split_inclusive('/') { (part) wbr; } }
                }
            }
            td.reason {
                @if let Some(code) = &row.code { code { (code) } " " }
                (row.message)
                @for failure in &row.failures { div.failing { code { (failure.code) } " " (failure.message) } }
            }
            td { @if let Some(since) = row.since { (time(since)) } }
            td.to-do {
                @if let Some(command) = &row.command { code.command { (command) } }
                @if let Some(advice) = &row.advice { (advice) }
                @for failure in &row.failures { div { (failure.remedy) } }
                @if let Some(restart) = &row.restart { div.restart { (restart) } }
            }
        }
    }
}

fn table_of_instrumentations(rows: &[InstrumentationRow], are_several: bool) -> Markup {
    let is_asked = rows.iter().any(|row| row.data.is_some());
    let table = html! {
        table.sortable {
            caption { "Number of pods by state; a pod with several languages counts once, by the worst of their states" }
            thead {
                tr {
                    @if are_several { th scope="col" { "Cluster" } }
                    th scope="col" { "Namespace" }
                    th scope="col" { "Name" }
                    th.number scope="col" { "All" }
                    @for state in STATES { th.number scope="col" { (state.name()) } }
                    th.number scope="col" { "failing" }
                    @if is_asked { th.number scope="col" { "heard" } th.number scope="col" { "silent" } }
                    th scope="col" { "Workloads with failing, missed, stale or silent pods" }
                }
            }
            tbody {
                @for row in rows {
                    tr {
                        @if are_several { td { (row.cluster) } }
                        td { (row.namespace) }
                        th scope="row" { (row.name) }
                        td.number { (row.matched) }
                        (numbers(row.by_state))
                        td.number { (row.failing) }
                        @if is_asked {
                            @for count in row.data.unwrap_or_default() { td.number { (count) } }
                        }
                        td data-order=(row.outdated.len() + row.more) {
                            @for workload in &row.outdated { div { (workload) } }
                            @if row.more > 0 { div { "and " (row.more) " more" } }
                        }
                    }
                }
            }
        }
    };
    region("instrumentations", &table)
}

fn mistakes(clusters: &[ClusterReport], are_several: bool) -> Markup {
    let (rows, more) = rows::mistakes(clusters);
    let table = html! {
        table.sortable {
            caption { "Annotations and labels that nothing reads, and what pods were injected with in spite of a warning" }
            thead {
                tr {
                    @if are_several { th scope="col" { "Cluster" } }
                    @for heading in ["Namespace", "Object", "Code", "What is wrong", "What to do"] {
                        th scope="col" { (heading) }
                    }
                }
            }
            tbody {
                @for row in &rows {
                    tr {
                        @if are_several { td { (row.cluster) } }
                        td { (row.namespace) }
                        th scope="row" { (row.object) }
                        td { code { (row.code) } }
                        td.reason {
                            @if !row.field.is_empty() { code { (row.field) } " " }
                            (row.message)
                        }
                        td.to-do { (row.remedy) }
                    }
                }
            }
        }
    };
    html! {
        @if !rows.is_empty() {
            h2 #mistakes { "Mistakes" }
            (region("mistakes", &table))
            @if more > 0 { p { "and " (more) " more" } }
        }
    }
}

fn states() -> Markup {
    html! {
        h2 { "States" }
        dl {
            @for state in STATES {
                dt { (name(state)) }
                dd { (meaning(state)) }
            }
            dt { "failing" }
            dd {
                "In addition to its state: a container or volume that injection added cannot start, or the agent is "
                "likely the reason why the application ends again and again."
            }
            dt { "silent" }
            dd { "In addition to its state: no data of the pod arrives, although it should. Of heard pods, data arrives." }
        }
    }
}

fn meaning(state: State) -> &'static str {
    match state {
        State::Missed => "The pod has no agent, and a new pod would get one.",
        State::Stale => {
            "The pod has the agent, but a new pod would get another configuration, another Instrumentation, or no agent."
        }
        State::Unconfirmed => "Whether the pod is up to date is not known.",
        State::Foreign => {
            "The pod was injected by the operator, by another injector, or by this webhook with --stamp=false."
        }
        State::Skipped => "The pod opts in and has no agent, and a new pod would not get one either.",
        State::Injected => "The pod has the agent, with the configuration that a new pod would get.",
    }
}
