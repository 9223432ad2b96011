//! Why no data of an injected pod arrives: what is likely first.

use std::fmt;

use super::{Described, ObjectName, Shown};
use crate::shown::Names;

described! {
    /// Why no data of an injected pod arrives. What is certain, and comes first on the way of the data, precedes.
    Silent:
    /// A container that injection added, or that has the agent, cannot start or stay (docs/operations/failing.md).
    AgentFails { container: String, code: &'static str, problem: &'static str, remedy: &'static str }
        => "container \"{container}\" cannot start or stay ({code}): {problem}; {remedy}",
        said "see docs/operations/failing.md";
    /// The pod is not Ready, so that its agent need not have sent anything yet.
    PodNotReady { pod: String }
        => "pod \"{pod}\" is not Ready, so its agent need not have sent anything yet",
        fix "wait, or see why with kubectl describe pod";
    /// `OTEL_SDK_DISABLED` of the container is `true`.
    SdkDisabled { container: String }
        => "OTEL_SDK_DISABLED of container \"{container}\" is true, so it sends nothing",
        fix "remove the variable from the container, or from the Instrumentation";
    /// The exporters of metrics and traces are not `otlp`, or the sampler drops every span.
    NotExported { container: String, variables: Names }
        => "container \"{container}\" exports nothing by OTLP, because of {variables}",
        fix "remove the variables from the container, or from the Instrumentation";
    /// An OTLP endpoint such as `collector:4317`; agents expect a URL.
    EndpointWithoutScheme { problem: String }
        => "{problem}",
        said "set a URL, such as `http://collector:4317`";
    /// No endpoint is set, or it is `localhost`, and no other container of the pod could receive anything.
    EndpointInPod { container: String, port: u16 }
        => "container \"{container}\" sends to localhost:{port}, and the pod has no other container that could receive it",
        fix "set spec.exporter.endpoint of the Instrumentation to a Collector";
    /// The endpoint is a name of a Service that does not exist.
    ServiceNotFound { variable: &'static str, service: ObjectName }
        => "{variable} has the Service \"{service}\", which does not exist",
        fix "correct the endpoint, or create the Service";
    /// The Service of the endpoint has other ports.
    PortNotInService { service: ObjectName, port: u16, ports: Names }
        => "Service \"{service}\" has no port {port}; it has: {ports}",
        fix "correct the port of the endpoint, or add it to the Service";
    /// No pod behind the Service is ready, its selector selects none, or its pods do not have the port.
    NoReadyEndpoints { service: ObjectName, port: u16 }
        => "Service \"{service}\" has no ready endpoints for port {port}",
        fix "see whether its selector selects the pods of the Collector, and whether these are Ready";
    /// Port 4317 with `http/protobuf`, or 4318 with `grpc`: in the endpoint, or behind its Service.
    PortContradictsProtocol { problem: String }
        => "{problem}",
        said "change the port, or set `OTEL_EXPORTER_OTLP_PROTOCOL`";
    /// A Secret or ConfigMap of `spec.exporter.tls` does not exist in the namespace of the pod.
    CertificateNotFound { object: String }
        => "{object} of spec.exporter.tls does not exist, so the agent has no certificates",
        fix "create it, and restart the pods";
    /// The certificate of the backend is for other names than the host of the endpoint.
    CertificateOfOtherName { host: String, secret: ObjectName, names: Names }
        => "the certificate in Secret \"{secret}\" of the backend is not valid for {host}; it is valid for: {names}",
        fix "use one of these names in the endpoint, or add the name to the certificate";
    /// NetworkPolicies select the pod, and none of them allows it to connect to the backend.
    EgressDenied { policies: Names, backend: String, port: u16 }
        => "NetworkPolicies select the pod, and none allows egress to port {port} of {backend}: {policies}",
        fix "allow it in one of them";
    /// NetworkPolicies select the backend, and none of them allows the pod to connect to it.
    IngressDenied { policies: Names, backend: String, port: u16 }
        => "NetworkPolicies select {backend}, and none allows ingress from the pod to port {port}: {policies}",
        fix "allow it in one of them";
    /// No data of any pod of the namespace arrives.
    NamespaceSilent { namespace: String, pods: usize }
        => "no data of the {pods} pods of namespace \"{namespace}\" arrives that should, so the cause is probably none of this workload alone",
        fix "see the endpoint of the Instrumentation, its Collector, and the network of the namespace";
    /// Data of other pods of the namespace arrives.
    WorkloadSilent { namespace: String, pods: usize }
        => "data of {pods} other pods of namespace \"{namespace}\" arrives, so the cause is probably in the pods of this workload",
        fix "see the log of the container for messages of the agent, and compare its variables with those of other pods";
}
