//! Metrics of the controller. None of them exists in a webhook server.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Mutex, PoisonError, atomic::AtomicI64},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use otel_webhook_fleet::{mistakes::codes, report::Report, state::State};
use otel_webhook_inject::language::LANGUAGES;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PodLabels {
    state: &'static str,
    language: &'static str,
}

/// Not `namespace`, which a scraped target has as a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamespaceLabels {
    pod_namespace: String,
    state: &'static str,
}

/// The label of all further namespaces together. No namespace has such a name.
const OTHERS: &str = "_others";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DataLabels {
    data: &'static str,
    language: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailingLabels {
    language: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkloadLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MistakeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeaseLabels {
    lease: String,
}

fn data_labels() -> impl Iterator<Item = DataLabels> {
    let states = ["heard", "silent", "unknown"].into_iter();
    states.flat_map(|data| LANGUAGES.map(|row| DataLabels { data, language: row.name }))
}

/// See the module.
#[derive(Debug, Default)]
pub struct FleetMetrics {
    pods: Family<PodLabels, Gauge<i64, AtomicI64>>,
    failing: Family<FailingLabels, Gauge<i64, AtomicI64>>,
    workloads: Family<WorkloadLabels, Gauge<i64, AtomicI64>>,
    leader: Family<LeaseLabels, Gauge<i64, AtomicI64>>,
    data: Family<DataLabels, Gauge<i64, AtomicI64>>,
    source: Family<SourceLabels, Gauge<i64, AtomicI64>>,
    mistakes: Family<MistakeLabels, Gauge<i64, AtomicI64>>,
    by_namespace: Family<NamespaceLabels, Gauge<i64, AtomicI64>>,
    /// The namespaces that `by_namespace` has.
    shown: Mutex<Vec<String>>,
}

impl FleetMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "otel_webhook_pods",
            "Running pods by language and state; a pod with several languages is counted for each",
            self.pods.clone(),
        );
        registry.register(
            "otel_webhook_pods_failing",
            "Running and pending pods, of any state, that fail because of what injection added, by language",
            self.failing.clone(),
        );
        registry.register(
            "otel_webhook_workloads",
            "Workloads by the worst state of their pods",
            self.workloads.clone(),
        );
        registry.register(
            "otel_webhook_controller_leader",
            "1 if this replica of the controller leads, 0 if it waits",
            self.leader.clone(),
        );
        registry.register(
            "otel_webhook_pods_data",
            "Injected pods by language and whether their data arrives: heard, silent or unknown; only with --heard-source",
            self.data.clone(),
        );
        registry.register(
            "otel_webhook_heard_source_up",
            "1 if the source of what arrives answers, 0 if it does not; only with --heard-source",
            self.source.clone(),
        );
        registry.register(
            "otel_webhook_mistakes",
            "Workloads, namespaces, bare pods and Instrumentations with a mistake or a warning, by its code; only with \
             --mistakes",
            self.mistakes.clone(),
        );
        registry.register(
            "otel_webhook_namespace_pods",
            "Running pods by namespace and state, of the namespaces with the most; of all others together as _others; a \
             pod with several languages is counted for each; only with --metrics-namespaces",
            self.by_namespace.clone(),
        );
    }

    /// Sets the counts of so many namespaces.
    pub fn set_namespaces(&self, report: &Report, most: usize) {
        let mut all: BTreeMap<&str, [usize; State::ALL.len()]> = BTreeMap::new();
        for row in &report.workloads {
            let counts = all.entry(&row.workload.namespace).or_default();
            for language in &row.languages {
                for (count, state) in counts.iter_mut().zip(State::ALL) {
                    *count += language.pods.of(state);
                }
            }
        }
        let mut sorted: Vec<_> = all.into_iter().collect();
        sorted.sort_by_key(|(name, counts)| (Reverse(counts.iter().sum::<usize>()), *name));
        let others = sorted.split_off(most.min(sorted.len()));
        if let Some(sum) = others.into_iter().map(|(_, counts)| counts).reduce(added) {
            sorted.push((OTHERS, sum));
        }
        for (name, counts) in &sorted {
            for (state, count) in State::ALL.into_iter().zip(counts) {
                let labels = NamespaceLabels { pod_namespace: (*name).to_owned(), state: state.name() };
                self.by_namespace.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
            }
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in shown.iter().filter(|name| !sorted.iter().any(|(own, _)| own == name)) {
            for state in State::ALL.map(State::name) {
                self.by_namespace.remove(&NamespaceLabels { pod_namespace: gone.clone(), state });
            }
        }
        *shown = sorted.into_iter().map(|(name, _)| name.to_owned()).collect();
    }

    /// Sets the counts.
    pub fn set(&self, report: &Report) {
        let mut pods: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut failing: BTreeMap<&str, usize> = BTreeMap::new();
        let mut workloads: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &report.workloads {
            *workloads.entry(row.state.name()).or_default() += 1;
            for language in &row.languages {
                *failing.entry(language.language).or_default() += language.pods.failing;
                for state in State::ALL {
                    *pods.entry((language.language, state.name())).or_default() += language.pods.of(state);
                }
            }
        }
        let mut data: BTreeMap<(&'static str, &'static str), usize> = BTreeMap::new();
        for row in report.workloads.iter().flat_map(|row| &row.languages) {
            let Some(own) = &row.data else { continue };
            for (state, count) in [("heard", own.heard), ("silent", own.silent), ("unknown", own.unknown)] {
                *data.entry((row.language, state)).or_default() += count;
            }
        }
        let count =
            |count: Option<&usize>| i64::try_from(count.copied().unwrap_or_default()).unwrap_or(i64::MAX);
        for labels in data_labels() {
            if let Some(gauge) = self.data.get(&labels) {
                gauge.set(count(data.get(&(labels.language, labels.data))));
            }
        }
        for language in LANGUAGES.map(|language| language.name) {
            self.failing.get_or_create(&FailingLabels { language }).set(count(failing.get(language)));
        }
        for state in State::ALL.map(State::name) {
            self.workloads.get_or_create(&WorkloadLabels { state }).set(count(workloads.get(state)));
            for language in LANGUAGES.map(|language| language.name) {
                let labels = PodLabels { state, language };
                self.pods.get_or_create(&labels).set(count(pods.get(&(language, state))));
            }
        }
    }

    /// Sets how many objects have which mistakes.
    pub fn set_mistakes<'c>(&self, found: impl Iterator<Item = &'c str>) {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        found.for_each(|code| *counts.entry(code).or_default() += 1);
        for code in codes() {
            let count = counts.get(code).copied().unwrap_or_default();
            self.mistakes.get_or_create(&MistakeLabels { code }).set(count);
        }
    }

    /// Removes the counts: another replica leads.
    pub fn clear(&self) {
        self.pods.clear();
        self.failing.clear();
        self.workloads.clear();
        self.data.clear();
        self.source.clear();
        self.mistakes.clear();
        self.by_namespace.clear();
    }

    /// Sets whether the source of what arrives answers.
    pub fn set_source(&self, source: &'static str, answers: bool) {
        data_labels().for_each(|labels| drop(self.data.get_or_create(&labels)));
        self.source.get_or_create(&SourceLabels { source }).set(answers.into());
    }

    /// Sets whether this replica leads.
    pub fn set_leader(&self, lease: &str, leads: bool) {
        self.leader.get_or_create(&LeaseLabels { lease: lease.to_owned() }).set(leads.into());
    }
}

