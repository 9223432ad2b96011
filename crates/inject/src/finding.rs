//! What came of one language in one container.

use std::fmt;

use super::{
    compiled::Compiled,
    language::Language,
    note::Note,
    reason::{ObjectName, Reason},
};

/// What came of a request: one language in one container, or in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The language, as on the command line.
    pub language: &'static str,
    /// The container; none where the language as a whole is meant.
    pub container: Option<String>,
    /// The Instrumentation that was used.
    pub instrumentation: Option<Used>,
    /// Why it went in, or why not.
    pub reason: Reason,
    /// What else there is to know.
    pub notes: Vec<Note>,
}

impl fmt::Display for Finding {
    /// Language, container and reason, in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.reason)
    }
}

impl Finding {
    /// What it is about: the language, and the container if there is one.
    pub fn subject(&self) -> String {
        match &self.container {
            Some(container) => [self.language, " in ", container].concat(),
            None => self.language.to_owned(),
        }
    }
}

/// An Instrumentation as it was used for a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its generation, which counts its changes; none for one that no API server stored.
    pub generation: Option<i64>,
    /// A short hash of what it configures for the language.
    pub hash: Box<str>,
}

impl Used {
    /// An Instrumentation as it is now.
    pub fn of(instrumentation: &Compiled, language: &Language) -> Self {
        Self {
            name: instrumentation.name.clone(),
            generation: instrumentation.generation,
            hash: instrumentation.hash(language),
        }
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
