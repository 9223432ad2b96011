//! Java: the javaagent, its extensions, and `JAVA_TOOL_OPTIONS`.

use std::borrow::Cow;

use crate::{
    agents::copied::{Call, CopiedAgent, Copying},
    env::Env,
    injection::Injection,
    language::{self, JAVA_AGENT, JAVA_EXTENSION},
};

const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The agent.
pub const AGENT: CopiedAgent = CopiedAgent {
    name: JAVA_AGENT,
    mount_path: "/otel-auto-instrumentation-java",
    // Each target has its own path, since the option with the path is
    // inherited by every Java process that the container starts.
    target_path: |container| ["/otel-auto-instrumentation-java-", container].concat().into(),
    extended: language::JAVA.extended,
    platforms: None,
    fits_target: None,
    copies,
    search_path: None,
    last: add_options,
};

fn copies<'p>(injection: &Injection<'_, 'p>, _platform: &'static str) -> Vec<Copying<'p>> {
    let prepared = injection.prepared();
    let command = ["cp", "/javaagent.jar", "/otel-auto-instrumentation-java/javaagent.jar"];
    let agent = Copying {
        name: AGENT.name.into(),
        image: &prepared.image,
        command: command.map(Cow::Borrowed).into(),
    };
    let extension = |(index, (image, dir)): (usize, &'p (String, String))| Copying {
        name: [JAVA_EXTENSION, &index.to_string()].concat().into(),
        image,
        command: vec![
            "cp".into(),
            "-r".into(),
            [dir, "/."].concat().into(),
            "/otel-auto-instrumentation-java/extensions".into(),
        ],
    };
    let extensions = prepared.extensions.iter().enumerate().map(extension);
    std::iter::once(agent).chain(extensions).collect()
}

fn add_options(call: &Call<'_>, env: &mut Env<'_>) {
    let path = call.path;
    let extensions = if call.extensions {
        [" -Dotel.javaagent.extensions=", path, "/extensions"].concat()
    } else {
        String::new()
    };
    env.extend(OPTIONS, |own| {
        [own.unwrap_or_default(), " -javaagent:", path, "/javaagent.jar", &extensions].concat()
    });
}
