//! Chooses the Instrumentation, or returns the reason why none is used.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use super::{
    annotation::{Annotations, Ask},
    catalogue::{Catalogue, Namespace, Stored},
    compiled::Compiled,
    input::Input,
    language::{LANGUAGES, Language},
    pod::Pod,
    reason::{ObjectName, Reason},
    selector::Selector,
    settings::{CrossNamespace, Settings},
    shown::Names,
};
use otel_webhook_api::InstrumentationSpec;

/// Whether pods of a namespace may use an Instrumentation. Messages do not show Instrumentations that they
/// may not use.
fn may_use(settings: &Settings, namespace: &str, stored: &Stored) -> bool {
    let name = stored.name();
    *name.namespace == *namespace
        || settings.default_instrumentation.as_ref() == Some(name)
        || match settings.cross_namespace {
            CrossNamespace::Allow => true,
            CrossNamespace::Granted => stored.allowed().has(namespace),
            CrossNamespace::Deny => false,
        }
}

/// Names of the Instrumentations of a namespace that may match a pod with the
/// same priority as one to be stored there. Whether such a pod exists is unknown.
pub fn rivals(catalogue: &Catalogue, namespace: &str, name: &str, spec: &InstrumentationSpec) -> Vec<String> {
    let selector = spec.selector.as_ref().and_then(|selector| Selector::new(selector).ok().flatten());
    let priority = spec.priority.unwrap_or_default();
    let is_rival = |other: &Compiled| {
        let may_meet = match (&selector, &other.selector) {
            (None, None) => true,
            (Some(one), Some(other)) => one.may_meet(other),
            _ => false,
        };
        &*other.name.name != name && other.priority == priority && may_meet
    };
    let stored = catalogue.namespace(namespace).into_iter().flat_map(|known| &known.instrumentations);
    let rivals = stored.filter_map(|stored| match stored {
        Stored::Ready(ready) if is_rival(ready) => Some(ready.name.name.to_string()),
        _ => None,
    });
    rivals.collect()
}

/// The languages with a named Instrumentation that has a selector that does
/// not match. It is used, which may be a mistake.
pub fn unselected<'p>(input: &Input<'p>) -> Vec<(&'static Language, &'p ObjectName)> {
    let known = input.catalogue.namespace(input.namespace);
    let annotations = Annotations::new(input.pod, known);
    let named = LANGUAGES.into_iter().filter(|language| !language.names_agents());
    let enabled = named.filter(|language| input.settings.languages.has(language));
    let misfit = |language: &'static Language| {
        let Ask::Named { namespace, name } = Ask::parse(annotations.effective(language.inject)) else {
            return None;
        };
        let known = input.catalogue.namespace(namespace.unwrap_or(input.namespace))?;
        let stored = known.instrumentations.get(name)?;
        let Stored::Ready(ready) = stored else { return None };
        if !may_use(input.settings, input.namespace, stored) {
            return None;
        }
        let is_fit = ready.selector.as_ref()?.matches(&input.pod.metadata.labels);
        (!is_fit).then_some((language, &ready.name))
    };
    enabled.filter_map(misfit).collect()
}

/// The input of the choice.
#[derive(Clone, Copy, Debug)]
pub struct Search<'p> {
    /// The catalogue.
    pub catalogue: &'p Catalogue,
    /// Namespace of the request.
    pub namespace: &'p str,
    /// The pod, for its labels.
    pub pod: &'p Pod<'p>,
    /// The language.
    pub language: &'static Language,
    /// The agent of `spec.agents`, if the language stands for those.
    pub agent: Option<&'p str>,
    /// The settings of the installation.
    pub settings: &'p Settings,
}

