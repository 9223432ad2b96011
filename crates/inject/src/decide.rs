//! The first step: decides which languages are injected into which containers.

use std::rc::Rc;

use super::{
    annotation::{Annotations, Ask},
    compiled::Compiled,
    containers::{self, Listed, Places},
    finding::{Finding, Used},
    injection::Plan,
    input::Input,
    language::{LANGUAGES, Language},
    mark,
    pod::Pod,
    reason::{Reason, Unknown},
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

/// A language that is opted in to, with its Instrumentation.
struct Wanted<'p> {
    language: &'static Language,
    instrumentation: &'p Compiled,
    listed: Rc<Listed<'p>>,
    by_pod: bool,
}

/// Decides what is injected into a pod.
pub fn decide(input: Input<'_>) -> Decision<'_> {
    let known = input.catalogue.namespace(input.namespace);
    let annotations = Annotations::new(input.pod, known.map_or(&[], |known| &known.annotations));
    let mut decision = Decision { input, annotations, plans: Vec::new(), findings: Vec::new() };
    if !decision.annotations.is_empty() {
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
    fn asked(&mut self) -> Vec<(&'static Language, Ask<'p>)> {
        let mut asked = Vec::new();
        let unfit = unfit(self.input.pod);
        let is_mirror = self.input.pod.is_mirror();
        for language in LANGUAGES {
            // A namespace opts in all of its pods, so there is no finding about those that cannot be
            // injected.
            if is_mirror && self.annotations.of_pod(language.inject).is_none_or(str::is_empty) {
                continue;
            }
            let Some((annotation, value)) = self.annotations.said(language.inject) else { continue };
            let ask = Ask::parse(value);
            let reason = match ask {
                Ask::No => Some(Reason::SwitchedOff { annotation }),
                _ if is_mirror => Some(Reason::MirrorPod),
                _ if !self.input.settings.languages.has(language) => {
                    Some(Reason::LanguageDisabled { language: language.name })
                }
                _ => unfit.clone(),
            };
            match reason {
                Some(reason) => self.leave_out(language, None, reason),
                None => asked.push((language, ask)),
            }
        }
        asked
    }

    /// Chooses the Instrumentation of each language; only a language without one is skipped, with its
    /// reason (D21).
    fn select(&mut self, asked: Vec<(&'static Language, Ask<'p>)>) -> Vec<Wanted<'p>> {
        let mut wanted = Vec::with_capacity(asked.len());
        let mut common: Option<Rc<Listed<'p>>> = None;
        for (language, ask) in asked {
            let search = Search {
                catalogue: self.input.catalogue,
                namespace: self.input.namespace,
                pod: self.input.pod,
                language,
                settings: self.input.settings,
            };
            match search.find(ask) {
                None => {}
                Some(Err(reason)) => self.leave_out(language, None, reason),
                Some(Ok(instrumentation)) => wanted.push(Wanted {
                    language,
                    instrumentation,
                    listed: self.listed(language, &mut common),
                    by_pod: self.annotations.of_pod(language.inject).is_some_and(|value| !value.is_empty()),
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
    /// the namespace opts in to is ignored if the pod itself opts in to another one (D8).
    fn tell_apart(&mut self, wanted: Vec<Wanted<'p>>) -> Vec<Wanted<'p>> {
        if is_clear(&wanted) {
            return wanted;
        }
        let own: Vec<String> = names(wanted.iter().filter(|one| one.by_pod));
        if own.is_empty() || own.len() == wanted.len() {
            let reason = list_missing(&wanted);
            return self.leave_all_out(wanted, &reason);
        }
        // Those with a list stay, if every remaining language then has its own containers.
        let (mut stay, mut back): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|one| one.by_pod || one.listed.is_there());
        if !is_clear(&stay) {
            back.extend(stay.extract_if(.., |one| !one.by_pod));
        }
        for one in back {
            let reason = Reason::NamespaceLanguageIgnored { languages: own.clone() };
            self.leave_out(one.language, Some(one.instrumentation), reason);
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
        let repeated = wanted.iter().find_map(|one| Some((one.listed.repeated()?, one.language.name)));
        let Some(((container, annotations), language)) = repeated else {
            return wanted;
        };
        let container = container.to_owned();
        self.leave_all_out(wanted, &Reason::ContainerNamedTwice { container, language, annotations })
    }

    fn leave_all_out(&mut self, wanted: Vec<Wanted<'p>>, reason: &Reason) -> Vec<Wanted<'p>> {
        for one in wanted {
            self.leave_out(one.language, Some(one.instrumentation), reason.clone());
        }
        Vec::new()
    }

    fn plan(&mut self, wanted: Wanted<'p>) {
        let Wanted { language, instrumentation, listed, .. } = wanted;
        if let Err(reason) = listed.check(self.input.pod) {
            return self.leave_out(language, Some(instrumentation), reason);
        }
        let places = listed.places(self.input.pod, &self.input.settings.helpers);
        if !places.unknown.is_empty() {
            let known = containers::known(self.input.pod);
            let more = Some(places.more_unknown).filter(|more| *more > 0).map(Unknown::More);
            let named = places.unknown.iter().map(|name| Unknown::One((*name).to_owned()));
            for container in named.chain(more) {
                let reason = Reason::ContainerNotFound { container, known: known.clone() };
                self.leave_out(language, Some(instrumentation), reason);
            }
        }
        let (fit, unfit): (Vec<_>, Vec<_>) = containers::in_order(places.found)
            .into_iter()
            .partition(|place| language.in_init_containers || !place.init);
        for place in unfit {
            let container = super::edit::container_at(self.input.pod, place).name.to_string();
            self.leave_out(language, Some(instrumentation), Reason::InitContainer { container });
        }
        let Places { first, note, .. } = places;
        self.plans.push(Plan { language, instrumentation, targets: fit, first_listed: first, note });
    }

    fn leave_out(&mut self, language: &Language, instrumentation: Option<&Compiled>, reason: Reason) {
        let container = match &reason {
            Reason::ContainerNotFound { container: Unknown::One(container), .. }
            | Reason::InitContainer { container } => Some(container.clone()),
            _ => None,
        };
        self.findings.push(Finding {
            language: language.name,
            container,
            instrumentation: instrumentation.map(|one| Used::of(one, language)),
            reason,
            notes: Vec::new(),
        });
    }
}

fn list_missing(wanted: &[Wanted<'_>]) -> Reason {
    let without = wanted.iter().filter(|one| !one.listed.is_there());
    let missing = without.map(|one| [ANNOTATION_PREFIX, one.language.containers].concat()).collect();
    Reason::ContainerListMissing { languages: names(wanted.iter()), missing }
}

/// Whether the containers of each language are known.
fn is_clear(wanted: &[Wanted<'_>]) -> bool {
    wanted.len() < 2 || wanted.iter().all(|one| one.listed.is_there())
}

fn names<'w, 'p: 'w>(wanted: impl Iterator<Item = &'w Wanted<'p>>) -> Vec<String> {
    wanted.map(|one| one.language.name.to_owned()).collect()
}

/// Why nothing can be injected into a pod, in any language.
fn unfit(pod: &Pod<'_>) -> Option<Reason> {
    if pod.spec.containers.is_empty() {
        return Some(Reason::NoContainers);
    }
    if let Some(sign) = mark::of(pod) {
        return Some(Reason::AlreadyInjected { sign });
    }
    pod.is_windows().then_some(Reason::WindowsPod)
}
