//! Checks whether the API server can convert Instrumentations between the versions that it serves.

use serde_json::Value;

use super::{
    crd::NAME,
    result::{CheckResult, Code},
};
use otel_webhook_api::Version;
use otel_webhook_server::{
    registration::{Backend, MUTATING, Registration},
    subject::Subject,
};

/// The Service that converts, as namespace and name, if the CRD has one.
pub fn service(crd: &Value) -> Option<(&str, &str)> {
    let conversion = &crd["spec"]["conversion"];
    let service = &conversion["webhook"]["clientConfig"]["service"];
    let service = service["namespace"].as_str().zip(service["name"].as_str());
    service.filter(|_| conversion["strategy"] == "Webhook")
}

/// Returns the failure of conversions, with the commands by which this webhook converts in place of the other one.
pub fn failure(crd: &Value, problem: &str, registration: &Registration) -> CheckResult {
    let message = format!("Instrumentations cannot be read or written in every version: {problem}");
    let result = CheckResult::new(Code::CrdConversionFails, message);
    let result = result.about(Subject::new("CustomResourceDefinition", "", NAME));
    match commands(crd, registration) {
        None => result.advise("let the webhook that the CRD names run again, or replace the CRD"),
        Some(commands) => {
            let advice =
                "if the webhook that the CRD names was removed, let this one convert, by these commands";
            CheckResult { commands, ..result.advise(advice) }
        }
    }
}

/// Every object is written once, so that the API server stores it in the storage version. Then it needs none of the
/// other versions.
fn commands(crd: &Value, registration: &Registration) -> Option<Vec<String>> {
    let versions = crd["spec"]["versions"].as_array()?;
    let is_stored = |version: &&Version| {
        versions.iter().any(|one| one["name"] == version.name() && one["storage"] == true)
    };
    let storage = Version::ALL.iter().find(is_stored)?.name();
    let hook = registration.pods().find(|hook| hook.kind == MUTATING)?;
    let to = match &hook.backend {
        Backend::Service { namespace, name, port, .. } => {
            format!("--conversion-service {name} --namespace {namespace} --conversion-port {port}")
        }
        Backend::Url(url) => format!("--conversion-url {}", url.strip_suffix(&*hook.backend.path())?),
    };
    let (configuration, served) = (&hook.configuration, Version::ALL.map(Version::name).join(","));
    Some(vec![
        format!(
            "kubectl get mutatingwebhookconfiguration {configuration} \
             -o jsonpath='{{.webhooks[0].clientConfig.caBundle}}' | base64 -d >otel-webhook-ca.crt"
        ),
        format!(
            "otel-webhook crd --served {served} --storage {storage} {to} --ca-bundle otel-webhook-ca.crt | \
             kubectl apply --server-side --force-conflicts -f -"
        ),
        format!(
            "kubectl get instrumentations.{storage}.opentelemetry.io --all-namespaces -o json | \
             kubectl replace -f -"
        ),
        format!(
            "kubectl patch customresourcedefinition {NAME} --subresource status --type merge \
             --patch '{{\"status\":{{\"storedVersions\":[\"{storage}\"]}}}}'"
        ),
    ])
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    use serde_json::json;

    use super::*;

    fn registration(client: Value) -> Registration {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
        let configuration = json!({"metadata": {"name": "agents"}, "webhooks": [{
            "name": "pods.otel-webhook.io", "clientConfig": client, "rules": rules, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }]});
        let configuration: MutatingWebhookConfiguration =
            serde_json::from_value(configuration).expect("a configuration");
        Registration::new(&[], &[configuration], &[])
    }

    fn crd() -> Value {
        json!({"spec": {
            "versions": [{"name": "v1alpha1", "storage": false}, {"name": "v1beta1", "storage": true}],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {
                "service": {"namespace": "operators", "name": "gone"},
            }}},
        }})
    }

    #[test]
    fn the_commands_let_this_webhook_convert_and_store_every_object_in_one_version() {
        let service =
            json!({"service": {"namespace": "home", "name": "hook", "port": 8443, "path": "/mutate-v1-pod"}});
        assert_eq!(super::service(&crd()), Some(("operators", "gone")));
        let result = failure(&crd(), "refused", &registration(service));
        assert!(result.line().contains("in every version: refused; if the webhook"), "{}", result.line());
        let [bundle, apply, replace, patch] = &result.commands[..] else { panic!("{result:?}") };
        assert!(bundle.contains("mutatingwebhookconfiguration agents"), "{bundle}");
        let flags = "--served v1alpha1,v1beta1 --storage v1beta1 --conversion-service hook --namespace home \
                     --conversion-port 8443";
        assert!(apply.contains(flags), "{apply}");
        assert!(
            replace.contains("get instrumentations.v1beta1.opentelemetry.io --all-namespaces"),
            "{replace}"
        );
        assert!(patch.contains(r#"{"status":{"storedVersions":["v1beta1"]}}"#), "{patch}");
    }

    #[test]
    fn a_webhook_outside_of_the_cluster_converts_at_its_url() {
        let url = json!({"url": "https://192.0.2.7:9443/mutate-v1-pod"});
        let result = failure(&crd(), "refused", &registration(url));
        assert!(result.commands[1].contains("--conversion-url https://192.0.2.7:9443 "), "{result:?}");
        let mut unknown = crd();
        unknown["spec"]["versions"] = json!([{"name": "v2", "storage": true}]);
        assert!(failure(&unknown, "refused", &registration(json!({}))).commands.is_empty());
    }
}
