//! Counts the pods of a census by their states.

mod failures;
mod tally;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
};

use jiff::Timestamp;
use otel_webhook_inject::language::LANGUAGES;

use crate::{
    advice::NotAdvised,
    cause::{self, Cause},
    census::{Census, Group, Member},
    injected::{Agent, By},
    next::{Around, Doubts, NextAgent, NextPod, NoDoubts},
    report::{Counts, InstrumentationRow, PauseRow, Report, WorkloadRow, WorstWorkload},
    state::{Circumstances, Has, Next, Origin, State},
    workload::Workload,
};
use failures::Suspects;
use tally::{Found, NewAgents, Tally};

pub use tally::{OldPod, WorkloadPods};

/// How many workloads of an Instrumentation are named.
const WORST: usize = 10;

/// What is known beside the pods.
pub struct Known<'k> {
    /// What decisions depend on.
    pub around: Around<'k>,
    /// When each Instrumentation was created, by `namespace/name`.
    pub created: &'k HashMap<String, Timestamp>,
    /// Whether the webhook configuration sends a new pod to the webhook.
    pub is_selected: &'k IsSelected<'k>,
}

/// Whether a new pod is sent to the webhook: by its namespace, its labels, and whether it opts in itself.
pub type IsSelected<'k> = dyn Fn(&str, &BTreeMap<String, String>, bool) -> bool + 'k;

/// What was counted.
#[derive(Debug, Default)]
pub struct Counted {
    /// What is told.
    pub report: Report,
    /// What restarts need of the workloads of the report, in their order.
    pub pods: Vec<WorkloadPods>,
    /// The workloads with an agent in a container that ends again and again: their pods without an agent are compared.
    pub suspects: Vec<Workload>,
}

/// Counts all pods.
pub fn count(census: &Census, known: &Known<'_>) -> Counted {
    count_with(census, known, &NoDoubts)
}

/// Counts all pods where not everything is readable: the states that depend on the rest are unconfirmed.
pub fn count_with(census: &Census, known: &Known<'_>, doubts: &dyn Doubts) -> Counted {
    let mut counting = Counting {
        known,
        doubts,
        instrumentations: BTreeMap::new(),
        suspects: Vec::new(),
        unpulled: BTreeMap::new(),
    };
    // One workload after the other: what is noted while one is counted is several times as large as its row.
    let mut groups: Vec<_> = census.groups().collect();
    groups.sort_by(|a, b| a.workload.cmp(&b.workload));
    let workloads = groups.chunk_by(|a, b| a.workload == b.workload);
    let (mut workloads, pods): (Vec<_>, Vec<_>) =
        workloads.filter_map(|groups| counting.count(groups)).unzip();
    counting.unpulled.iter().for_each(|(agent, fails)| withhold(&mut workloads, agent, fails));
    let instrumentations = counting.instrumentations.into_iter().map(|(name, own)| own.row(&name));
    let paused = known.around.catalogue.pauses().iter().map(PauseRow::from).collect();
    let report = Report { paused, instrumentations: instrumentations.collect(), workloads };
    Counted { report, pods, suspects: counting.suspects }
}

struct Counting<'k> {
    known: &'k Known<'k>,
    doubts: &'k dyn Doubts,
    instrumentations: BTreeMap<String, OfInstrumentation>,
    suspects: Vec<Workload>,
    /// Why the image of an agent is on no node, by `namespace/name` of the Instrumentation and the language.
    unpulled: BTreeMap<(String, &'static str), NotAdvised>,
}

