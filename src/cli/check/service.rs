//! Checks the Services of the webhooks.

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use super::result::{CheckResult, Code};
use crate::cli::cluster::{
    facts::{self, ServiceFacts},
    reader::Asked,
};
use crate::subject::Subject;

/// Returns the results for a Service.
pub fn results(facts: &ServiceFacts) -> Vec<CheckResult> {
    let about = |result: CheckResult| result.about(Subject::new("Service", &facts.namespace, &facts.name));
    let service = match &facts.service {
        Ok(Some(service)) => service,
        Ok(None) => {
            let advice = "create it, or change the Service in the webhook configuration";
            return vec![about(CheckResult::new(Code::ServiceMissing, "not found").advise(advice))];
        }
        Err(not_told) => return vec![not_told.result()],
    };
    facts.ports.iter().map(|port| about(of_port(service, &facts.slices, *port))).collect()
}

fn of_port(service: &Service, slices: &Asked<Vec<EndpointSlice>>, port: i32) -> CheckResult {
    let spec = service.spec.as_ref();
    if let Some(name) = spec.and_then(|spec| spec.external_name.as_ref()).filter(|name| !name.is_empty()) {
        return CheckResult::new(
            Code::EndpointsReady,
            format!("has the external name {name}; its endpoints cannot be checked"),
        );
    }
    let ports = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let Some(own) = ports.iter().find(|own| own.port == port) else {
        let there = ports.iter().map(|own| own.port.to_string()).collect::<Vec<_>>().join(", ");
        let advice = "change the port in the webhook configuration";
        return CheckResult::new(Code::PortMissing, format!("has no port {port}; its ports: {there}"))
            .advise(advice);
    };
    let slices = match slices {
        Ok(slices) => slices,
        Err(not_told) => return not_told.result(),
    };
    match facts::ready(slices, own.name.as_deref().unwrap_or_default()) {
        0 => {
            let advice = "check the webhook's pods and their logs: kubectl get pods, kubectl logs";
            let message = format!("has no ready endpoints for port {port}: pods are not injected");
            CheckResult::new(Code::EndpointsMissing, message).advise(advice)
        }
        count => {
            CheckResult::new(Code::EndpointsReady, format!("has {count} ready endpoints for port {port}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::cli::cluster::reader::NotTold;

    fn facts(spec: Value, endpoints: Value) -> ServiceFacts {
        let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "https", "port": 9443}]});
        ServiceFacts {
            namespace: "otel-webhook".to_owned(),
            name: "otel-webhook".to_owned(),
            ports: vec![443],
            service: Ok(Some(from_value(json!({"metadata": {}, "spec": spec})).expect("a Service"))),
            slices: Ok(vec![from_value(slice).expect("a slice")]),
        }
    }

    fn said(facts: &ServiceFacts) -> (Code, String) {
        let results = results(facts);
        (results[0].code, results[0].line())
    }

    fn spec() -> Value {
        json!({"ports": [{"name": "https", "port": 443, "targetPort": 9443}]})
    }

    #[test]
    fn ready_endpoints_of_the_port_are_counted() {
        let endpoints = json!([
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
            {"addresses": ["10.0.0.2"]},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
        ]);
        let (code, line) = said(&facts(spec(), endpoints.clone()));
        assert_eq!(code, Code::EndpointsReady);
        assert!(
            line.ends_with("Service otel-webhook/otel-webhook: has 2 ready endpoints for port 443"),
            "{line}"
        );
        let other = json!({"ports": [{"name": "metrics", "port": 443}]});
        assert_eq!(said(&facts(other, endpoints)).0, Code::EndpointsMissing);
    }

    #[test]
    fn missing_endpoints_and_ports_are_reported() {
        let none = json!([{"addresses": ["10.0.0.3"], "conditions": {"ready": false}}]);
        let (code, line) = said(&facts(spec(), none));
        assert_eq!(code, Code::EndpointsMissing);
        assert!(line.contains("has no ready endpoints for port 443"), "{line}");
        let (code, line) = said(&facts(json!({"ports": [{"port": 8443}, {"port": 80}]}), json!([])));
        assert_eq!(code, Code::PortMissing);
        assert!(line.contains("has no port 443; its ports: 8443, 80"), "{line}");
        let gone = ServiceFacts { service: Ok(None), ..facts(spec(), json!([])) };
        assert_eq!(said(&gone).0, Code::ServiceMissing);
        let external = json!({"externalName": "webhook.example.com", "ports": []});
        assert_eq!(said(&facts(external, json!([]))).0, Code::EndpointsReady);
    }

    #[test]
    fn missing_permissions_are_warnings() {
        let forbidden = || NotTold { question: "get services a".to_owned(), problem: "forbidden".to_owned() };
        let facts = ServiceFacts { slices: Err(forbidden()), ..facts(spec(), json!([])) };
        let (code, line) = said(&facts);
        assert_eq!(code, Code::NotAllowed);
        assert!(line.contains("cannot get services a: forbidden"), "{line}");
    }
}
