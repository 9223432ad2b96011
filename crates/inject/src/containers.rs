//! The containers into which a language is injected (docs/injection.md, "Choosing containers").

use super::{
    annotation::Annotations,
    edit::{Place, container_at},
    helpers::Helpers,
    language::{CONTAINERS, Language},
    note::Note,
    pod::Pod,
    reason::{Annotation, Reason},
};

/// The annotation with the default container of `kubectl` and other tools (D24).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The lists of containers of a language.
#[derive(Debug, Default)]
pub struct Listed<'p> {
    /// Names in the order of the lists, without empty ones, each with its list.
    names: Vec<(&'p str, Annotation)>,
    /// The existing lists.
    lists: Vec<Annotation>,
}

/// The positions of the named containers.
#[derive(Debug, Default)]
pub struct Places<'p> {
    /// The positions in the order of the lists.
    pub found: Vec<Place>,
    /// Names that are not in the pod.
    pub unknown: Vec<&'p str>,
    /// The position of the first name; `None` if it is not in the pod.
    pub first: Option<Place>,
    /// The note about the selected container, if none is named and it is not the first.
    pub note: Option<Note>,
}

impl<'p> Listed<'p> {
    /// Reads the common list and the language's own.
    pub fn of(language: &Language, annotations: &Annotations<'p>) -> Self {
        let mut listed = Self::default();
        for (list, text) in
            [CONTAINERS, language.containers].into_iter().filter_map(|key| annotations.said(key))
        {
            listed.lists.push(list);
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            listed.names.extend(names.map(|name| (name, list)));
        }
        listed
    }

    /// Whether there is a list at all.
    pub fn is_there(&self) -> bool {
        !self.lists.is_empty()
    }

    /// The first repeated name, and its lists.
    pub fn repeated(&self) -> Option<(&'p str, Vec<Annotation>)> {
        let is_repeated = |(index, (name, _)): &(usize, &(&str, Annotation))| {
            self.names[..*index].iter().any(|(before, _)| before == name)
        };
        let (_, (name, _)) = self.names.iter().enumerate().find(is_repeated)?;
        let named = self.names.iter().filter(|(other, _)| other == name);
        let mut lists: Vec<_> = named.map(|(_, list)| *list).collect();
        lists.dedup();
        Some((name, lists))
    }

    /// Checks that the lists have any name.
    ///
    /// # Errors
    /// The empty annotations, and the containers of the pod.
    pub fn check(&self, pod: &Pod<'_>) -> Result<(), Reason> {
        if self.is_there() && self.names.is_empty() {
            return Err(Reason::NoContainerNamed { annotations: self.lists.clone(), known: known(pod) });
        }
        Ok(())
    }

    /// The positions of the named containers, or of the default one if none is named.
    pub fn places(&self, pod: &Pod<'_>, helpers: &Helpers) -> Places<'p> {
        if !self.is_there() {
            let (default, note) = default_place(pod, helpers);
            return Places { found: vec![default], unknown: Vec::new(), first: Some(default), note };
        }
        let mut places = Places::default();
        for (index, (name, _)) in self.names.iter().enumerate() {
            let place = place(pod, name);
            match place {
                Some(place) => places.found.push(place),
                None => places.unknown.push(*name),
            }
            if index == 0 {
                places.first = place;
            }
        }
        places
    }
}

/// Sorts init containers by the pod's order before regular ones in the order of the list.
pub fn in_order(places: Vec<Place>) -> Vec<Place> {
    let (mut init, regular): (Vec<_>, Vec<_>) = places.into_iter().partition(|place| place.init);
    init.sort_unstable();
    init.extend(regular);
    init
}

/// The names of all containers, for messages.
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

/// The default container if none is named.
fn default_place(pod: &Pod<'_>, helpers: &Helpers) -> (Place, Option<Note>) {
    let name = pod.metadata.annotations.get(DEFAULT_CONTAINER);
    let named = name.and_then(|name| place(pod, name)).filter(|place| !place.init);
    named.map_or_else(|| first_application(pod, helpers), |place| (place, None))
}

/// The first container that is not a known proxy or helper, or else the first (D30).
fn first_application(pod: &Pod<'_>, helpers: &Helpers) -> (Place, Option<Note>) {
    let at = |index| Place { init: false, index };
    let name = |index| container_at(pod, at(index)).name.to_string();
    let all = pod.spec.containers.len();
    match pod.spec.containers.iter().position(|one| !helpers.has(&one.name)) {
        Some(0) => (at(0), None),
        Some(index) => {
            let skipped = (0..index).map(name).collect();
            (at(index), Some(Note::HelpersSkipped { container: name(index), skipped }))
        }
        None => {
            let helpers = (0..all).map(name).collect();
            (at(0), Some(Note::OnlyHelpers { container: name(0), helpers }))
        }
    }
}
