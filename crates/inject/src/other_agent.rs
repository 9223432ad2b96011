//! Other agents that a container already loads, as far as its variables show it.
//!
//! Two agents in one process change the same classes or modules, or use the same single hook of
//! the runtime. Images, paths and references are not checked.

use std::fmt;

use super::env::Env;

/// How an agent is recognised in a variable.
enum Sign {
    /// An option of the JVM that loads any agent except these, which change no classes that ours changes.
    AnyBut(&'static str, &'static [&'static str]),
    /// An option of the JVM that loads one of these libraries, recognised by a part of their names.
    Library(&'static str, &'static [&'static str]),
    /// An option of Node.js that loads one of these packages.
    Package(&'static [&'static str], &'static [&'static str]),
    /// A folder of a search path with a `sitecustomize` that starts an agent.
    Folder(&'static [&'static str]),
    /// Any value except this one.
    NotThis(&'static str),
}

/// A rule: in which variables of a language an agent is recognised, and how.
struct Row {
    language: &'static str,
    variables: &'static [&'static str],
    sign: Sign,
    effect: &'static str,
}

/// The effect of two agents that change the same classes or modules.
const BOTH: &str = "two agents in one process interfere with each other";

/// The effect of two folders with a `sitecustomize`.
const FIRST: &str = "Python starts only the first of two agents";

/// The effect of a second profiler, since the runtime loads only one.
const THAT: &str = ".NET loads that profiler instead of the injected one";

/// Another agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherAgent {
    /// The variable that loads it.
    pub variable: &'static str,
    /// Its file, package, folder or class.
    pub agent: String,
    /// The effect of both.
    pub effect: &'static str,
}

impl fmt::Display for OtherAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, agent, effect } = self;
        write!(f, "{variable} loads another agent, {agent}; {effect}, so remove one of them")
    }
}

/// All variables with options of a JVM.
const JVM: &[&str] = &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// Parts of the names of libraries of known agents and profilers.
const LIBRARIES: &[&str] = &["oneagent", "appdynamics", "yjpagent", "jprofilerti"];

/// The class ID of our .NET profiler.
pub const DOTNET_PROFILER: &str = "{918728DD-259F-4A6A-AC2B-B85E1B658318}";

/// The prefix of paths that injection adds.
const OWN: &str = "/otel-auto-instrumentation-";

/// The maximum length of a name in messages, in characters.
const LONGEST: usize = 80;

/// The table.
const ROWS: &[Row] = &[
    Row {
        language: "java",
        variables: JVM,
        // The exporter of JMX metrics, and test coverage.
        sign: Sign::AnyBut("-javaagent:", &["jmx_prometheus_javaagent", "jolokia", "jacocoagent"]),
        effect: BOTH,
    },
    Row { language: "java", variables: JVM, sign: Sign::Library("-agentpath:", LIBRARIES), effect: BOTH },
    Row { language: "java", variables: JVM, sign: Sign::Library("-agentlib:", LIBRARIES), effect: BOTH },
    Row {
        language: "nodejs",
        variables: &["NODE_OPTIONS"],
        sign: Sign::Package(
            &["--require", "-r", "--import", "--loader", "--experimental-loader"],
            &[
                "dd-trace",
                "newrelic",
                "elastic-apm-node",
                "appdynamics",
                "applicationinsights",
                "skywalking-backend-js",
                "@dynatrace/oneagent",
                "@instana/collector",
                "@elastic/opentelemetry-node",
                "@splunk/otel",
                "@opentelemetry",
            ],
        ),
        effect: BOTH,
    },
    Row {
        language: "python",
        variables: &["PYTHONPATH"],
        sign: Sign::Folder(&[
            "ddtrace/bootstrap",
            "newrelic/bootstrap",
            "skywalking/bootstrap",
            "opentelemetry/instrumentation/auto_instrumentation",
        ]),
        effect: FIRST,
    },
    Row {
        language: "dotnet",
        variables: &["CORECLR_PROFILER"],
        sign: Sign::NotThis(DOTNET_PROFILER),
        effect: THAT,
    },
];

/// The maximum number of reported agents of one variable.
const MOST: usize = 3;

/// The other agents in a container with these variables.
pub fn find(language: &str, env: &Env<'_>) -> Vec<OtherAgent> {
    let mut found = Vec::new();
    for row in ROWS.iter().filter(|row| row.language == language) {
        for &variable in row.variables {
            let value = env.value(variable).unwrap_or_default();
            for agent in row.sign.agents(value).into_iter().take(MOST) {
                let agent = agent.chars().take(LONGEST).collect();
                let other = OtherAgent { variable, agent, effect: row.effect };
                if !found.contains(&other) {
                    found.push(other);
                }
            }
        }
    }
    found
}

impl Sign {
    /// The other agents that a value loads.
    fn agents<'v>(&self, value: &'v str) -> Vec<&'v str> {
        match *self {
            Self::AnyBut(option, harmless) => {
                let files = words(value).filter_map(|word| word.strip_prefix(option)).filter_map(file);
                files.filter(|file| !harmless.iter().any(|name| file.contains(name))).collect()
            }
            Self::Library(option, names) => {
                let files = words(value).filter_map(|word| word.strip_prefix(option)).filter_map(file);
                let known = |file: &&str| {
                    let file = file.to_ascii_lowercase();
                    names.iter().any(|name| file.contains(name))
                };
                files.filter(known).collect()
            }
            Self::Package(options, names) => modules(value, options)
                .filter(|module| !module.starts_with(OWN) && names.iter().any(|name| has_part(module, name)))
                .collect(),
            Self::Folder(names) => {
                let foreign = value.split(':').filter(|folder| !folder.starts_with(OWN));
                foreign.filter(|folder| names.iter().any(|name| has_part(folder, name))).collect()
            }
            Self::NotThis(own) => {
                let is_other = !value.is_empty() && !value.contains("$(") && !value.eq_ignore_ascii_case(own);
                is_other.then_some(value).into_iter().collect()
            }
        }
    }
}

