//! The first step: decides which languages are injected into which containers.

use std::rc::Rc;

use crate::{
    annotation::{Annotations, Ask, MOST_AGENTS},
    compiled::Compiled,
    containers::{self, Listed, Places},
    finding::{Finding, Used},
    injection::Plan,
    input::Input,
    language::{LANGUAGES, Language},
    mark,
    note::Note,
    pod::Pod,
    pod_image::PodImage,
    reason::{Annotation, Reason, Unknown},
    required_nodes,
    select::Search,
    workload::{self, OwnerQuery},
};
use otel_webhook_api::ANNOTATION_PREFIX;

/// The decision for a pod.
#[derive(Debug)]
pub struct Decision<'p> {
    /// The input.
    pub(super) input: Input<'p>,
    /// The annotations of pod and namespace.
    pub(super) annotations: Annotations<'p>,
    /// One plan for each language to inject.
    pub(super) plans: Vec<Plan<'p>>,
    /// The findings about the other languages.
    pub(super) findings: Vec<Finding>,
}

/// Decides what is injected into a pod.
pub fn decide(input: Input<'_>) -> Decision<'_> {
    let known = input.catalogue.namespace(input.namespace);
    let annotations = Annotations::new(input.pod, known);
    let mut decision = Decision { input, annotations, plans: Vec::new(), findings: Vec::new() };
    if !decision.annotations.is_empty() || may_be_selected(&input) {
        let asked = decision.asked();
        let wanted = decision.select(asked);
        let wanted = decision.tell_apart(wanted);
        let wanted = decision.check_lists(wanted);
        for language in wanted {
            decision.plan(language);
        }
    }
    decision
}

/// Whether there is an Instrumentation whose selector may opt the pod in.
fn may_be_selected(input: &Input<'_>) -> bool {
    let default = input.settings.default_instrumentation.as_ref().map(|default| &*default.namespace);
    let namespaces = [Some(input.namespace), default].into_iter().flatten();
    let mut known = namespaces.filter_map(|name| input.catalogue.namespace(name));
    known.any(|known| known.instrumentations.opting_in().next().is_some())
}

impl<'p> Decision<'p> {
    /// Whether pod or namespace opts in to anything.
    pub fn asks(&self) -> bool {
        !self.plans.is_empty() || !self.findings.is_empty()
    }

    /// The owners that have to be looked up.
    pub fn queries(&self) -> Vec<OwnerQuery<'p>> {
        let Some(_) = self.plans.first() else {
            return Vec::new();
        };
        let with_uids = self.plans.iter().any(|plan| plan.instrumentation.resource.with_uids);
        workload::queries(self.input.pod, self.input.namespace, with_uids)
    }

    /// The languages that are opted in to and can be injected into such a pod.
    fn asked(&mut self) -> Vec<Asked<'p>> {
        let mut asked = Vec::new();
        let unfit = unfit(self.input.pod);
        let is_mirror = self.input.pod.is_mirror();
        let is_selectable = may_be_selected(&self.input);
        for language in LANGUAGES {
            let by = if self.is_by_pod(language) { By::Pod } else { By::Namespace };
            // A namespace or a selector opts in all of its pods, so there is no finding about those that cannot
            // be injected.
            if is_mirror && by != By::Pod {
                continue;
            }
            let (by, choices) = match self.annotations.said(language.inject) {
                Some((annotation, value)) => match Ask::parse(value) {
                    Ask::No => {
                        self.leave_out(language.into(), None, Reason::SwitchedOff { annotation });
                        continue;
                    }
                    _ if language.names_agents() => match Choice::agents(annotation, value) {
                        Ok(choices) => (by, choices),
                        Err(reason) => {
                            self.leave_out(language.into(), None, reason);
                            continue;
                        }
                    },
                    ask => (by, vec![Choice::Value(ask)]),
                },
                None if !is_selectable => continue,
                None => match self.search(language.into()).selected() {
                    Some(selected) => (By::Selector, vec![Choice::Selected(selected.map(|found| &**found))]),
                    None => continue,
                },
            };
            let reason = if is_mirror {
                Some(Reason::MirrorPod)
            } else if self.input.settings.languages.has(language) {
                unfit.clone()
            } else {
                Some(Reason::LanguageDisabled { language: language.name })
            };
            for choice in choices {
                let subject = Subject { language, agent: choice.agent() };
                match reason.clone() {
                    Some(reason) => self.leave_out_of(choice.note(), subject, None, reason),
                    None => asked.push(Asked { subject, by, choice }),
                }
            }
        }
        asked
    }

    fn is_by_pod(&self, language: &Language) -> bool {
        self.annotations.of_pod(language.inject).is_some_and(|value| !value.is_empty())
    }

    fn search(&self, Subject { language, agent }: Subject<'p>) -> Search<'p> {
        Search {
            agent,
            catalogue: self.input.catalogue,
            namespace: self.input.namespace,
            pod: self.input.pod,
            language,
            settings: self.input.settings,
        }
    }

    /// Chooses the Instrumentation of each language; only a language without one is skipped, with its
    /// reason (D21).
    fn select(&mut self, asked: Vec<Asked<'p>>) -> Vec<Wanted<'p>> {
        let mut wanted = Vec::with_capacity(asked.len());
        let mut common: Option<Rc<Listed<'p>>> = None;
        for Asked { subject, by, choice } in asked {
            let found = match choice {
                Choice::Value(ask) => self.search(subject).find(ask).map(|found| found.map(|found| &**found)),
                Choice::Selected(found) => Some(found),
            };
            match found {
                None => {}
                Some(Err(reason)) => self.leave_out(subject, None, reason),
                Some(Ok(instrumentation)) => wanted.push(Wanted {
                    subject,
                    instrumentation,
                    listed: self.listed(subject.language, &mut common),
                    by,
                }),
            }
        }
        wanted
    }

    /// The lists of a language. Those that have only the common list share it.
    fn listed(&self, language: &Language, common: &mut Option<Rc<Listed<'p>>>) -> Rc<Listed<'p>> {
        let read = || Rc::new(Listed::of(language, &self.annotations));
        if Listed::has_own(language, &self.annotations) {
            return read();
        }
        Rc::clone(common.get_or_insert_with(read))
    }

    /// With several languages each needs a list of its containers. A language that only
    /// the namespace opts in to is ignored if the pod itself opts in to another one (D8), and
    /// one that only a selector opts in to if pod or namespace opt in to another one (D36).
    fn tell_apart(&mut self, wanted: Vec<Wanted<'p>>) -> Vec<Wanted<'p>> {
        if is_clear(&wanted) {
            return wanted;
        }
        let by = wanted.iter().map(|one| one.by).max().unwrap_or(By::Pod);
        let own: Vec<String> = names(wanted.iter().filter(|one| one.by == by));
        if wanted.iter().all(|one| one.by == by) {
            let reason = list_missing(&wanted);
            return self.leave_all_out(wanted, &reason);
        }
        // Those with a list stay, if every remaining language then has its own containers.
        let (mut stay, mut back): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|one| one.by == by || one.listed.is_there());
        if !is_clear(&stay) {
            back.extend(stay.extract_if(.., |one| one.by != by));
        }
        for one in back {
            let languages = own.clone();
            let reason = match one.by {
                By::Selector => {
                    let name = one.instrumentation.name.clone();
                    Reason::SelectorLanguageIgnored { name, languages }
                }
                By::Namespace | By::Pod => Reason::NamespaceLanguageIgnored { languages },
            };
            self.leave_out(one.subject, Some(one.instrumentation), reason);
        }
        if is_clear(&stay) {
            return stay;
        }
        let reason = list_missing(&stay);
        self.leave_all_out(stay, &reason)
    }

    /// A name that is listed twice may be a mistake for another one, in any of the
    /// languages, so nothing is injected.
    fn check_lists(&mut self, wanted: Vec<Wanted<'p>>) -> Vec<Wanted<'p>> {
        let repeated =
            wanted.iter().find_map(|one| Some((one.listed.repeated()?, one.subject.language.name)));
        let Some(((container, annotations), language)) = repeated else {
            return wanted;
        };
        let container = container.to_owned();
        self.leave_all_out(wanted, &Reason::ContainerNamedTwice { container, language, annotations })
    }

    fn leave_all_out(&mut self, wanted: Vec<Wanted<'p>>, reason: &Reason) -> Vec<Wanted<'p>> {
        for one in wanted {
            self.leave_out_of(one.note(), one.subject, Some(one.instrumentation), reason.clone());
        }
        Vec::new()
    }

    fn plan(&mut self, wanted: Wanted<'p>) {
        let by = wanted.note();
        let Wanted { subject, instrumentation, listed, .. } = wanted;
        let language = subject.language;
        if let Some(pause) = self.input.catalogue.paused(self.input.namespace, instrumentation) {
            return self.leave_out_of(by, subject, Some(instrumentation), Reason::paused(pause));
        }
        // It was found for the subject, so it has that part.
        let part = instrumentation.part(language, subject.agent).unwrap_or(language.index());
        let is_without_image =
            instrumentation.is_stored_as_beta && instrumentation.parts[part].has_default_image;
        if self.input.settings.require_images && is_without_image {
            let name = instrumentation.name.clone();
            let reason = Reason::ImageRequired { name, field: format!("spec.{}.image", language.field) };
            return self.leave_out_of(by, subject, Some(instrumentation), reason);
        }
        if let Err(reason) = listed.check(self.input.pod) {
            return self.leave_out_of(by.clone(), subject, Some(instrumentation), reason);
        }
        let places = listed.places(self.input.pod, &self.input.settings.helpers);
        if !places.unknown.is_empty() {
            let known = containers::known(self.input.pod);
            let more = Some(places.more_unknown).filter(|more| *more > 0).map(Unknown::More);
            let named = places.unknown.iter().map(|name| Unknown::One((*name).to_owned()));
            for container in named.chain(more) {
                let reason = Reason::ContainerNotFound { container, known: known.clone() };
                self.leave_out_of(by.clone(), subject, Some(instrumentation), reason);
            }
        }
        let (fit, unfit): (Vec<_>, Vec<_>) = containers::in_order(places.found)
            .into_iter()
            .partition(|place| language.in_init_containers || !place.init);
        for place in unfit {
            let container = super::edit::container_at(self.input.pod, place).name.to_string();
            self.leave_out(subject, Some(instrumentation), Reason::InitContainer { container });
        }
        let Places { first, note, .. } = places;
        let notes = by.into_iter().chain(note).collect();
        let PodImage { image, notes: image_notes } = self.image(instrumentation, part);
        self.plans.push(Plan {
            language,
            instrumentation,
            part,
            image,
            image_notes,
            targets: fit,
            first_listed: first,
            notes,
        });
    }

    /// The image of the agent of a part in the pod.
    fn image(&self, instrumentation: &'p Compiled, part: usize) -> PodImage<'p> {
        PodImage::of(instrumentation, part, self.input.catalogue.namespace(self.input.namespace))
    }

    fn leave_out(&mut self, subject: Subject<'_>, instrumentation: Option<&'p Compiled>, reason: Reason) {
        self.leave_out_of(None, subject, instrumentation, reason);
    }

    /// Skips a language, with a note about its opt-in.
    fn leave_out_of(
        &mut self,
        note: Option<Note>,
        Subject { language, agent }: Subject<'_>,
        instrumentation: Option<&'p Compiled>,
        reason: Reason,
    ) {
        let container = match &reason {
            Reason::ContainerNotFound { container: Unknown::One(container), .. }
            | Reason::InitContainer { container } => Some(container.clone()),
            _ => None,
        };
        let used = instrumentation.and_then(|one| {
            let part = one.part(language, agent)?;
            Some(Used::of(one, part, self.image(one, part).image))
        });
        self.findings.push(Finding {
            language: language.name,
            agent: agent.map(Into::into),
            container,
            instrumentation: used,
            reason,
            notes: note.into_iter().collect(),
        });
    }
}

/// Why nothing can be injected into a pod, in any language.
fn unfit(pod: &Pod<'_>) -> Option<Reason> {
    if pod.spec.containers.is_empty() {
        return Some(Reason::NoContainers);
    }
    if let Some(sign) = mark::of(pod) {
        return Some(Reason::AlreadyInjected { sign });
    }
    required_nodes::is_windows_only(&pod.spec).then_some(Reason::WindowsPod)
}

/// What opts in to a language; the last one overrides the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The selector of the Instrumentation.
    Selector,
    /// An annotation or a label of the namespace.
    Namespace,
    /// An annotation or a label of the pod.
    Pod,
}

/// What is injected: a language, or an agent of `spec.agents`.
#[derive(Clone, Copy)]
pub struct Subject<'p> {
    /// The language.
    pub language: &'static Language,
    /// The agent, if the language stands for those.
    pub agent: Option<&'p str>,
}

impl From<&'static Language> for Subject<'_> {
    fn from(language: &'static Language) -> Self {
        Self { language, agent: None }
    }
}

/// A language that is opted in to, and by what.
pub struct Asked<'p> {
    /// The language.
    pub subject: Subject<'p>,
    /// What opts in.
    pub by: By,
    /// The choice of its Instrumentation.
    pub choice: Choice<'p>,
}

/// The choice of an Instrumentation.
pub enum Choice<'p> {
    /// By the value of an annotation or a label.
    Value(Ask<'p>),
    /// By the selectors: the Instrumentation, or why none is used.
    Selected(Result<&'p Compiled, Reason>),
}

impl<'p> Choice<'p> {
    /// The choices for an annotation that names agents.
    ///
    /// # Errors
    /// The reason if it names too many.
    pub fn agents(annotation: Annotation, value: &'p str) -> Result<Vec<Self>, Reason> {
        let asked = Ask::agents(value);
        if asked.len() > MOST_AGENTS {
            return Err(Reason::TooManyAgents { annotation, most: MOST_AGENTS });
        }
        Ok(asked.into_iter().map(Self::Value).collect())
    }

    /// The agent of `spec.agents` that is named.
    pub fn agent(&self) -> Option<&'p str> {
        match self {
            Self::Value(Ask::Agent { name }) => Some(name),
            Self::Value(_) | Self::Selected(_) => None,
        }
    }
}

impl Choice<'_> {
    /// The note about the opt-in, if only a selector opts in.
    pub fn note(&self) -> Option<Note> {
        match self {
            Self::Selected(Ok(used)) => Some(Note::OptedInBySelector { name: used.name.clone() }),
            Self::Selected(Err(_)) | Self::Value(_) => None,
        }
    }
}

/// A language that is opted in to, with its Instrumentation.
pub struct Wanted<'p> {
    /// The language.
    pub subject: Subject<'p>,
    /// Its Instrumentation.
    pub instrumentation: &'p Compiled,
    /// The lists of its containers.
    pub listed: Rc<Listed<'p>>,
    /// What opts in.
    pub by: By,
}

