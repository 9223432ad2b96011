//! Prepares the agents of `spec.agents` (docs/guides/generic-agent.md).

use super::{
    generic::{Extended, Generic},
    prepared::{Prepared, prepare_with},
};
use crate::{
    env::Setting,
    language::{AGENT, GENERIC_AGENT},
};
use otel_webhook_api::{
    AgentVariable, GenericAgent, InstrumentationSpec, LanguageSettings, Mode, defaults::AGENT_REQUESTS,
    with_mount_path,
};

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
