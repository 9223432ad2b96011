//! Reads a cluster, and counts its pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::core::ApiResource;

use super::plan;
use crate::cli::{
    cluster::{
        caveats::{caveats, not_readable},
        facts::Facts,
        flags::ClusterFlags,
        fleet,
        known::Known,
        reader::{ClusterReader, Part},
    },
    failure::Failure,
    flags::InjectionFlags,
};
use otel_webhook_fleet::{census::Census, count::Counted, pod::RunningPod, report::ClusterReport};

/// What is read, and with which flags.
pub struct Question<'q> {
    /// The namespace; none for all.
    pub namespace: Option<&'q str>,
    /// Names of the webhook configurations.
    pub configurations: &'q [String],
    /// The injection flags of the command.
    pub injection: &'q InjectionFlags,
    /// Whether they are used instead of the webhook's.
    pub own_flags: bool,
    /// Whether restarts are planned.
    pub plan: bool,
}

/// Reads a cluster with the permissions of the user.
///
/// # Errors
/// If it cannot be reached, the namespace does not exist, or the pods are not readable.
pub async fn read(flags: &ClusterFlags, question: &Question<'_>) -> Result<ClusterReport, Failure> {
    let Question { namespace: scope, configurations, injection, own_flags, plan: is_planned } = *question;
    let cluster = ClusterReader::connect(flags).await?;
    let facts = Facts::gather(&cluster, configurations).await;
    let mut known = Known::list(&cluster, scope, facts.flags(injection, own_flags)).await;
    if let Some(name) = scope.filter(|_| known.namespaces.is_empty() && !known.unread.namespaces) {
        return Err(Failure::unreadable(format!("--namespace: namespace \"{name}\" not found")));
    }
    let taken = now();
    let census = pods(&cluster, scope).await?;
    let registration = Some(&facts.registration).filter(|_| facts.is_registration_told);
    let (mut counted, named) = fleet::count(&census, &known, registration);
    // Pods may name Instrumentations of namespaces that were not listed yet.
    if !named.is_empty() && known.learn(&cluster, named).await {
        (counted, _) = fleet::count(&census, &known, registration);
    }
    let Counted { mut report, pods, .. } = counted;
    for row in &mut report.workloads {
        for command in
            row.command.iter_mut().chain(row.paused.iter_mut().filter_map(|one| one.command.as_mut()))
        {
            *command = flags.complete(command);
        }
    }
    for pause in &mut report.paused {
        pause.command = flags.complete(&pause.command);
    }
    let mut incomplete = incomplete(&facts, &known, own_flags);
    if is_planned {
        incomplete.extend(plan::write(&cluster, scope, &facts, &known, pods, &mut report).await);
    }
    Ok(ClusterReport { cluster: cluster.name, taken, incomplete, report })
}

/// Returns the time in whole seconds, like all times of Kubernetes.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Lists the pods. Each is reduced as its page arrives.
async fn pods(cluster: &ClusterReader, scope: Option<&str>) -> Result<Census, Failure> {
    let mut census = Census::default();
    let take = |pod| {
        if let Some(pod) = RunningPod::read(&pod) {
            census.put(pod);
        }
    };
    let told = cluster.each(&ApiResource::erase::<Pod>(&()), scope, Part::Whole, take).await;
    told.map_err(|not_told| {
        let advice = if scope.is_none() { "; --namespace reads those of one namespace" } else { "" };
        Failure::unreadable(format!("{}{advice}", not_readable(&not_told)))
    })?;
    Ok(census)
}

/// Returns what the report does not know.
fn incomplete(facts: &Facts, known: &Known, own_flags: bool) -> Vec<String> {
    let mut incomplete = caveats(facts, known, own_flags);
    if facts.is_registration_told && facts.registration.pods().next().is_none() {
        let names = facts.registration.names.join(", ");
        incomplete.push(format!("no webhook of {names} selects new pods: pods are not injected"));
    }
    incomplete
}