impl Wanted<'_> {
    /// The note about the opt-in, if only a selector opts in.
    pub fn note(&self) -> Option<Note> {
        let name = || self.instrumentation.name.clone();
        (self.by == By::Selector).then(|| Note::OptedInBySelector { name: name() })
    }
}

/// Why nothing is injected: each language needs a list of its containers.
pub fn list_missing(wanted: &[Wanted<'_>]) -> Reason {
    let without = wanted.iter().filter(|one| !one.listed.is_there());
    let missing = without.map(|one| [ANNOTATION_PREFIX, one.subject.language.containers].concat());
    let missing = unique(missing);
    Reason::ContainerListMissing { languages: names(wanted.iter()), missing }
}

/// Whether the containers of each language are known.
pub fn is_clear(wanted: &[Wanted<'_>]) -> bool {
    // All agents have the same list.
    let Some(first) = wanted.first() else { return true };
    let is_same = |one: &Wanted<'_>| one.subject.language.id == first.subject.language.id;
    wanted.iter().all(is_same) || wanted.iter().all(|one| one.listed.is_there())
}

/// The names of languages, each once.
pub fn names<'w, 'p: 'w>(wanted: impl Iterator<Item = &'w Wanted<'p>>) -> Vec<String> {
    unique(wanted.map(|one| one.subject.language.name.to_owned()))
}

/// The different ones of a list in the order of languages.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}
