//! What every injected container has: resources, pull policy, security context.

use serde_json::Value;

use super::{
    edit::{Place, container_at},
    job::Job,
    json,
};

/// Appends resources, pull policy and security context as members of an init container.
pub fn write_policies(out: &mut String, job: &Job<'_, '_>, first_target: Place) {
    write_resources(out, job);
    write_pull_policy(out, job);
    let target = container_at(job.facts.pod, first_target);
    let own = target.security_context.map(serde_json::value::RawValue::get);
    let context = job.instrumentation().security_context.as_deref().or(own);
    write_raw(out, "securityContext", context);
}

/// Appends the resources of the language, without claims that the pod does not have (D17).
pub fn write_resources(out: &mut String, job: &Job<'_, '_>) {
    let resources = &job.prepared().resources;
    let pod_claims = &job.facts.pod.spec.resource_claims;
    let known = |claim: &str| pod_claims.iter().any(|own| *own.name == *claim);
    if resources.claims.iter().all(|claim| known(claim)) {
        return write_raw(out, "resources", Some(&resources.json));
    }
    let mut value = resources.value.clone();
    if let Some(claims) = value.get_mut("claims").and_then(Value::as_array_mut) {
        claims.retain(|claim| claim["name"].as_str().is_some_and(known));
        if claims.is_empty() {
            value.as_object_mut().map(|members| members.remove("claims"));
        }
    }
    write_raw(out, "resources", Some(&json::of(&value)));
}

/// Appends the Instrumentation's pull policy, if it has one.
pub fn write_pull_policy(out: &mut String, job: &Job<'_, '_>) {
    if let Some(policy) = &job.instrumentation().image_pull_policy {
        out.push(',');
        json::member(out, "imagePullPolicy", policy);
    }
}

/// Appends a member whose value is JSON already.
pub fn write_raw(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push(',');
        json::string(out, name);
        out.push(':');
        out.push_str(value);
    }
}
