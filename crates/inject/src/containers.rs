//! The containers into which a language is injected (docs/reference/injection.md, "Choosing containers").

use std::collections::{HashMap, HashSet};

use super::{
    annotation::Annotations,
    edit::{Place, container_at},
    helpers::Helpers,
    language::{CONTAINERS, Language},
    note::Note,
    pod::Pod,
    reason::{Annotation, Reason},
    shown::{MOST_UNKNOWN, Names},
};

/// The annotation with the default container of `kubectl` and other tools (D24).
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Up to so many names are searched in the pod one by one.
const FEW: usize = 8;

/// The lists of containers of a language.
#[derive(Debug, Default)]
pub struct Listed<'p> {
    /// Names in the order of the lists, without empty ones, each with its list.
    names: Vec<(&'p str, Annotation)>,
    /// The existing lists.
    lists: Vec<Annotation>,
    /// The first name that is repeated.
    repeated: Option<&'p str>,
}

/// The positions of the named containers.
#[derive(Debug, Default)]
pub struct Places<'p> {
    /// The positions in the order of the lists.
    pub found: Vec<Place>,
    /// The first names that are not in the pod.
    pub unknown: Vec<&'p str>,
    /// The number of further ones.
    pub more_unknown: usize,
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
        listed.repeated = listed.find_repeated();
        listed
    }

    /// Whether a language has its own list.
    pub fn has_own(language: &Language, annotations: &Annotations<'_>) -> bool {
        annotations.said(language.containers).is_some()
    }

    /// Whether there is a list at all.
    pub fn is_there(&self) -> bool {
        !self.lists.is_empty()
    }

    /// The first repeated name, and its lists.
    pub fn repeated(&self) -> Option<(&'p str, Vec<Annotation>)> {
        let name = self.repeated?;
        let named = self.names.iter().filter(|(other, _)| *other == name);
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
            return Places { found: vec![default], first: Some(default), note, ..Places::default() };
        }
        let mut places = Places::default();
        let by_name = if self.names.len() > FEW { by_name(pod) } else { HashMap::new() };
        for (index, (name, _)) in self.names.iter().enumerate() {
            let place = if by_name.is_empty() { place(pod, name) } else { by_name.get(name).copied() };
            match place {
                Some(place) => places.found.push(place),
                None if places.unknown.len() < MOST_UNKNOWN => places.unknown.push(*name),
                None => places.more_unknown += 1,
            }
            if index == 0 {
                places.first = place;
            }
        }
        places
    }

    fn find_repeated(&self) -> Option<&'p str> {
        if self.names.len() < 2 {
            return None;
        }
        let mut seen = HashSet::with_capacity(self.names.len());
        self.names.iter().map(|(name, _)| *name).find(|name| !seen.insert(*name))
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
pub fn known(pod: &Pod<'_>) -> Names {
    let all = pod.spec.containers.iter().chain(pod.spec.init_containers.iter());
    Names::of(all.map(|container| &*container.name))
}

/// The positions of all containers. Of several with a name it is that which [`place`] finds.
fn by_name<'n>(pod: &'n Pod<'_>) -> HashMap<&'n str, Place> {
    let mut places = HashMap::new();
    for (init, list) in [(false, &pod.spec.containers), (true, &pod.spec.init_containers)] {
        for (index, container) in list.iter().enumerate() {
            places.entry(&*container.name).or_insert(Place { init, index });
        }
    }
    places
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
            let skipped = Names::of((0..index).map(name));
            (at(index), Some(Note::HelpersSkipped { container: name(index), skipped }))
        }
        None => {
            let helpers = Names::of((0..all).map(name));
            (at(0), Some(Note::OnlyHelpers { container: name(0), helpers }))
        }
    }
}
