//! The compiled form of an agent of `spec.agents` (docs/guides/generic-agent.md).

use super::prepared::{Prepared, prepare_with};
use crate::{
    env::Setting,
    held::held,
    language::{AGENT, GENERIC_AGENT},
};
use otel_webhook_api::{
    AgentVariable, GenericAgent, InstrumentationSpec, LanguageSettings, Mode, defaults::AGENT_REQUESTS,
    with_mount_path,
};

/// What only an agent of `spec.agents` has.
#[derive(Debug, PartialEq)]
pub struct Generic {
    /// Its name.
    pub name: Box<str>,
    /// The name of its volume and its init container.
    pub container: String,
    /// Its folder in the image, without the first slash.
    pub folder: String,
    /// Where it is mounted.
    pub mount_path: String,
    /// The variables that it extends.
    pub extended: Vec<Extended>,
}

/// A variable that an agent extends.
#[derive(Debug, PartialEq)]
pub struct Extended {
    /// Its name.
    pub name: String,
    /// The agent's part of the value.
    pub value: String,
    /// Whether that part is the first one.
    pub is_first: bool,
    /// What separates it from the rest.
    pub separator: String,
}

held!(Generic: name, container, folder, mount_path, extended;);
held!(Extended: name, value, separator; is_first);

impl Extended {
    /// The value for the present one. An empty one is treated as not set.
    pub fn join(&self, present: Option<&str>) -> String {
        match present.filter(|present| !present.is_empty()) {
            None => self.value.clone(),
            Some(present) if self.is_first => [&self.value, &self.separator, present].concat(),
            Some(present) => [present, &self.separator, &self.value].concat(),
        }
    }
}

/// Prepares an agent.
pub fn prepare_agent(agent: &GenericAgent, spec: &InstrumentationSpec) -> Prepared {
    let mount_path = agent.path();
    let variables = agent.env.as_deref().unwrap_or_default();
    let value = |variable: &AgentVariable| with_mount_path(&variable.value, &mount_path);
    let extended = |variable: &AgentVariable| {
        let mode = Mode::parse(variable.mode.as_deref()).filter(|mode| *mode != Mode::Set)?;
        Some(Extended {
            name: variable.name.clone(),
            value: value(variable),
            is_first: mode == Mode::Prepend,
            separator: variable.separator.clone().unwrap_or_default(),
        })
    };
    let is_set = |variable: &&AgentVariable| extended(variable).is_none();
    let set = |variable: &AgentVariable| Setting {
        name: variable.name.clone(),
        value: value(variable),
        from: None,
    };
    let settings = LanguageSettings::from(agent);
    Prepared {
        image: agent.image.clone(),
        env: variables.iter().filter(is_set).map(set).collect(),
        generic: Some(Generic {
            name: agent.name.as_str().into(),
            container: [GENERIC_AGENT, &agent.name].concat(),
            folder: agent.directory.trim_matches('/').to_owned(),
            extended: variables.iter().filter_map(extended).collect(),
            mount_path,
        }),
        ..prepare_with(&AGENT, &settings, Some(&AGENT_REQUESTS), spec)
    }
}
