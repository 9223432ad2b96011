//! Java: the javaagent, its extensions, and `JAVA_TOOL_OPTIONS`.

use std::borrow::Cow;

use super::{Language, Mark};
use crate::{
    agent::{self, Call, CopiedAgent, Copying},
    env::Env,
    job::Job,
};
use otel_webhook_api::{Settings, defaults::JAVA};

/// Java's row of the language table.
pub const ROW: Language = Language {
    name: "java",
    inject: "inject-java",
    containers: "java-container-names",
    defaults: Some(&JAVA),
    enabled_by_default: true,
    exports_from_target: true,
    in_init_containers: true,
    marks: &[Mark::Init(AGENT.name), Mark::InitWithNumber(EXTENSION)],
    settings: |spec| spec.java.as_ref().map(Settings::from).unwrap_or_default(),
    inject_into: |job| agent::inject(job, &AGENT),
};

/// What the names of the init containers of extensions begin with.
const EXTENSION: &str = "opentelemetry-auto-instrumentation-extension-";

const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

const AGENT: CopiedAgent = CopiedAgent {
    name: "opentelemetry-auto-instrumentation-java",
    mount_path: "/otel-auto-instrumentation-java",
    // Each target has a path of its own, since the option that names it is
    // inherited by every Java process that the container starts.
    target_path: |container| ["/otel-auto-instrumentation-java-", container].concat().into(),
    extended: &[OPTIONS],
    platforms: None,
    fits_target: None,
    copies,
    search_path: None,
    last: add_options,
};

fn copies<'p>(job: &Job<'_, 'p>, _platform: &'static str) -> Vec<Copying<'p>> {
    let prepared = job.prepared();
    let command = ["cp", "/javaagent.jar", "/otel-auto-instrumentation-java/javaagent.jar"];
    let agent = Copying {
        name: AGENT.name.into(),
        image: &prepared.image,
        command: command.map(Cow::Borrowed).into(),
    };
    let extension = |(index, (image, dir)): (usize, &'p (String, String))| Copying {
        name: [EXTENSION, &index.to_string()].concat().into(),
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
