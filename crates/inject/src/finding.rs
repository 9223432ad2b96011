//! The result for one language in one container.

use std::{borrow::Cow, fmt};

use super::{
    compiled::Compiled,
    note::Note,
    reason::{ObjectName, Reason, Unknown},
    shown::shown,
};

/// The result for one language in one container, or in the whole pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The language, as on the command line.
    pub language: &'static str,
    /// The agent of `spec.agents`, if the language stands for those.
    pub agent: Option<Box<str>>,
    /// The container; `None` for the whole language.
    pub container: Option<String>,
    /// The used Instrumentation.
    pub instrumentation: Option<Used>,
    /// Why it was injected or skipped.
    pub reason: Reason,
    /// Notes.
    pub notes: Vec<Note>,
}

impl fmt::Display for Finding {
    /// Language, container and reason, in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.reason)
    }
}

impl Finding {
    /// The number of containers that it is about; 1 if it is about the whole language.
    pub fn count(&self) -> usize {
        match self.reason {
            Reason::ContainerNotFound { container: Unknown::More(count), .. } => count,
            _ => 1,
        }
    }

    /// The language, with the agent if there is one, such as `agent:php`.
    pub fn name(&self) -> Cow<'static, str> {
        match &self.agent {
            Some(agent) => format!("{}:{}", self.language, shown(agent)).into(),
            None => self.language.into(),
        }
    }

    /// The language, and the container if there is one.
    pub fn subject(&self) -> String {
        let agent = self.agent.as_deref().map(|agent| format!(" {}", shown(agent))).unwrap_or_default();
        match &self.container {
            Some(container) => format!("{}{agent} in {}", self.language, shown(container)),
            None => [self.language, &agent].concat(),
        }
    }
}

/// An Instrumentation as it was used for a language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its namespace and name.
    pub name: ObjectName,
    /// Its generation, which counts its changes; `None` for one from a file.
    pub generation: Option<i64>,
    /// The hash of its configuration for the language.
    pub hash: Box<str>,
    /// The image of the agent; `None` if the language has none.
    pub image: Option<Box<str>>,
}

impl Used {
    /// Describes a compiled Instrumentation, and one of its parts with the image of its agent.
    pub fn of(instrumentation: &Compiled, part: usize, image: &str) -> Self {
        Self {
            name: instrumentation.name.clone(),
            generation: instrumentation.generation,
            hash: instrumentation.hash_with(part, image),
            image: Some(image).filter(|image| !image.is_empty()).map(Into::into),
        }
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
