//! Each language through a real API server, as section 4 of the contract has
//! it. Java and SDK have cases of their own.

use otel_webhook_testkit::{
    cluster::created::{Created, name},
    objects::items,
};
use serde_json::{Map, Value, json};

use crate::audit;
use crate::cluster::{Cluster, asking};

/// What a pod of one container comes back with.
struct Row {
    language: &'static str,
    /// The language's part of an Instrumentation.
    field: &'static str,
    /// The init containers, each with its image and the end of its command line.
    init: &'static [(&'static str, Image, &'static [&'static str])],
    /// The containers beside the application.
    sidecars: &'static [&'static str],
    volumes: &'static [&'static str],
    /// The application's mounts: volume and path.
    mounts: &'static [(&'static str, &'static str)],
    /// Variables that are the language's own, and of which container.
    variables: (&'static str, &'static [(&'static str, &'static str)]),
}

enum Image {
    Agent,
    Application,
}

const CONF: &str = "/opt/opentelemetry-webserver/source-conf";
const SERVER_AGENT: &str = "/opt/opentelemetry-webserver/agent";
const CLONE: &str = "otel-agent-source-container-clone";
const SIDECAR: &str = "opentelemetry-auto-instrumentation";

const ROWS: [Row; 6] = [
    Row {
        language: "nodejs",
        field: "nodejs",
        init: &[(
            "opentelemetry-auto-instrumentation-nodejs",
            Image::Agent,
            &["cp", "-rf", "/autoinstrumentation/.", "/otel-auto-instrumentation-nodejs"],
        )],
        sidecars: &[],
        volumes: &["opentelemetry-auto-instrumentation-nodejs"],
        mounts: &[("opentelemetry-auto-instrumentation-nodejs", "/otel-auto-instrumentation-nodejs")],
        variables: (
            "app",
            &[
                ("NODE_OPTIONS", " --require /otel-auto-instrumentation-nodejs/autoinstrumentation.js"),
                ("OTEL_METRICS_EXPORTER", "otlp"),
            ],
        ),
    },
    Row {
        language: "python",
        field: "python",
        init: &[(
            "opentelemetry-auto-instrumentation-python",
            Image::Agent,
            &["cp", "-rf", "/autoinstrumentation/.", "/otel-auto-instrumentation-python"],
        )],
        sidecars: &[],
        volumes: &["opentelemetry-auto-instrumentation-python"],
        mounts: &[("opentelemetry-auto-instrumentation-python", "/otel-auto-instrumentation-python")],
        variables: (
            "app",
            &[
                (
                    "PYTHONPATH",
                    "/otel-auto-instrumentation-python/opentelemetry/instrumentation/auto_instrumentation:\
                     /otel-auto-instrumentation-python",
                ),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
                ("OTEL_TRACES_EXPORTER", "otlp"),
                ("OTEL_METRICS_EXPORTER", "otlp"),
                ("OTEL_LOGS_EXPORTER", "otlp"),
            ],
        ),
    },
    Row {
        language: "dotnet",
        field: "dotnet",
        init: &[(
            "opentelemetry-auto-instrumentation-dotnet",
            Image::Agent,
            &["cp", "-rf", "/autoinstrumentation/.", "/otel-auto-instrumentation-dotnet"],
        )],
        sidecars: &[],
        volumes: &["opentelemetry-auto-instrumentation-dotnet"],
        mounts: &[("opentelemetry-auto-instrumentation-dotnet", "/otel-auto-instrumentation-dotnet")],
        variables: (
            "app",
            &[
                ("CORECLR_ENABLE_PROFILING", "1"),
                ("CORECLR_PROFILER", "{918728DD-259F-4A6A-AC2B-B85E1B658318}"),
                (
                    "CORECLR_PROFILER_PATH",
                    "/otel-auto-instrumentation-dotnet/linux/OpenTelemetry.AutoInstrumentation.Native.so",
                ),
                (
                    "DOTNET_STARTUP_HOOKS",
                    "/otel-auto-instrumentation-dotnet/net/OpenTelemetry.AutoInstrumentation.StartupHook.dll",
                ),
                ("DOTNET_ADDITIONAL_DEPS", "/otel-auto-instrumentation-dotnet/AdditionalDeps"),
                ("OTEL_DOTNET_AUTO_HOME", "/otel-auto-instrumentation-dotnet"),
                ("DOTNET_SHARED_STORE", "/otel-auto-instrumentation-dotnet/store"),
            ],
        ),
    },
    Row {
        language: "go",
        field: "go",
        init: &[],
        sidecars: &[SIDECAR],
        volumes: &["kernel-debug"],
        mounts: &[],
        variables: (SIDECAR, &[("OTEL_GO_AUTO_TARGET_EXE", "/app"), ("OTEL_SERVICE_NAME", "go")]),
    },
    Row {
        language: "apache-httpd",
        field: "apacheHttpd",
        init: &[
            (CLONE, Image::Application, &["cp", "-r", "/usr/local/apache2/conf/.", CONF]),
            ("otel-agent-attach-apache", Image::Agent, &["--", "/usr/local/apache2/conf"]),
        ],
        sidecars: &[],
        volumes: &["otel-apache-conf-dir", "otel-apache-agent"],
        mounts: &[("otel-apache-agent", SERVER_AGENT), ("otel-apache-conf-dir", "/usr/local/apache2/conf")],
        variables: ("app", &[("OTEL_SERVICE_NAME", "apache-httpd")]),
    },
    Row {
        language: "nginx",
        field: "nginx",
        init: &[
            (CLONE, Image::Application, &["--", "/etc/nginx"]),
            ("otel-agent-attach-nginx", Image::Agent, &["--", "nginx.conf"]),
        ],
        sidecars: &[],
        volumes: &["otel-nginx-conf-dir", "otel-nginx-agent"],
        mounts: &[("otel-nginx-agent", SERVER_AGENT), ("otel-nginx-conf-dir", "/etc/nginx")],
        variables: ("app", &[("LD_LIBRARY_PATH", "/opt/opentelemetry-webserver/agent/sdk_lib/lib")]),
    },
];

