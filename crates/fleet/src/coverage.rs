//! How many of the running pods have an agent, by namespace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{census::Census, report::WorkloadRow};

/// The running pods of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoverageRow {
    /// The namespace.
    pub namespace: String,
    /// The team that owns it; `None` if no label says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The number of its pods.
    pub pods: usize,
    /// The number of those that have an agent or opt in.
    pub opted_in: usize,
    /// The number of those that have an agent, whether or not it is up to date, by any injector.
    pub with_agent: usize,
}

/// Returns the namespaces that have pods, by name. `team` returns the team that owns a namespace.
pub fn coverage(
    census: &Census,
    workloads: &[WorkloadRow],
    team: impl Fn(&str) -> Option<String>,
) -> Vec<CoverageRow> {
    let mut rows: BTreeMap<&str, CoverageRow> = BTreeMap::new();
    for group in census.groups() {
        rows.entry(group.namespace()).or_default().pods += group.members.len();
    }
    for workload in workloads {
        let row = rows.entry(&workload.workload.namespace).or_default();
        row.opted_in += workload.pods;
        row.with_agent += workload.with_agent;
    }
    let named = |(namespace, row): (&str, CoverageRow)| CoverageRow {
        namespace: namespace.to_owned(),
        team: team(namespace),
        ..row
    };
    rows.into_iter().map(named).collect()
}
