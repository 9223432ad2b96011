//! .NET: the profiler, the startup hook, and the paths that they need.

use crate::{
    agents::copied::{Call, CopiedAgent, Platforms},
    env::{Entry, Env},
    injection::Injection,
    language::{self, DOTNET_AGENT},
    other_agent::DOTNET_PROFILER,
    reason::Reason,
    target::join_path,
};
use otel_webhook_api::defaults::{self, Release};

const HOME: &str = "OTEL_DOTNET_AUTO_HOME";
const HOOKS: &str = "DOTNET_STARTUP_HOOKS";
const DEPENDENCIES: &str = "DOTNET_ADDITIONAL_DEPS";
const STORE: &str = "DOTNET_SHARED_STORE";

/// The version in which the folders of the native library lost the architecture from their names: `linux` was
/// `linux-x64` (D43). Since then links have the older names.
const FOLDERS_RENAMED: Release = (1, 16);

/// The agent.
pub const AGENT: CopiedAgent<'static> = CopiedAgent {
    name: DOTNET_AGENT,
    mount_path: "/otel-auto-instrumentation-dotnet",
    target_path: None,
    extended: language::DOTNET.extended,
    platforms: Some(Platforms {
        annotation: "otel-dotnet-auto-runtime",
        choices: &[("linux-x64", "linux"), ("linux-musl-x64", "linux-musl")],
    }),
    fits_target: Some(check_home),
    images: |agent, injection, _| agent.folder(injection, "autoinstrumentation"),
    search_path: None,
    last: add_profiler,
};

/// An image that sets the agent's path contains an agent. The common
/// variables of injection are ignored, whichever language added them.
fn check_home(injection: &Injection<'_, '_>, env: &Env<'_>) -> Result<(), Reason> {
    let by_instrumentation = injection.prepared().env.iter().any(|setting| setting.name == HOME);
    let by_container = env.get(HOME).is_some_and(|entry| entry.origin.is_some());
    if by_container || by_instrumentation { Err(Reason::AutoHomeSet) } else { Ok(()) }
}

fn add_profiler(call: &Call<'_, '_>, env: &mut Env<'_>) {
    let path = call.path;
    let is_older = defaults::DOTNET.is_before(call.image, FOLDERS_RENAMED);
    let folder = [call.platform, if is_older { "-x64" } else { "" }].concat();
    let library = format!("{path}/{folder}/OpenTelemetry.AutoInstrumentation.Native.so");
    let append = |env: &mut Env<'_>, name, file| {
        env.extend(name, |own| join_path(own, &format!("{path}/{file}")));
    };
    env.set_default(Entry::new("CORECLR_ENABLE_PROFILING", "1"));
    env.set_default(Entry::new("CORECLR_PROFILER", DOTNET_PROFILER));
    env.set_default(Entry::new("CORECLR_PROFILER_PATH", library));
    append(env, HOOKS, "net/OpenTelemetry.AutoInstrumentation.StartupHook.dll");
    append(env, DEPENDENCIES, "AdditionalDeps");
    env.set_default(Entry::new(HOME, path.to_owned()));
    append(env, STORE, "store");
}
