//! Which containers a language is put into (contract, section 3).

use super::{
    annotation::Annotations,
    edit::Place,
    language::Language,
    pod::{Container, Pod, Variable},
    reason::Reason,
    resource::POD_NAME,
    target::RESOURCE_ATTRIBUTES,
    text::RawJson,
};
use crate::api::ANNOTATION_PREFIX;

/// The annotation whose list counts for every language.
const COMMON: &str = "container-names";

/// The annotation by which `kubectl` and others find the main container (D24).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The containers that a language's lists name.
#[derive(Debug, Default)]
pub struct Listed<'p> {
    /// Names in the order of the lists, without the empty ones.
    pub names: Vec<&'p str>,
    /// Whether there is a list at all.
    pub is_listed: bool,
}

impl<'p> Listed<'p> {
    /// Reads the common list and the language's own.
    pub fn of(language: &Language, annotations: &Annotations<'p>) -> Self {
        let lists = [COMMON, language.containers].map(|name| annotations.effective(name));
        let names = lists.iter().flat_map(|list| list.split(',')).map(str::trim);
        Self {
            names: names.filter(|name| !name.is_empty()).collect(),
            is_listed: lists.iter().any(|list| !list.is_empty()),
        }
    }

    /// The name that stands twice, if one does.
    pub fn repeated(&self) -> Option<&'p str> {
        let repeated = |(index, name): &(usize, &&str)| self.names[..*index].contains(name);
        self.names.iter().enumerate().find(repeated).map(|(_, name)| *name)
    }

    /// Whether the list names anything.
    ///
    /// # Errors
    /// The annotation that could.
    pub fn check(&self, language: &Language) -> Result<(), Reason> {
        if self.is_listed && self.names.is_empty() {
            return Err(Reason::NoContainerNamed {
                annotation: format!("{ANNOTATION_PREFIX}{}", language.containers),
            });
        }
        Ok(())
    }

    /// The places of the names in the order of the lists, and the names that the pod does not have.
    pub fn places(&self, language: &Language, pod: &Pod<'_>) -> (Vec<Place>, Vec<&'p str>) {
        if !self.is_listed {
            return (vec![default_place(language, pod)], Vec::new());
        }
        let mut unknown = Vec::new();
        let mut places = Vec::with_capacity(self.names.len());
        for name in &self.names {
            match place(pod, name) {
                Some(place) => places.push(place),
                None => unknown.push(*name),
            }
        }
        (places, unknown)
    }
}

/// Init containers in the pod's order, then regular ones as they come.
pub fn in_order(places: Vec<Place>) -> Vec<Place> {
    let (mut init, regular): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| place.init);
    init.sort_unstable();
    init.extend(regular);
    init
}

/// The names of all containers, for a sentence about one that is not there.
pub fn known(pod: &Pod<'_>) -> Vec<String> {
    let all = pod.spec.containers.iter().chain(pod.spec.init_containers.iter());
    all.map(|container| container.name.to_string()).collect()
}

fn place(pod: &Pod<'_>, name: &str) -> Option<Place> {
    let find = |init: bool| {
        let list = if init { &pod.spec.init_containers } else { &pod.spec.containers };
        let index = list.iter().position(|container| *container.name == *name)?;
        Some(Place { init, index })
    };
    find(false).or_else(|| find(true))
}

/// The container that is meant when none is named.
fn default_place(language: &Language, pod: &Pod<'_>) -> Place {
    let name = pod.metadata.annotations.get(DEFAULT_CONTAINER);
    let named = name.and_then(|name| place(pod, name)).filter(|place| !place.init);
    let first = || Place { init: false, index: injected_before(language, pod).unwrap_or_default() };
    named.unwrap_or_else(first)
}

/// Nothing marks a pod that was given variables alone. Where another webhook
/// has put a container before the one that has them, that one is still meant.
fn injected_before(language: &Language, pod: &Pod<'_>) -> Option<usize> {
    if !language.marks.is_empty() {
        return None;
    }
    pod.spec.containers.iter().position(has_our_variables)
}

/// A collector beside the application has some of them as well, but does not
/// describe itself as its container.
fn has_our_variables(container: &Container<'_>) -> bool {
    let from_pod = |from: RawJson<'_>| from.get().contains("\"metadata.name\"");
    let names_pod = |one: &Variable<'_>| &*one.name == POD_NAME && one.value_from.is_some_and(from_pod);
    let attribute = format!("k8s.container.name={}", container.name);
    let describes_it = |one: &Variable<'_>| {
        &*one.name == RESOURCE_ATTRIBUTES && one.value.split(',').any(|pair| pair.trim() == attribute)
    };
    container.variables().is_ok_and(|all| all.iter().any(names_pod) && all.iter().any(describes_it))
}
