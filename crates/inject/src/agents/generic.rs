//! Agents that an Instrumentation describes itself, by data alone (docs/guides/generic-agent.md).

use crate::{
    agents::{
        agent_image::AgentImage,
        copied::{self, Call, CopiedAgent},
    },
    env::Env,
    injection::Injection,
};

/// Injects the agent of the plan.
pub fn inject(injection: &mut Injection<'_, '_>) {
    let Some(own) = &injection.prepared().generic else { return };
    let agent = CopiedAgent {
        name: &own.container,
        mount_path: &own.mount_path,
        target_path: None,
        extended: &[],
        platforms: None,
        fits_target: None,
        images,
        search_path: None,
        last: extend,
    };
    copied::inject(injection, &agent);
}

fn images<'p>(
    agent: &CopiedAgent<'p>,
    injection: &Injection<'_, 'p>,
    _: &'static str,
) -> Vec<AgentImage<'p>> {
    let folder = injection.prepared().generic.as_ref().map_or("", |own| &own.folder);
    agent.folder(injection, folder)
}

/// The variables that it sets are those of a language; these are the ones that it extends.
fn extend<'p>(call: &Call<'_, 'p>, env: &mut Env<'p>) {
    for one in call.prepared.generic.iter().flat_map(|own| &own.extended) {
        env.extend(&one.name, |present| one.join(present));
    }
}
