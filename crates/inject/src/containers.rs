//! Which containers a language is put into (contract, section 3).

use super::{
    annotation::Annotations,
    edit::{Place, container_at},
    helpers::Helpers,
    language::{CONTAINERS, Language},
    note::Note,
    pod::Pod,
    reason::{Annotation, Reason},
};

/// The annotation by which `kubectl` and others find the main container (D24).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The containers that a language's lists name.
#[derive(Debug, Default)]
pub struct Listed<'p> {
    /// Names in the order of the lists, without the empty ones, each with the list that has it.
    names: Vec<(&'p str, Annotation)>,
    /// The lists that are there.
    lists: Vec<Annotation>,
}

/// Where the names are.
#[derive(Debug, Default)]
pub struct Places<'p> {
    /// The places in the order of the lists.
    pub found: Vec<Place>,
    /// Names that the pod does not have.
    pub unknown: Vec<&'p str>,
    /// The place of the first name; none where the pod does not have it.
    pub first: Option<Place>,
    /// Which container was taken, where none is named and it is not the obvious one.
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

    /// The name that stands twice, if one does, and the lists that have it.
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

    /// Whether the lists name anything.
    ///
    /// # Errors
    /// The annotations that do not, and the containers that there are.
    pub fn check(&self, pod: &Pod<'_>) -> Result<(), Reason> {
        if self.is_there() && self.names.is_empty() {
            return Err(Reason::NoContainerNamed { annotations: self.lists.clone(), known: known(pod) });
        }
        Ok(())
    }

    /// Where the named containers are, or the one that is meant where none is named.
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
fn default_place(pod: &Pod<'_>, helpers: &Helpers) -> (Place, Option<Note>) {
    let name = pod.metadata.annotations.get(DEFAULT_CONTAINER);
    let named = name.and_then(|name| place(pod, name)).filter(|place| !place.init);
    named.map_or_else(|| first_application(pod, helpers), |place| (place, None))
}

/// The first container that is no known proxy or helper, or else the first (D30).
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
