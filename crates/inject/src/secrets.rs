//! Checks that the pod's ServiceAccount allows the Secrets of the Instrumentation.

use std::collections::HashSet;

use serde_json::Value;

use crate::{injection::Injection, limits::DEFAULT_SERVICE_ACCOUNT, pod::Pod, reason::Reason};

/// Checks that the pod may use the Secrets of the Instrumentation. Those
/// that the pod itself refers to are allowed.
///
/// # Errors
/// The Secret that is not allowed.
pub fn check(injection: &Injection<'_, '_>) -> Result<(), Reason> {
    let (limits, pod) = (injection.limits(), injection.facts.pod);
    if limits.is_empty() {
        return Ok(());
    }
    let account = account(pod);
    if !limits.enforces_mountable_secrets(account) {
        return Ok(());
    }
    let instrumentation = injection.instrumentation();
    let settings = injection.prepared().env.iter().chain(&instrumentation.env);
    let of_settings = settings.filter_map(|setting| secret_of(setting.from.as_deref()?));
    let added = of_settings.chain(instrumentation.exporter.secrets().map(str::to_owned));
    let own = own_secrets(pod);
    match added.into_iter().find(|secret| !own.contains(secret)) {
        None => Ok(()),
        Some(secret) => Err(Reason::SecretNotAllowed { account: account.to_owned(), secret }),
    }
}

/// The ServiceAccount of a pod.
fn account<'p>(pod: &'p Pod<'_>) -> &'p str {
    let named = [&*pod.spec.service_account_name, &*pod.spec.service_account];
    named.into_iter().find(|name| !name.is_empty()).unwrap_or(DEFAULT_SERVICE_ACCOUNT)
}

/// The Secrets that a pod refers to, in fields that the API server checks against the ServiceAccount.
fn own_secrets(pod: &Pod<'_>) -> HashSet<String> {
    let volumes = pod.spec.volumes.iter().filter_map(|volume| volume.secret.as_ref());
    let mut own: HashSet<_> = volumes.map(|secret| secret.secret_name.to_string()).collect();
    for container in pod.spec.containers.iter().chain(pod.spec.init_containers.iter()) {
        let variables = container.variables().unwrap_or_default();
        own.extend(variables.iter().filter_map(|variable| secret_of(variable.value_from.as_ref()?)));
        let sources = container.sources().unwrap_or_default();
        let secrets = sources.iter().filter_map(|source| source.secret_ref.as_ref());
        own.extend(secrets.map(|secret| secret.name.to_string()));
    }
    own
}

/// The Secret with the value of a variable, if any.
fn secret_of(from: &Value) -> Option<String> {
    from["secretKeyRef"]["name"].as_str().map(str::to_owned)
}
