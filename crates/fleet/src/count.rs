//! Counts the pods of a census by their states.

mod failures;
mod tally;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write,
};

use jiff::Timestamp;
use otel_webhook_inject::language::LANGUAGES;

use crate::{
    advice::NotAdvised,
    cause::{self, Cause},
    census::{Census, Group, Member, ShapeKey},
    heard::{Data, Heard},
    injected::{Agent, By, Decided},
    next::{Around, Decision, Doubts, NextAgent, NextPod, NoDoubts},
    report::{Counts, InstrumentationRow, PauseRow, Report, WorkloadRow, WorstWorkload},
    silent,
    state::{Circumstances, Has, Next, Origin, State},
    workload::Workload,
};
use failures::Suspects;
use tally::{Found, NewAgents, Tally};

pub use tally::{OldPod, WorkloadPods};

/// How many workloads of an Instrumentation are named.
const WORST: usize = 10;

/// The code of workloads that are silent and nothing else.
const SILENT: &str = "Silent";

/// What is known in addition to the pods.
pub struct Known<'k> {
    /// What decisions depend on.
    pub around: Around<'k>,
    /// When each Instrumentation was created, by `namespace/name`.
    pub created: &'k HashMap<String, Timestamp>,
    /// Whether the webhook configuration sends a new pod to the webhook.
    pub is_selected: &'k IsSelected<'k>,
    /// What a source reports to arrive; `None` if there is none.
    pub heard: Option<&'k Heard>,
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
    let groups = census.groups().collect();
    Counter::new(true).update(groups, known, doubts, Counted::default())
}

/// Counts pods again and again, and of their workloads only those that may have changed.
#[derive(Debug, Default)]
pub struct Counter {
    /// Whether what restarts need is kept.
    keeps_pods: bool,
    /// What is known of workloads in addition to their rows, by their keys.
    workloads: HashMap<Box<str>, Share>,
    /// The agents whose image is on no node, for which the commands of other workloads are taken back.
    unpulled: BTreeMap<Unpulled, NotAdvised>,
}

/// An agent whose image cannot be pulled: `namespace/name` of the Instrumentation, and the language.
type Unpulled = (String, &'static str);

/// What has changed since pods were counted last, in addition to themselves.
#[derive(Debug)]
pub enum Changed<'c> {
    /// Anything.
    Everything,
    /// Some namespaces with what is in them.
    Namespaces(HashSet<&'c str>),
}

/// What a workload contributes to the whole.
#[derive(Debug, Default)]
struct Share {
    /// By `namespace/name`. They are few, and a map of each workload would have room for a dozen.
    instrumentations: Vec<(String, OfInstrumentation)>,
    /// Whether its decision reads Instrumentations of other namespaces.
    reads_elsewhere: bool,
    is_suspect: bool,
    unpulled: BTreeMap<Unpulled, NotAdvised>,
}

impl Share {
    /// Returns what an Instrumentation has of the workload.
    fn of(&mut self, name: String) -> &mut OfInstrumentation {
        let all = &mut self.instrumentations;
        let known = all.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or_else(|| {
            all.reserve_exact(1);
            all.push((name, OfInstrumentation::default()));
            all.len() - 1
        });
        &mut all[at].1
    }
}

impl Counter {
    /// Returns one that has counted nothing yet. `keeps_pods` is whether what restarts need is counted, too.
    pub fn new(keeps_pods: bool) -> Self {
        Self { keeps_pods, ..Self::default() }
    }

    /// Counts the pods of those workloads that may have changed. Returns how many these are, too.
    pub fn count(
        &mut self,
        census: &mut Census,
        known: &Known<'_>,
        doubts: &dyn Doubts,
        changed: &Changed<'_>,
        last: Counted,
    ) -> (Counted, usize) {
        let pods = census.take_changed();
        let (groups, last): (Vec<_>, _) = match changed {
            Changed::Everything => {
                self.workloads.clear();
                (census.groups().collect(), Counted::default())
            }
            Changed::Namespaces(namespaces) => {
                let elsewhere = |group: &Group<'_>| {
                    let share = self.workloads.get(group.key());
                    !namespaces.is_empty() && share.is_some_and(|share| share.reads_elsewhere)
                };
                let is_due = |group: &Group<'_>| {
                    !pods.contains(group.key())
                        && (namespaces.contains(group.namespace()) || elsewhere(group))
                };
                let own = pods.iter().map(|key| census.group(key).unwrap_or(Group::without_pods(key)));
                (own.chain(census.groups().filter(is_due)).collect(), last)
            }
        };
        let (count, unpulled) = (groups.len(), self.unpulled.clone());
        let counted = self.update(groups, known, doubts, last);
        let is_same = self.unpulled.keys().eq(unpulled.keys());
        if is_same || matches!(changed, Changed::Everything) {
            return (counted, count);
        }
        self.count(census, known, doubts, &Changed::Everything, Counted::default())
    }

    fn update(
        &mut self,
        mut groups: Vec<Group<'_>>,
        known: &Known<'_>,
        doubts: &dyn Doubts,
        last: Counted,
    ) -> Counted {
        let counting = Counting { known, doubts };
        let Counted { report: Report { mut workloads, .. }, mut pods, .. } = last;
        // In the order of the rows: if there are none yet, each is added at the end.
        groups.sort_by_cached_key(|group| group.workload());
        for group in groups {
            // What is noted while one is counted is several times as large as its row.
            let (share, counted) = counting.count(group);
            let workload = group.workload();
            let found = workloads.binary_search_by(|row| row.workload.cmp(&workload));
            if let Ok(at) = found {
                workloads.remove(at);
                self.keeps_pods.then(|| pods.remove(at));
            }
            self.workloads.remove(group.key());
            if let Some((row, own)) = counted {
                let (Ok(at) | Err(at)) = found;
                workloads.insert(at, row);
                self.keeps_pods.then(|| pods.insert(at, own));
            }
            if !group.members.is_empty() {
                self.workloads.insert(group.key().into(), share);
            }
        }
        let mut instrumentations: BTreeMap<&str, (Counts, Bad<'_>)> = BTreeMap::new();
        let mut suspects = Vec::new();
        self.unpulled.clear();
        for (key, share) in &self.workloads {
            self.unpulled.extend(share.unpulled.clone());
            suspects.extend(share.is_suspect.then(|| Group::without_pods(key).workload()));
            for (name, own) in &share.instrumentations {
                let (counts, worst) = instrumentations.entry(name).or_default();
                counts.add_all(own.pods);
                let is_bad = own.bad.matched > 0;
                worst.extend(is_bad.then(|| (Group::without_pods(key).workload(), own)));
            }
        }
        let instrumentations =
            instrumentations.into_iter().map(|(name, (counts, worst))| row(name, counts, worst));
        self.unpulled.iter().for_each(|(agent, fails)| withhold(&mut workloads, agent, fails));
        silent::compare(&mut workloads);
        let paused = known.around.catalogue.pauses().iter().map(PauseRow::from).collect();
        let report =
            Report { paused, instrumentations: instrumentations.collect(), workloads, ..Report::default() };
        Counted { report, pods, suspects }
    }
}

