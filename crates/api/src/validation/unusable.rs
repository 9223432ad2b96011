//! The languages for which an Instrumentation cannot be used because of its errors.
//!
//! Not every Instrumentation was validated: not those in files, nor those stored
//! before the webhook was installed. Injection with an invalid one could create pods that the API
//! server rejects, or agents that never start. So the parts that an error affects are not
//! used, and the rest is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{judge::judge, reach::Reach};

/// What an object cannot be used for, each with the first error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Why it cannot be used at all.
    pub at_all: Option<String>,
    /// Why it cannot be used for a language, by the language's field in the specification.
    pub for_languages: BTreeMap<&'static str, String>,
}

/// Returns what an Instrumentation that was not validated cannot be used for.
pub fn unusable(object: &Value) -> Unusable {
    let mut unusable = Unusable::default();
    for error in judge(object).errors {
        match error.reach {
            Reach::NoPod => {}
            Reach::Language(field) => {
                unusable.for_languages.entry(field).or_insert_with(|| error.to_string());
            }
            Reach::EveryPod => {
                unusable.at_all.get_or_insert_with(|| error.to_string());
            }
        }
    }
    unusable
}
