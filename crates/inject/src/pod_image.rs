//! The image of an agent in the pods of a namespace: that of the Instrumentation, or the namespace's default image in
//! place of another default image (D39).

use super::{
    catalogue::{Namespace, Stored},
    compiled::Compiled,
    image,
    language::{AGENT, LANGUAGES, LanguageSet},
    note::Note,
};

/// The image of an agent in the pods of a namespace.
#[derive(Debug)]
pub struct PodImage<'p> {
    /// The image; empty if the language has none.
    pub image: &'p str,
    /// What has to be said about it.
    pub notes: Vec<Note>,
}

impl<'p> PodImage<'p> {
    /// The image of a part of an Instrumentation.
    pub fn of(instrumentation: &'p Compiled, part: usize, namespace: Option<&'p Namespace>) -> Self {
        let prepared = &instrumentation.parts[part];
        let of_instrumentation = || Self {
            image: &prepared.image,
            notes: prepared.reported.0.iter().cloned().map(Note::Image).collect(),
        };
        let Some((language, image)) = of_namespace(part, namespace).filter(|_| prepared.has_default_image)
        else {
            return of_instrumentation();
        };
        if !image::is_reference(image) {
            let invalid = Note::DefaultImageInvalid { language, value: image.to_owned() };
            let Self { image, mut notes } = of_instrumentation();
            notes.push(invalid);
            return Self { image, notes };
        }
        if image == prepared.image {
            return of_instrumentation();
        }
        let note = Note::ImageOfNamespace { image: image.to_owned(), instead_of: prepared.image.clone() };
        Self { image, notes: vec![note] }
    }
}

impl Stored {
    /// The hashes of its configurations in the pods of a namespace, of the languages that it can be used for.
    pub fn hashes_in(&self, namespace: Option<&Namespace>, languages: LanguageSet) -> Vec<Box<str>> {
        let Self::Ready(compiled) = self else { return Vec::new() };
        let is_usable = |part: &usize| {
            let language = LANGUAGES.get(*part).copied().unwrap_or(&AGENT);
            languages.has(language) && self.usable_for(language).is_ok()
        };
        let hash = |part| compiled.hash_with(part, PodImage::of(compiled, part, namespace).image);
        (0..compiled.parts.len()).filter(is_usable).map(hash).collect()
    }
}

/// The default image of the namespace for a language, and the language's name.
fn of_namespace(part: usize, namespace: Option<&Namespace>) -> Option<(&'static str, &str)> {
    let language = LANGUAGES.get(part)?.defaults?.language;
    let mut images = namespace?.default_images.iter();
    let (_, image) = images.find(|(known, _)| **known == *language)?;
    Some((language, image))
}