impl<'p> Search<'p> {
    /// The Instrumentation of an annotation. `None` if it does not opt in.
    pub fn find(&self, ask: Ask<'p>) -> Option<Result<&'p Arc<Compiled>, Reason>> {
        match ask {
            Ask::Nothing | Ask::No => None,
            Ask::Any | Ask::Agent { .. } => Some(self.best()),
            Ask::Named { namespace, name } => Some(self.named(namespace.unwrap_or(self.namespace), name)),
        }
    }

    /// The Instrumentation that opts the pod in by its selector, if one does: one of the pod's namespace, else one of
    /// the default Instrumentation's namespace that selects the pod's.
    pub fn selected(&self) -> Option<Result<&'p Arc<Compiled>, Reason>> {
        let known = self.catalogue.namespace(self.namespace);
        let opting = |of: &'p Namespace| {
            let opting = of.instrumentations.opting_in_to(self.language);
            opting.filter(|(ready, _)| ready.selects(&self.pod.metadata.labels))
        };
        let own = known.into_iter().flat_map(opting).filter(|(_, opt_in)| !opt_in.selects_namespaces());
        let chosen = self.one_of(own.map(|(ready, _)| ready), self.namespace);
        let chosen = chosen.or_else(|| {
            let default = self.default_namespace()?;
            // Whether a namespace that is not known opts out is not known either.
            let labels = &known.filter(|known| known.is_listed)?.labels;
            let across = opting(self.catalogue.namespace(default)?);
            let across = across.filter(|(_, opt_in)| opt_in.selects_namespaces() && opt_in.selects(labels));
            self.one_of(across.map(|(ready, _)| ready), default)
        });
        chosen.or_else(|| {
            let known = known.filter(|_| self.default_namespace() != Some(self.namespace))?;
            let (denied, _) = opting(known).find(|(_, opt_in)| opt_in.selects_namespaces())?;
            Some(Err(Reason::NamespaceSelectorDenied { name: denied.name.clone() }))
        })
    }

    fn default_namespace(&self) -> Option<&'p str> {
        self.settings.default_instrumentation.as_ref().map(|default| &*default.namespace)
    }

    /// The best one of those that match. One that cannot be used is not a candidate.
    fn one_of(
        &self,
        matching: impl Iterator<Item = &'p Arc<Compiled>>,
        namespace: &str,
    ) -> Option<Result<&'p Arc<Compiled>, Reason>> {
        let (usable, unusable): (Vec<_>, Vec<_>) =
            matching.partition(|ready| ready.problem(self.language).is_none());
        Some(match best(usable)[..] {
            [] => {
                let unusable = unusable.first()?;
                let problem = unusable.problem(self.language).unwrap_or_default().to_owned();
                Err(Reason::InstrumentationInvalid { name: unusable.name.clone(), problem })
            }
            [only] => Ok(only),
            ref several => Err(Reason::AmbiguousOptIn {
                namespace: namespace.to_owned(),
                names: Names::of(several.iter().map(|ready| &*ready.name.name)),
            }),
        })
    }

    /// A named one is used, whether its selector matches or not.
    fn named(&self, namespace: &str, name: &str) -> Result<&'p Arc<Compiled>, Reason> {
        let stored = self.catalogue.namespace(namespace).and_then(|known| known.instrumentations.get(name));
        match stored.filter(|stored| self.may_use(stored)) {
            Some(stored) => self.usable(stored),
            None => Err(self.missing(namespace, name)),
        }
    }

    fn may_use(&self, stored: &Stored) -> bool {
        may_use(self.settings, self.namespace, stored)
    }

    /// The reason for a missing Instrumentation. One that may not be used has the same message.
    fn missing(&self, namespace: &str, name: &str) -> Reason {
        let known = self.catalogue.namespace(namespace).into_iter().flat_map(|known| &known.instrumentations);
        let known = names(known.filter(|stored| self.may_use(stored)));
        let name = ObjectName { namespace: namespace.into(), name: name.into() };
        let own = || self.namespace.to_owned();
        match self.settings.cross_namespace {
            CrossNamespace::Granted if namespace != self.namespace => {
                Reason::InstrumentationNotGranted { name, namespace: own(), granted: known }
            }
            CrossNamespace::Deny if namespace != self.namespace => {
                Reason::CrossNamespaceDenied { name, namespace: own() }
            }
            _ => Reason::InstrumentationNotFound { name, known },
        }
    }

    /// The candidates have no selector or one that matches. One that cannot be used is not a candidate.
    fn best(&self) -> Result<&'p Arc<Compiled>, Reason> {
        let Some(namespace) = self.catalogue.namespace(self.namespace) else {
            return self.fall_back(&[]);
        };
        let all = &namespace.instrumentations;
        let usable = all.iter().filter_map(|stored| stored.usable_for(self.language).ok());
        let is_candidate =
            |ready: &&Arc<Compiled>| self.is_in(ready) && ready.selects(&self.pod.metadata.labels);
        match best(usable.filter(is_candidate))[..] {
            [] => self.fall_back(all),
            [only] => Ok(only),
            ref several => Err(Reason::AmbiguousInstrumentation {
                namespace: self.namespace.to_owned(),
                names: Names::of(several.iter().map(|ready| &*ready.name.name)),
            }),
        }
    }

    fn fall_back(&self, stored: &'p [Stored]) -> Result<&'p Arc<Compiled>, Reason> {
        if let Some(default) = &self.settings.default_instrumentation {
            let known = self.catalogue.namespace(&default.namespace);
            let stored = known.and_then(|known| known.instrumentations.get(&default.name));
            let missing = || Reason::DefaultInstrumentationNotFound { name: default.clone() };
            let found = stored.ok_or_else(missing).and_then(|stored| self.usable(stored))?;
            return if self.is_in(found) { Ok(found) } else { Err(self.agent_missing()) };
        }
        let unusable = stored.iter().find(|stored| stored.usable_for(self.language).is_err());
        if let Some(unusable) = unusable {
            return self.usable(unusable);
        }
        let namespace = self.namespace.to_owned();
        Err(if stored.is_empty() {
            Reason::NoInstrumentation { namespace, advice: self.settings.cross_namespace.advice() }
        } else if !stored.iter().any(|stored| self.usable(stored).is_ok_and(|ready| self.is_in(ready))) {
            self.agent_missing()
        } else {
            Reason::NoneSelectsPod { namespace, names: names(stored) }
        })
    }

    /// Whether an Instrumentation has the agent.
    fn is_in(&self, ready: &Compiled) -> bool {
        ready.part(self.language, self.agent).is_some()
    }

    /// The reason for an agent that no Instrumentation has that `"true"` could choose.
    fn agent_missing(&self) -> Reason {
        let own =
            self.catalogue.namespace(self.namespace).into_iter().flat_map(|known| &known.instrumentations);
        let default = self.settings.default_instrumentation.as_ref().and_then(|default| {
            self.catalogue.namespace(&default.namespace)?.instrumentations.get(&default.name)
        });
        let ready = own.chain(default).filter_map(|stored| stored.usable_for(self.language).ok());
        let known: BTreeSet<&str> = ready.flat_map(|ready| ready.agents()).collect();
        Reason::AgentNotFound { agent: self.agent.unwrap_or_default().to_owned(), known: Names::of(known) }
    }

    fn usable(&self, stored: &'p Stored) -> Result<&'p Arc<Compiled>, Reason> {
        let invalid = |problem: &str| Reason::InstrumentationInvalid {
            name: stored.name().clone(),
            problem: problem.to_owned(),
        };
        stored.usable_for(self.language).map_err(invalid)
    }
}

/// The best ones: a selector that is not empty comes before none, then the higher priority (D9).
fn best<'s>(all: impl IntoIterator<Item = &'s Arc<Compiled>>) -> Vec<&'s Arc<Compiled>> {
    let rank = |ready: &Compiled| (ready.selector.is_some(), ready.priority);
    let mut best: Vec<&Arc<Compiled>> = Vec::new();
    for ready in all {
        match best.first().map_or(Ordering::Greater, |known| rank(ready).cmp(&rank(known))) {
            Ordering::Greater => best = vec![ready],
            Ordering::Equal => best.push(ready),
            Ordering::Less => {}
        }
    }
    best
}

fn names<'s>(stored: impl IntoIterator<Item = &'s Stored>) -> Names {
    Names::of(stored.into_iter().map(|stored| &*stored.name().name))
}