struct Counting<'k> {
    known: &'k Known<'k>,
    doubts: &'k dyn Doubts,
}

/// Takes back the commands of workloads whose new pods would have an image that cannot be pulled.
fn withhold(workloads: &mut [WorkloadRow], (name, language): &Unpulled, fails: &NotAdvised) {
    let would_get = |row: &&mut WorkloadRow| {
        let mut outdated = row.languages.iter().filter(|one| one.state.is_outdated());
        outdated.any(|one| one.language == *language && one.instrumentation.as_ref() == Some(name))
    };
    for row in workloads.iter_mut().filter(|row| row.not_advised.is_none()).filter(would_get) {
        row.withhold(Some(fails.clone()));
    }
}

/// A pod of a workload.
#[derive(Clone, Copy)]
struct PodOf<'g> {
    workload: &'g Workload,
    name: &'g str,
    group: Group<'g>,
    member: &'g Member,
}

/// The pods of a workload that use or would use an Instrumentation.
#[derive(Debug, Default)]
struct OfInstrumentation {
    pods: Counts,
    /// The failing, stale, missed and silent ones.
    bad: Counts,
    /// The worst of those that are not only silent.
    worst: Option<Worst>,
}

/// The workloads of an Instrumentation with failing, stale, missed or silent pods.
type Bad<'w> = Vec<(Workload, &'w OfInstrumentation)>;

/// The code of why a pod fails, its state, and the code of the reason for it; see [`order`].
type Worst = (Option<Reverse<&'static str>>, State, Reverse<&'static str>);