/// Takes back the commands of workloads whose new pods would have an image that cannot be pulled.
fn withhold(workloads: &mut [WorkloadRow], (name, language): &(String, &'static str), fails: &NotAdvised) {
    let would_get = |row: &&mut WorkloadRow| {
        let mut outdated = row.languages.iter().filter(|one| one.state.is_outdated());
        outdated.any(|one| one.language == *language && one.instrumentation.as_ref() == Some(name))
    };
    for row in workloads.iter_mut().filter(|row| row.not_advised.is_none()).filter(would_get) {
        row.withhold(Some(fails.clone()));
    }
}

#[derive(Default)]
struct OfInstrumentation {
    pods: Counts,
    /// The failing, stale and missed pods of each workload, with the worst of them.
    worst: BTreeMap<Workload, (Counts, Worst)>,
}

/// The code of why a pod fails, its state, and the code of the reason for it; see [`order`].
type Worst = (Option<Reverse<&'static str>>, State, Reverse<&'static str>);

impl Counting<'_> {
    /// Counts the groups of a workload. `None` if no pod has an agent or opts in.
    fn count(&mut self, groups: &[&Group]) -> Option<(WorkloadRow, WorkloadPods)> {
        let mut tally = Tally::default();
        let suspects = Suspects::of(groups);
        if suspects.are_any() {
            self.suspects.push(groups[0].workload.clone());
        }
        for group in groups {
            let Group { shape, workload, .. } = group;
            let next = NextPod::with_doubts(shape, &workload.namespace, &self.known.around, self.doubts);
            // What is stored by the API server can be read; if not, there is nothing to compare with.
            let next = next.unwrap_or_default();
            let new = tally::agents(&next);
            for member in &group.members {
                self.count_member((group, member), &suspects, &next, &new, &mut tally);
            }
        }
        (!tally.is_empty()).then(|| tally.rows(groups[0].workload.clone()))
    }

    fn count_member(
        &mut self,
        (group, member): (&Group, &Member),
        suspects: &Suspects<'_>,
        next: &NextPod,
        new: &NewAgents,
        tally: &mut Tally,
    ) {
        let agents = group.agents_of(member);
        let has = agents.unwrap_or_default().iter().map(|agent| agent.language);
        let languages: BTreeSet<&str> = has.chain(next.languages.keys().copied()).collect();
        if languages.is_empty() {
            return;
        }
        let failures = suspects.failures(group, member);
        let mut of_instrumentations: BTreeMap<String, Worst> = BTreeMap::new();
        let mut found = Vec::new();
        for language in LANGUAGES.iter().map(|row| row.name).filter(|name| languages.contains(name)) {
            let mut one = self.look(group, member, next, language);
            let mut own =
                failures.iter().filter(|failure| failure.language == language && failure.is_counted());
            let own = own.next();
            one.failing = own.map(failures::Found::code);
            if let Some(name) = &one.instrumentation {
                if let Some(failure) = own.filter(|own| own.is_of_image() && one.state == State::Injected) {
                    let fails = || NotAdvised::agent_fails(&member.name, failure.code());
                    self.unpulled.entry((name.clone(), language)).or_insert_with(fails);
                }
                let own = (one.failing.map(Reverse), one.state, Reverse(one.cause.code));
                let worst = of_instrumentations.entry(name.clone()).or_insert(own);
                *worst = own.max(*worst);
            }
            found.push((language, one));
        }
        for (name, worst) in of_instrumentations {
            self.instrumentations.entry(name).or_default().add(&group.workload, worst);
        }
        tally.add(&group.workload, member, found, &failures, new, next.paused());
    }

    fn look(&self, group: &Group, member: &Member, next: &NextPod, language: &'static str) -> Found {
        let agents = group.agents_of(member);
        let agent = agents.unwrap_or_default().iter().find(|agent| agent.language == language);
        let next_agent = next.languages.get(language);
        let next_name = next_agent.and_then(name_of);
        let has = match (agents, agent) {
            (None, _) => Has::Unread,
            (_, None) => Has::Nothing,
            (_, Some(Agent { by: By::Operator, .. })) => Has::Foreign,
            (_, Some(agent)) => Has::Agent(agent.origin()),
        };
        let next_state = match (next_agent, &next_name) {
            (Some(NextAgent::Agent(used)), Some(name)) => {
                Next::Agent(Origin { instrumentation: name, hash: &used.hash })
            }
            (Some(NextAgent::Paused { used, .. }), Some(name)) => {
                Next::Paused(Origin { instrumentation: name, hash: &used.hash })
            }
            (Some(NextAgent::Skipped { code, .. }), _) => Next::Skipped(code),
            _ if next.doubt(language).is_some() => Next::Unknown,
            _ => Next::Skipped(cause::NOT_ASKED),
        };
        let (state, doubt) = self.compare(has, next_state);
        let doubt = doubt.or_else(|| next.doubt(language).filter(|_| state == State::Unconfirmed));
        let asks_itself = next.own.contains(&language);
        let circumstances = || Circumstances {
            is_selected: (self.known.is_selected)(
                &group.workload.namespace,
                &next.labels,
                !next.own.is_empty(),
            ),
            created: member.created,
            instrumentation: next_name.as_ref().and_then(|name| self.known.created.get(name)).copied(),
            opts_in_itself: asks_itself,
        };
        let is_paused_agent = matches!((has, next_state), (Has::Agent(_), Next::Paused(_)));
        let is_lost = matches!((has, next_state), (Has::Agent(_), Next::Skipped(_)));
        let cause = match doubt {
            Some(why) => Cause::not_readable(why),
            None => Cause::of(state, has, next_state, next_agent, circumstances),
        };
        let own = agent.and_then(|agent| agent.instrumentation.as_deref()).map(str::to_owned);
        Found {
            state,
            cause,
            instrumentation: next_name.or(own),
            image: agent.and_then(|agent| agent.image.as_deref()).map(str::to_owned),
            is_paused_agent,
            is_lost: is_lost && state.is_outdated(),
            failing: None,
        }
    }

    /// Returns the state. Where the present configurations are not known, none is stale because of them: then the
    /// reason is returned too.
    fn compare(&self, has: Has<'_>, next: Next<'_>) -> (State, Option<&str>) {
        let state = State::of(has, next);
        match self.doubts.configurations() {
            Some(why) if state == State::Stale && matches!(next, Next::Agent(_) | Next::Paused(_)) => {
                (State::Unconfirmed, Some(why))
            }
            _ => (state, None),
        }
    }
}

