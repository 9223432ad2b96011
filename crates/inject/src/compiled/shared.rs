//! Equal parts of Instrumentations, stored once.
//!
//! An Instrumentation usually configures one or two of eight languages; the others
//! have defaults, which are written into each Instrumentation when it is stored.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Weak},
};

use super::{
    about::About,
    prepared::{Prepared, prepare},
};
use crate::language::LANGUAGES;
use otel_webhook_api::{InstrumentationSpec, defaults::DefaultImages};

/// The parts in use, by language and hash.
#[derive(Debug, Default)]
pub struct Shared {
    known: HashMap<(usize, u64), Vec<Weak<Prepared>>>,
    /// The number of entries after which unused ones are removed.
    tidy_at: usize,
    /// The parts of an Instrumentation that specifies nothing.
    defaults: Vec<Arc<Prepared>>,
}

impl Shared {
    /// Returns the parts of an Instrumentation that specifies nothing, with these images. They are held once, and
    /// charged to none.
    pub fn with_defaults(images: &DefaultImages) -> Self {
        let mut shared = Self::default();
        let (spec, about) = (InstrumentationSpec::default(), About::default());
        shared.defaults = LANGUAGES
            .iter()
            .enumerate()
            .map(|(index, language)| {
                shared.one_like(index, Arc::new(prepare(language, &spec, &about, images)))
            })
            .collect();
        shared
    }

    /// Whether a part is that of an Instrumentation that specifies nothing.
    pub fn is_default(&self, part: &Arc<Prepared>) -> bool {
        self.defaults.iter().any(|default| Arc::ptr_eq(default, part))
    }

    /// Returns an equal part that is already in use, or else this one.
    pub fn one_like(&mut self, language: usize, part: Arc<Prepared>) -> Arc<Prepared> {
        self.tidy();
        let alike = self.known.entry((language, digest(&part))).or_default();
        // An Instrumentation that is stored repeatedly would leave an entry each time.
        alike.retain(|part| part.strong_count() > 0);
        if let Some(known) = alike.iter().filter_map(Weak::upgrade).find(|known| *known == part) {
            return known;
        }
        alike.push(Arc::downgrade(&part));
        part
    }

    fn tidy(&mut self) {
        const LEAST: usize = 64;
        if self.known.len() < self.tidy_at.max(LEAST) {
            return;
        }
        self.known.retain(|_, alike| {
            alike.retain(|part| part.strong_count() > 0);
            !alike.is_empty()
        });
        self.tidy_at = self.known.len() * 2;
    }
}

/// A hash that is equal for equal parts, in this process.
fn digest(part: &Prepared) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{part:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{compiled::Compiled, reason::ObjectName};

    fn compiled(image: &str) -> Compiled {
        let spec: InstrumentationSpec =
            serde_json::from_value(json!({"java": {"image": image}})).expect("a spec");
        let name = ObjectName { namespace: "shop".into(), name: image.into() };
        Compiled::new(name, None, &About::default(), &spec, &DefaultImages::default()).expect("a good one")
    }

    #[test]
    fn equal_parts_are_stored_once_and_unused_ones_are_removed() {
        let mut shared = Shared::default();
        let (one, other) = (compiled("a").sharing(&mut shared), compiled("b").sharing(&mut shared));
        for (index, language) in LANGUAGES.iter().enumerate() {
            let same = Arc::ptr_eq(&one.parts[index], &other.parts[index]);
            assert_eq!(same, language.name != "java", "{}", language.name);
        }
        drop((one, other));
        for number in 0..1000 {
            drop(compiled(&number.to_string()).sharing(&mut shared));
        }
        assert!(shared.known.len() < 200, "{}", shared.known.len());
        for _ in 0..1000 {
            drop(compiled("again").sharing(&mut shared));
        }
        assert!(shared.known.values().all(|alike| alike.len() == 1), "{:?}", shared.known);
    }
}
