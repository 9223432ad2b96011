//! Sources of the values of variables: what the API server rejects in a pod
//! and the schema cannot express.

use serde_json::Value;

use super::{
    text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::values::is_hollow;

/// The kinds of sources.
const SOURCES: [&str; 5] = ["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"];

/// The fields of a pod that a variable can refer to.
const FIELDS: [&str; 10] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The maps of a pod; a variable can refer to one entry.
const MAPS: [&str; 2] = ["metadata.annotations", "metadata.labels"];

/// The resources of a container that a variable can refer to, after `limits.` or `requests.`.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const HUGE_PAGES: &str = "hugepages-";

/// The divisors of CPU.
const CPU_DIVISORS: [&str; 2] = ["1", "1m"];
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Checks a source; `has_value` if the variable has a value as well.
pub fn check(verdict: &mut Verdict, field: Path<'_>, source: &Value, has_value: bool) {
    let members = source.as_object().into_iter().flatten();
    let said: Vec<_> = members.filter(|(_, one)| !is_hollow(one)).map(|(name, _)| name.as_str()).collect();
    let known: Vec<_> = said.iter().copied().filter(|name| SOURCES.contains(name)).collect();
    let message = match known.len() {
        _ if has_value && !said.is_empty() => {
            "cannot be set together with value; valid: one of the two".to_owned()
        }
        0 if !said.is_empty() => format!("names no source; valid: one of {}", text::list(SOURCES)),
        0 | 1 => return check_one(verdict, field, source),
        several => format!("names {several} sources ({}); valid: one", text::list(known)),
    };
    verdict.reject(Cause::Invalid, field, message);
}

fn check_one(verdict: &mut Verdict, field: Path<'_>, source: &Value) {
    if let Some(path) = source["fieldRef"]["fieldPath"].as_str()
        && !is_field(path)
    {
        let suggestion = text::suggestion(path, FIELDS);
        let (shown, valid) = (text::quoted(path), text::list(FIELDS));
        let message = format!(
            "{shown} is not a field that a variable can refer to{suggestion}; \
             valid: {valid}, metadata.labels['…'], metadata.annotations['…']"
        );
        verdict.reject(Cause::NotSupported, format!("{field}.fieldRef.fieldPath"), message);
    }
    check_resource(verdict, field.member("resourceFieldRef"), &source["resourceFieldRef"]);
    // Older API servers do not know the field, and would drop it.
    if !is_hollow(&source["fileKeyRef"]) {
        let message = "requires a volume and a recent version of Kubernetes, which pods may not have; \
                       valid: configMapKeyRef, fieldRef, resourceFieldRef, secretKeyRef";
        verdict.reject(Cause::NotSupported, field.member("fileKeyRef"), message);
    }
}

fn is_field(path: &str) -> bool {
    match path.strip_suffix("']").and_then(|entry| entry.split_once("['")) {
        Some((map, key)) if map == MAPS[0] => text::is_qualified(&key.to_lowercase()),
        Some((map, key)) => map == MAPS[1] && text::is_qualified(key),
        None => FIELDS.contains(&path),
    }
}

fn check_resource(verdict: &mut Verdict, field: Path<'_>, reference: &Value) {
    let Some(resource) = reference["resource"].as_str() else { return };
    let name = resource.strip_prefix("limits.").or_else(|| resource.strip_prefix("requests."));
    let Some(name) = name.filter(|name| RESOURCES.contains(name) || name.starts_with(HUGE_PAGES)) else {
        let valid = RESOURCES.map(|name| format!("limits.{name}, requests.{name}")).join(", ");
        let message = format!("{} is not a container resource; valid: {valid}", text::quoted(resource));
        return verdict.reject(Cause::NotSupported, field.member("resource"), message);
    };
    let valid: &[&str] = if name == "cpu" { &CPU_DIVISORS } else { &BYTE_DIVISORS };
    let divisor = match &reference["divisor"] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    // A divisor that is not set is stored as zero.
    if divisor != "0" && !valid.contains(&&*divisor) {
        let (shown, valid) = (text::quoted(&divisor), valid.join(", "));
        let message = format!("{shown} is not a divisor of {name}; valid: {valid}");
        verdict.reject(Cause::NotSupported, field.member("divisor"), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_that_the_api_server_resolves() {
        for path in [
            "metadata.name",
            "status.podIPs",
            "metadata.labels['app.kubernetes.io/name']",
            "metadata.annotations['Example.com/Team']",
        ] {
            assert!(is_field(path), "{path}");
        }
        for path in [
            "",
            "metadata.labels",
            "metadata.labels['a b']",
            "metadata.labels[\"a\"]",
            "metadata.name['a']",
            "spec.restartPolicy",
            "status.phase",
        ] {
            assert!(!is_field(path), "{path}");
        }
    }
}