fn added<const N: usize>(one: [usize; N], other: [usize; N]) -> [usize; N] {
    std::array::from_fn(|index| one[index] + other[index])
}

#[cfg(test)]
mod tests {
    use otel_webhook_testkit::reports::{language, workload};
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn shown(metrics: &FleetMetrics) -> Vec<String> {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let lines = text.lines().filter_map(|line| line.strip_prefix("otel_webhook_namespace_pods"));
        let mut lines: Vec<_> =
            lines.filter(|line| line.starts_with('{') && !line.ends_with(" 0")).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn the_namespaces_with_the_most_pods_are_shown_and_the_others_are_summed() {
        let report = |pods: &[(&str, usize)]| Report {
            workloads: pods
                .iter()
                .map(|(namespace, missed)| {
                    let languages = vec![language("java", &[(State::Missed, *missed)], None)];
                    workload("Deployment", namespace, "order", languages)
                })
                .collect(),
            ..Report::default()
        };
        let metrics = FleetMetrics::default();
        metrics.set_namespaces(&report(&[("a", 1), ("b", 5), ("c", 2), ("b", 1), ("d", 3)]), 2);
        let missed =
            |name: &str, count: usize| format!("{{pod_namespace=\"{name}\",state=\"missed\"}} {count}");
        assert_eq!(shown(&metrics), [missed("_others", 3), missed("b", 6), missed("d", 3)]);
        metrics.set_namespaces(&report(&[("a", 1), ("c", 2)]), 2);
        assert_eq!(shown(&metrics), [missed("a", 1), missed("c", 2)]);
        metrics.set_namespaces(&report(&[]), 2);
        assert_eq!(shown(&metrics), Vec::<String>::new());
    }
}
