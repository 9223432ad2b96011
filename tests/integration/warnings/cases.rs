//! What is warned of.

use serde_json::{Value, json};

/// Something that is warned of.
pub struct Case {
    /// Its code.
    pub code: &'static str,
    /// The language that is asked for.
    pub language: &'static str,
    /// The Instrumentation's specification.
    pub spec: Value,
    /// Fields of the pod's container.
    pub container: Value,
    /// Fields of the pod's specification.
    pub pod: Value,
    /// The warning itself.
    pub sentence: &'static str,
}

/// A case of an endpoint of an Instrumentation.
fn endpoint(code: &'static str, language: &'static str, endpoint: &str, sentence: &'static str) -> Case {
    let spec = json!({"exporter": {"endpoint": endpoint}});
    Case { code, language, spec, container: json!({}), pod: json!({}), sentence }
}

/// A case of a variable of the container.
fn variable(language: &'static str, name: &str, value: &str, sentence: &'static str) -> Case {
    let container = json!({"env": [{"name": name, "value": value}]});
    Case { code: "OtherAgent", language, spec: json!({}), container, pod: json!({}), sentence }
}

fn arm64(language: &'static str, spec: Value, pod: Value, sentence: &'static str) -> Case {
    Case { code: "ImageLacksArm64", language, spec, container: json!({}), pod, sentence }
}

/// Each thing that is warned of, in each language in which it looks different.
#[expect(clippy::too_many_lines, reason = "one table, a row for each case")]
pub fn cases() -> Vec<Case> {
    let port = "PortContradictsProtocol";
    let arch = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]});
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [arch]}]});
    let affinity =
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}});
    let dotnet = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.15.0";
    let env = json!([{"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "grpc"}]);
    let grpc = json!({"exporter": {"endpoint": "http://c:4318"}, "env": env});
    vec![
        endpoint(
            "EndpointWithoutScheme",
            "java",
            "collector:4317",
            "OTEL_EXPORTER_OTLP_ENDPOINT is \"collector:4317\", without a scheme; set it to http://collector:4317",
        ),
        endpoint(
            port,
            "java",
            "http://c:4317",
            "OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends http/protobuf by default; set port \
             4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc",
        ),
        endpoint(
            port,
            "go",
            "http://$(OTEL_NODE_IP):4317",
            "OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but this agent sends http/protobuf by default; set port \
             4318, or OTEL_EXPORTER_OTLP_PROTOCOL to grpc",
        ),
        endpoint(
            port,
            "python",
            "http://c:4317",
            "OTEL_EXPORTER_OTLP_ENDPOINT has port 4317, but OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf; set port \
             4318",
        ),
        endpoint(
            port,
            "nginx",
            "http://c:4318",
            "NginxModuleOtelExporterEndpoint has port 4318, but this agent sends grpc only; set port 4317",
        ),
        Case {
            code: port,
            language: "sdk",
            spec: grpc,
            container: json!({}),
            pod: json!({}),
            sentence: "OTEL_EXPORTER_OTLP_ENDPOINT has port 4318, but OTEL_EXPORTER_OTLP_PROTOCOL is grpc; set port \
                       4317, or OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf",
        },
        variable(
            "java",
            "JAVA_TOOL_OPTIONS",
            "-javaagent:/dd/dd-java-agent.jar",
            "JAVA_TOOL_OPTIONS loads another agent, dd-java-agent.jar; two agents in one process interfere with each other, \
             so remove one of them",
        ),
        variable(
            "nodejs",
            "NODE_OPTIONS",
            "--require dd-trace/init",
            "NODE_OPTIONS loads another agent, dd-trace/init; two agents in one process interfere with each other, so remove \
             one of them",
        ),
        variable(
            "python",
            "PYTHONPATH",
            "/dd/ddtrace/bootstrap",
            "PYTHONPATH loads another agent, /dd/ddtrace/bootstrap; Python starts only the first of two agents, so \
             remove one of them",
        ),
        variable(
            "dotnet",
            "CORECLR_PROFILER",
            "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}",
            "CORECLR_PROFILER loads another agent, {846F5F1C-F9AE-4B07-969E-05C26BC060D8}; .NET loads that profiler \
             instead of the injected one, so remove one of them",
        ),
        arm64(
            "dotnet",
            json!({"dotnet": {"image": dotnet}}),
            affinity,
            "the pod runs on arm64 nodes only, and \
             ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-dotnet:1.15.0 has no build for arm64; \
             set an image that has one",
        ),
        Case {
            code: "LittleStorageLeft",
            language: "java",
            spec: json!({}),
            container: json!({"resources": {"limits": {"ephemeral-storage": "60Mi"}}}),
            pod: json!({}),
            sentence: "the agents take 24Mi of the pod's 60Mi of ephemeral storage; 36Mi is left for logs and files, \
                       and the kubelet evicts the pod when it uses more; raise resources.limits[ephemeral-storage]",
        },
        Case {
            code: "VolumeLimitTooSmall",
            language: "java",
            spec: json!({"java": {"volumeLimitSize": "10Mi"}}),
            container: json!({}),
            pod: json!({}),
            sentence: "the agent needs 24Mi, more than the size limit of its volume (10Mi), so the kubelet may \
                       evict the pod; raise spec.java.volumeLimitSize, or set spec.java.volumeClaimTemplate",
        },
    ]
}
