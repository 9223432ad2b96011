//! What an Instrumentation cannot be used for, because of its errors.
//!
//! What is stored has not always been judged: files have not, nor has what was
//! there before the webhook. Used as it is, it would make pods that the API
//! server refuses, or whose agent never starts. So what an error reaches is not
//! used; the rest is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{judge::judge, reach::Reach};

/// What an object cannot be used for, each with what is wrong first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// Why it cannot be used at all.
    pub at_all: Option<String>,
    /// Why it cannot be used for languages, by their fields in the specification.
    pub for_languages: BTreeMap<&'static str, String>,
}

/// What an Instrumentation that nobody has judged cannot be used for.
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