/// The words of a list of options, without quotes.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split_ascii_whitespace().map(|word| word.trim_matches(['"', '\'']))
}

/// The file name in an option, without its folder and the agent's options, which may contain a key. `None`
/// for ours, and for a possible reference.
fn file(path: &str) -> Option<&str> {
    let path = path.split(['=', ',']).next().unwrap_or_default();
    let is_seen = !path.starts_with(OWN) && !path.contains("$(");
    path.rsplit('/').next().filter(|name| is_seen && !name.is_empty())
}

/// The modules that Node.js loads by these options, which have their value after `=` or as the next word.
fn modules<'v>(value: &'v str, options: &'static [&'static str]) -> impl Iterator<Item = &'v str> {
    let mut words = words(value);
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            match word.split_once('=') {
                Some((option, module)) if options.contains(&option) => return Some(module),
                None if options.contains(&word) => return words.next(),
                _ => {}
            }
        }
    })
}

/// Whether a path contains these folders or files in this order.
fn has_part(path: &str, part: &str) -> bool {
    let mut rest = path;
    while let Some(at) = rest.find(part) {
        let begins = at == 0 || rest.as_bytes()[at - 1] == b'/';
        let behind = &rest[at + part.len()..];
        if begins && (behind.is_empty() || behind.starts_with('/')) {
            return true;
        }
        rest = behind;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Entry;

    fn found(language: &str, variable: &'static str, value: &'static str) -> Vec<String> {
        let mut env = Env::default();
        env.set_default(Entry::new(variable, value));
        find(language, &env).iter().map(|other| format!("{} {}", other.variable, other.agent)).collect()
    }

    #[test]
    fn only_the_first_of_many_agents_are_reported() {
        let many: Vec<_> = (0..100_000).map(|index| format!("-javaagent:/{index}.jar")).collect();
        assert_eq!(found("java", "JAVA_TOOL_OPTIONS", many.join(" ").leak()).len(), MOST);
    }

    #[test]
    fn another_agent_is_recognised_in_the_variable_that_loads_it() {
        for (language, variable, value, agent) in [
            (
                "java",
                "JAVA_TOOL_OPTIONS",
                "-Xmx1g -javaagent:/dd/dd-java-agent.jar=key=a",
                "dd-java-agent.jar",
            ),
            ("java", "JDK_JAVA_OPTIONS", "\"-javaagent:newrelic.jar\"", "newrelic.jar"),
            ("java", "_JAVA_OPTIONS", "-agentpath:/opt/liboneagentproc.so=tenant=x", "liboneagentproc.so"),
            ("java", "JAVA_TOOL_OPTIONS", "-agentlib:jprofilerti=port=8849", "jprofilerti"),
            ("nodejs", "NODE_OPTIONS", "--require dd-trace/init", "dd-trace/init"),
            (
                "nodejs",
                "NODE_OPTIONS",
                "--max-old-space-size=9 -r ./node_modules/newrelic",
                "./node_modules/newrelic",
            ),
            ("nodejs", "NODE_OPTIONS", "--import=elastic-apm-node/start.mjs", "elastic-apm-node/start.mjs"),
            (
                "nodejs",
                "NODE_OPTIONS",
                "--require '@opentelemetry/auto-instrumentations-node/register'",
                "@opentelemetry/auto-instrumentations-node/register",
            ),
            ("python", "PYTHONPATH", "/app:/usr/lib/ddtrace/bootstrap", "/usr/lib/ddtrace/bootstrap"),
            (
                "dotnet",
                "CORECLR_PROFILER",
                "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}",
                "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}",
            ),
        ] {
            assert_eq!(found(language, variable, value), [format!("{variable} {agent}")], "{value}");
            assert_eq!(found("sdk", variable, value), [""; 0], "{value}");
        }
    }

    #[test]
    fn our_agents_and_harmless_or_unknown_values_are_not_reported() {
        for (language, variable, value) in [
            ("java", "JAVA_TOOL_OPTIONS", " -javaagent:/otel-auto-instrumentation-java-app/javaagent.jar"),
            ("java", "JAVA_TOOL_OPTIONS", "-javaagent:/opt/jmx_prometheus_javaagent-1.0.jar=8080:a.yaml"),
            ("java", "JAVA_TOOL_OPTIONS", "-agentlib:jdwp=transport=dt_socket -Dx=-javaagent:/a.jar"),
            ("java", "JAVA_TOOL_OPTIONS", "-javaagent:$(AGENT) $(OPTIONS)"),
            ("nodejs", "NODE_OPTIONS", " --require /otel-auto-instrumentation-nodejs/autoinstrumentation.js"),
            ("nodejs", "NODE_OPTIONS", "--require ./my-newrelic --title newrelic --require"),
            (
                "python",
                "PYTHONPATH",
                "/otel-auto-instrumentation-python/opentelemetry/instrumentation/auto_instrumentation:/app",
            ),
            ("python", "PYTHONPATH", "/app/ddtrace/bootstrapped"),
            ("dotnet", "CORECLR_PROFILER", "{918728dd-259f-4a6a-ac2b-b85e1b658318}"),
            ("dotnet", "CORECLR_PROFILER", "$(PROFILER)"),
        ] {
            assert_eq!(found(language, variable, value), [""; 0], "{value}");
        }
    }
}
