//! Java: the javaagent, its extensions, and `JAVA_TOOL_OPTIONS`.

use super::{Language, Mark};
use crate::{
    api::{Settings, defaults::JAVA},
    inject::{
        agent::{self, Call, CopiedAgent, Copying},
        env::Env,
        job::Job,
    },
};

/// Java's row of the language table.
pub const ROW: Language = Language {
    name: "java",
    inject: "inject-java",
    containers: "java-container-names",
    defaults: Some(&JAVA),
    enabled_by_default: true,
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
    target_path: |container| format!("/otel-auto-instrumentation-java-{container}").into(),
    extended: &[OPTIONS],
    platforms: None,
    fits_target: None,
    copies,
    search_path: None,
    last: add_options,
};

fn copies(job: &Job<'_, '_>, _platform: &str) -> Vec<Copying> {
    let prepared = job.prepared();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let agent = Copying {
        name: AGENT.name.into(),
        image: prepared.image.clone(),
        command: words(&["cp", "/javaagent.jar", "/otel-auto-instrumentation-java/javaagent.jar"]),
    };
    let extension = |(index, (image, dir)): (usize, &(String, String))| Copying {
        name: format!("{EXTENSION}{index}").into(),
        image: image.clone(),
        command: words(&["cp", "-r", &format!("{dir}/."), "/otel-auto-instrumentation-java/extensions"]),
    };
    let extensions = prepared.extensions.iter().enumerate().map(extension);
    std::iter::once(agent).chain(extensions).collect()
}

fn add_options(call: &Call<'_>, env: &mut Env<'_>) {
    let path = call.path;
    let agent = format!(" -javaagent:{path}/javaagent.jar");
    let extensions = format!(" -Dotel.javaagent.extensions={path}/extensions");
    let options = if call.extensions { agent + &extensions } else { agent };
    env.extend(OPTIONS, |own| own.unwrap_or_default().to_owned() + &options);
}