pub fn each(cluster: &Cluster) {
    let namespace = "languages";
    prepare(cluster, namespace);
    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    for row in &ROWS {
        let pod = cluster.create(namespace, &one_asking(row.language));
        assert_eq!(pod.warnings, "", "{}", row.language);
        check(row, &pod);
        let decision = audit::decision(cluster, namespace, row.language);
        assert_eq!(decision, format!("{}/app=Injected", row.language));
    }
}

/// A namespace that would refuse the privileged sidecar gets its pod without.
pub fn go_where_it_would_be_refused(cluster: &Cluster) {
    let namespace = "baseline";
    prepare(cluster, namespace);
    let label = "pod-security.kubernetes.io/enforce=baseline";
    let ran = cluster.plane.kubectl(&["label", "namespace", namespace, label]);
    assert!(ran.ok, "{}", ran.stderr);
    let mut privileged = asking("privileged", &[]);
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let args = ["create", "--namespace", namespace, "--dry-run=server", "--filename", "-"];
    let ran = cluster.plane.kubectl_in(&args, &privileged.to_string());
    assert!(!ran.ok && ran.stderr.contains("PodSecurity"), "nothing is enforced: {}", ran.stderr);

    let _all = cluster.webhook.restart_with(&["--languages", "all"]);
    let sentence = "namespace \"baseline\" enforces the pod security level \"baseline\"";
    let pod = cluster.create(namespace, &one_asking("go"));
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert!(pod.warnings.contains(sentence), "{}", pod.warnings);
    assert_eq!(audit::decision(cluster, namespace, "go"), "go/app=PodSecurity");

    // The same for what an Instrumentation gives init containers.
    let context = json!({"initContainerSecurityContext": {"privileged": true}});
    cluster.instrumentation(namespace, "default", &context);
    let refused =
        |pod: &Created| pod.warnings.contains("of the Instrumentation \"baseline/default\": see privileged");
    let pod = cluster.create_when("the context is refused", namespace, &one_asking("java"), refused);
    assert!(pod.is_untouched(), "{}", pod.pod);
    assert_eq!(audit::decision(cluster, namespace, "java"), "java=PodSecurity");
}

fn prepare(cluster: &Cluster, namespace: &str) {
    cluster.instrumented_namespace(namespace);
    let images = ROWS.iter().map(|row| (row.field.to_owned(), json!({"image": agent(row.language)})));
    cluster.instrumentation(namespace, "default", &Value::Object(images.collect::<Map<_, _>>()));
}

fn agent(language: &str) -> String {
    format!("registry.example.com/agents/autoinstrumentation-{language}:1")
}

fn one_asking(language: &str) -> Value {
    let annotations = [(&*format!("inject-{language}"), "true"), ("otel-go-auto-target-exe", "/app")];
    asking(language, &annotations)
}

fn check(row: &Row, pod: &Created) {
    let (language, spec) = (row.language, &pod.pod["spec"]);
    let expected: Vec<_> = row.init.iter().map(|(name, ..)| *name).collect();
    assert_eq!(pod.init_containers(), expected, "{language}");
    for (name, image, command) in row.init {
        let container = pod.container(name);
        let image = match image {
            Image::Agent => &agent(language),
            Image::Application => "registry.example.com/app:1.0",
        };
        assert_eq!(container["image"], image, "{name}");
        let words = items(&container["command"]).chain(items(&container["args"])).filter_map(Value::as_str);
        let words: Vec<_> = words.collect();
        assert!(words.ends_with(command), "{name}: {words:?}");
    }
    let beside: Vec<_> = items(&spec["containers"]).map(name).filter(|name| *name != "app").collect();
    assert_eq!(beside, row.sidecars, "{language}");
    // The API server adds one for the service account's token.
    let own = |volume: &&str| !volume.starts_with("kube-api-access-");
    let volumes: Vec<_> = items(&spec["volumes"]).map(name).filter(own).collect();
    assert_eq!(volumes, row.volumes, "{language}");
    let mounts: Vec<_> = items(&pod.container("app")["volumeMounts"])
        .map(|mount| (name(mount), mount["mountPath"].as_str().unwrap_or_default()))
        .filter(|(volume, _)| own(volume))
        .collect();
    assert_eq!(mounts, row.mounts, "{language}");
    let (container, variables) = row.variables;
    for (variable, value) in variables {
        assert_eq!(pod.variable(container, variable), *value, "{language}: {variable}");
    }
    assert_eq!(pod.attribute(container, "k8s.container.name"), "app", "{language}");
    let is_go = !row.sidecars.is_empty();
    assert_eq!(spec["shareProcessNamespace"] == true, is_go, "{language}");
    assert!(!is_go || pod.container(SIDECAR)["securityContext"]["privileged"] == true);
}