/// Returns `namespace/name` of the Instrumentation that was chosen.
fn name_of(next: &NextAgent) -> Option<String> {
    match next {
        NextAgent::Agent(used) | NextAgent::Paused { used, .. } => Some(used.name.to_string()),
        NextAgent::Skipped { instrumentation, .. } => instrumentation.as_ref().map(ToString::to_string),
        NextAgent::Unknown(_) => None,
    }
}

impl OfInstrumentation {
    fn add(&mut self, workload: &Workload, pod: Worst) {
        let (failing, state, _) = pod;
        let is_failing = usize::from(failing.is_some());
        self.pods.add(state);
        self.pods.failing += is_failing;
        if is_failing > 0 || state.is_outdated() {
            let first = || (Counts::default(), pod);
            let (counts, worst) = self.worst.entry(workload.clone()).or_insert_with(first);
            counts.add(state);
            counts.failing += is_failing;
            *worst = (*worst).max(pod);
        }
    }

    fn row(self, name: &str) -> InstrumentationRow {
        let mut worst: Vec<_> = self.worst.into_iter().collect();
        // The sort keeps the order of names where numbers are equal.
        worst.sort_by_key(|(_, (counts, _))| Reverse((counts.failing, counts.matched)));
        let more = worst.len().saturating_sub(WORST);
        worst.truncate(WORST);
        let row =
            |(workload, (counts, (failing, _, Reverse(code)))): (Workload, (Counts, Worst))| WorstWorkload {
                workload,
                stale: counts.stale,
                missed: counts.missed,
                failing: counts.failing,
                reason: failing.map_or(code, |Reverse(failing)| failing).to_owned(),
            };
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        InstrumentationRow {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            pods: self.pods,
            workloads: worst.into_iter().map(row).collect(),
            more,
        }
    }
}

/// Returns the counts as a sentence, such as "3 pods: 1 injected, 2 stale; 1 failing".
pub fn sentence(counts: Counts) -> String {
    let mut text = format!("{} pods", counts.matched);
    let mut separator = ": ";
    for state in State::ALL {
        let count = counts.of(state);
        if count > 0 {
            let _ = write!(text, "{separator}{count} {}", state.name());
            separator = ", ";
        }
    }
    if counts.failing > 0 {
        let _ = write!(text, "; {} failing", counts.failing);
    }
    text
}
