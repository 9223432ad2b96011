//! Java: the javaagent, its extensions, and `JAVA_TOOL_OPTIONS`.

use crate::{
    agents::{
        agent_image::{AgentImage, Content},
        copied::{Call, CopiedAgent},
    },
    env::Env,
    injection::Injection,
    language::{self, JAVA_AGENT, JAVA_EXTENSION},
};

const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The agent.
pub const AGENT: CopiedAgent<'static> = CopiedAgent {
    name: JAVA_AGENT,
    mount_path: "/otel-auto-instrumentation-java",
    // Each target has its own path, since the option with the path is
    // inherited by every Java process that the container starts.
    target_path: Some(|container| ["/otel-auto-instrumentation-java-", container].concat()),
    extended: language::JAVA.extended,
    platforms: None,
    fits_target: None,
    images,
    search_path: None,
    last: add_options,
};

fn images<'p>(
    agent: &CopiedAgent<'p>,
    injection: &Injection<'_, 'p>,
    _platform: &'static str,
) -> Vec<AgentImage<'p>> {
    let prepared = injection.prepared();
    // The agent is at the root of its image, and the folder of an extension is listed to it.
    let sub_path = None;
    let agent = AgentImage {
        name: agent.name.into(),
        image: injection.image(),
        content: Content::File {
            from: "/javaagent.jar".into(),
            to: "/otel-auto-instrumentation-java/javaagent.jar".into(),
        },
        sub_path,
    };
    let extension = |(index, (image, dir)): (usize, &'p (String, String))| AgentImage {
        name: [JAVA_EXTENSION, &index.to_string()].concat().into(),
        image,
        content: Content::Folder {
            from: [dir, "/."].concat().into(),
            to: "/otel-auto-instrumentation-java/extensions".into(),
        },
        sub_path,
    };
    let extensions = prepared.extensions.iter().enumerate().map(extension);
    std::iter::once(agent).chain(extensions).collect()
}

fn add_options(call: &Call<'_, '_>, env: &mut Env<'_>) {
    let path = call.path;
    let extensions = match call.extensions {
        "" => String::new(),
        folders => [" -Dotel.javaagent.extensions=", folders].concat(),
    };
    env.extend(OPTIONS, |own| {
        [own.unwrap_or_default(), " -javaagent:", path, "/javaagent.jar", &extensions].concat()
    });
}