impl Counting<'_> {
    /// Counts the pods of a workload. No row if none has an agent or opts in.
    fn count(&self, group: Group<'_>) -> (Share, Option<(WorkloadRow, WorkloadPods)>) {
        let workload = group.workload();
        let mut tally = Tally::default();
        let shapes = group.shapes();
        let suspects = Suspects::of(group.members, &shapes);
        let mut share = Share { is_suspect: suspects.are_any(), ..Share::default() };
        let mut nexts: HashMap<(Option<ShapeKey>, &[Decided]), _> = HashMap::new();
        let mut by_shape: HashMap<Option<ShapeKey>, Decision> = HashMap::new();
        for member in group.members {
            let key = member.shape();
            let first = || match key.and_then(|key| shapes.get(&key)) {
                None => Decision::unknown("there are too many different pods to keep all of them in memory"),
                // What is stored by the API server can be read; if not, there is nothing to compare with.
                Some(pod) => Decision::of(pod, &workload.namespace, &self.known.around, self.doubts)
                    .unwrap_or_default(),
            };
            let decision = by_shape.entry(key).or_insert_with(first);
            let found = || (decision.next(member.decided()), tally::agents(&decision.next(&[])));
            let (next, agents) = nexts.entry((key, member.decided())).or_insert_with(found);
            share.reads_elsewhere |= decision.reads_elsewhere(&workload.namespace);
            let pod = PodOf { workload: &workload, name: group.name_of(member), group, member };
            self.count_pod(pod, &suspects, next, agents, &mut tally, &mut share);
        }
        let counted = (!tally.is_empty()).then(|| tally.rows(workload));
        (share, counted)
    }

    fn count_pod(
        &self,
        pod: PodOf<'_>,
        suspects: &Suspects<'_>,
        next: &NextPod,
        new: &NewAgents,
        tally: &mut Tally,
        share: &mut Share,
    ) {
        let agents = pod.member.agents();
        let has = agents.unwrap_or_default().iter().map(|agent| agent.language);
        let languages: BTreeSet<&str> = has.chain(next.languages.keys().copied()).collect();
        if languages.is_empty() {
            return;
        }
        let failures = suspects.failures(pod.member);
        let mut of_instrumentations: BTreeMap<String, (Worst, Option<Data>)> = BTreeMap::new();
        let mut found = Vec::new();
        for language in LANGUAGES.iter().map(|row| row.name).filter(|name| languages.contains(name)) {
            let mut one = self.look(pod, next, language);
            let mut own =
                failures.iter().filter(|failure| failure.language == language && failure.is_counted());
            let own = own.next();
            one.failing = own.map(failures::Found::code);
            if let Some(name) = &one.instrumentation {
                if let Some(failure) = own.filter(|own| own.is_of_image() && one.state == State::Injected) {
                    let fails = || NotAdvised::agent_fails(pod.name, failure.code());
                    share.unpulled.entry((name.clone(), language)).or_insert_with(fails);
                }
                let own = (one.failing.map(Reverse), one.state, Reverse(one.cause.code));
                let (worst, data) = of_instrumentations.entry(name.clone()).or_insert((own, None));
                (*worst, *data) = (own.max(*worst), one.data.max(*data));
            }
            found.push((language, one));
        }
        for (name, (worst, data)) in of_instrumentations {
            share.of(name).add(worst, data);
        }
        tally.add(pod, found, &failures, new, next.paused());
    }

    fn look(&self, pod: PodOf<'_>, next: &NextPod, language: &'static str) -> Found {
        let agents = pod.member.agents();
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
                &pod.workload.namespace,
                &next.labels,
                !next.own.is_empty(),
            ),
            created: pod.member.created,
            instrumentation: next_name.as_ref().and_then(|name| self.known.created.get(name)).copied(),
            opts_in_itself: asks_itself,
        };
        let is_paused_agent = matches!((has, next_state), (Has::Agent(_), Next::Paused(_)));
        let is_lost = matches!((has, next_state), (Has::Agent(_), Next::Skipped(_)));
        let cause = match doubt {
            Some(why) => Cause::not_readable(why),
            None => Cause::of(state, has, next_state, next_agent, circumstances),
        };
        let is_own = matches!(has, Has::Agent(_));
        let own = agent.and_then(|agent| agent.instrumentation.as_deref()).map(str::to_owned);
        let data = self.known.heard.filter(|_| is_own).map(|heard| heard.of(pod.group, pod.member, language));
        let sender = pod.member.senders().iter().find(|sender| sender.language == language);
        let problem = sender.and_then(|sender| sender.problem.as_deref());
        Found {
            state,
            cause,
            instrumentation: next_name.or(own),
            image: agent.and_then(|agent| agent.image.as_deref()).map(str::to_owned),
            is_paused_agent,
            is_lost: is_lost && state.is_outdated(),
            failing: None,
            silence: problem.filter(|_| matches!(data, Some(Data::Silent(_)))).map(silent::of_problem),
            data,
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
    fn add(&mut self, pod: Worst, data: Option<Data>) {
        let (failing, state, _) = pod;
        let is_failing = usize::from(failing.is_some());
        self.pods.add(state);
        self.pods.failing += is_failing;
        self.pods.hear(data);
        let (is_bad, is_silent) =
            (is_failing > 0 || state.is_outdated(), matches!(data, Some(Data::Silent(_))));
        if is_bad || is_silent {
            self.bad.add(state);
            self.bad.failing += is_failing;
            self.bad.hear(data);
        }
        if is_bad {
            self.worst = self.worst.max(Some(pod));
        }
    }
}

fn row(name: &str, pods: Counts, mut worst: Bad<'_>) -> InstrumentationRow {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    worst.sort_by(|(a, own), (b, other)| {
        let most = |own: &OfInstrumentation| Reverse((own.bad.failing, own.bad.matched));
        // The status may name those of the Instrumentation's namespace alone.
        (a.namespace != namespace, most(own), a).cmp(&(b.namespace != namespace, most(other), b))
    });
    let more = worst.len().saturating_sub(WORST);
    worst.truncate(WORST);
    let one = |(workload, OfInstrumentation { bad, worst, .. }): (Workload, &OfInstrumentation)| {
        let (failing, code) = worst.map_or((None, SILENT), |(failing, _, Reverse(code))| (failing, code));
        WorstWorkload {
            workload,
            stale: bad.stale,
            missed: bad.missed,
            failing: bad.failing,
            silent: bad.silent,
            reason: failing.map_or(code, |Reverse(failing)| failing).to_owned(),
        }
    };
    InstrumentationRow {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        pods,
        workloads: worst.into_iter().map(one).collect(),
        more,
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
