//! A model of pod validation: what an API server would reject of what injection added. The
//! end-to-end tests ask a real API server.

use otel_webhook_api::quantity::Quantity;
use serde_json::Value;

/// Says what would be refused in containers and volumes that were not there before.
pub fn faults(before: &Value, after: &Value) -> Vec<String> {
    let (old, new) = (&before["spec"], &after["spec"]);
    let mut faults = Vec::new();
    for volume in added(&old["volumes"], &new["volumes"]) {
        volume_faults(&mut faults, volume);
    }
    for list in ["initContainers", "containers"] {
        for container in items(&new[list]) {
            let own = items(&old[list]).find(|own| own["name"] == container["name"]);
            if own.is_none() {
                container_faults(&mut faults, container);
            }
            let own = own.unwrap_or(&Value::Null);
            let mut say = |problem: String| faults.push(format!("{}: {problem}", container["name"]));
            for variable in added(&own["env"], &container["env"]) {
                variable_fault(variable).into_iter().for_each(&mut say);
            }
            for mount in added(&own["volumeMounts"], &container["volumeMounts"]) {
                let path = text(&mount["mountPath"]);
                if path.is_empty() || path.contains(':') {
                    say(format!("nothing can be mounted at {path:?}"));
                }
            }
        }
    }
    faults
}

fn added<'v>(old: &'v Value, new: &'v Value) -> impl Iterator<Item = &'v Value> {
    items(new).filter(|item| !items(old).any(|own| own == *item))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn volume_faults(faults: &mut Vec<String>, volume: &Value) {
    let name = text(&volume["name"]);
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) || name.ends_with('-') {
        faults.push(format!("{name:?} is not a volume's name"));
    }
    if let Some(limit) = volume["emptyDir"].get("sizeLimit") {
        faults.extend(quantity_fault("sizeLimit", limit));
    }
    let claim = &volume["ephemeral"]["volumeClaimTemplate"];
    if !claim.is_null() {
        let modes = claim["spec"]["accessModes"].as_array().map_or(0, Vec::len);
        let size = &claim["spec"]["resources"]["requests"]["storage"];
        if modes == 0
            || Quantity::of(size).is_none_or(Quantity::is_zero)
            || claim["metadata"].get("name").is_some()
        {
            faults.push(format!("{claim} is not a claim"));
        }
    }
}

fn container_faults(faults: &mut Vec<String>, container: &Value) {
    let mut say = |problem: String| faults.push(format!("{}: {problem}", container["name"]));
    let image = text(&container["image"]);
    if image.is_empty() || image.trim() != image {
        say(format!("{image:?} is not an image"));
    }
    let policy = container.get("imagePullPolicy").map(text);
    if policy.is_some_and(|policy| !["Always", "IfNotPresent", "Never"].contains(&policy)) {
        say(format!("{policy:?} is not a pull policy"));
    }
    let resources = &container["resources"];
    for list in ["limits", "requests"] {
        for (name, amount) in resources[list].as_object().into_iter().flatten() {
            quantity_fault(name, amount).into_iter().for_each(&mut say);
            let limit = resources["limits"].get(name);
            let is_whole = name.contains('/') || name.starts_with("hugepages-");
            let (asked, most) = (Quantity::of(amount), limit.and_then(Quantity::of));
            if list == "requests" && limit.map_or(is_whole, |_| asked > most || is_whole && asked != most) {
                say(format!("{name}: {amount} is requested next to a limit of {limit:?}"));
            }
            if !name.contains('/') && !["cpu", "memory", "ephemeral-storage"].contains(&&**name) && !is_whole
            {
                say(format!("{name:?} is not a resource"));
            }
        }
    }
    let context = &container["securityContext"];
    if !context.is_object() && !context.is_null() {
        say(format!("{context} is not a security context"));
    }
    let ids = ["runAsUser", "runAsGroup"].map(|id| &context[id]);
    if ids
        .iter()
        .any(|id| !id.is_null() && id.as_i64().is_none_or(|id| i32::try_from(id).is_ok_and(|id| id < 0)))
    {
        say(format!("{ids:?} are not IDs"));
    }
    if context["privileged"] == true && context["allowPrivilegeEscalation"] == false {
        say("it is privileged and may not be".to_owned());
    }
}

fn quantity_fault(what: &str, value: &Value) -> Option<String> {
    let is_good = Quantity::of(value).is_some_and(|quantity| quantity >= Quantity::ZERO);
    (!is_good).then(|| format!("{what}: {value} is not a quantity"))
}

fn variable_fault(variable: &Value) -> Option<String> {
    let name = text(&variable["name"]);
    let is_printable = |letter: char| letter.is_ascii_graphic() || letter == ' ';
    if name.is_empty() || name.contains('=') || !name.chars().all(is_printable) {
        return Some(format!("{name:?} is not a variable's name"));
    }
    if variable.get("value").is_some_and(|value| !value.is_string()) {
        return Some(format!("{name}: the value is not text"));
    }
    let source = variable.get("valueFrom")?;
    let known = ["configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"];
    let sources: Vec<_> = known.iter().filter_map(|one| Some((*one, source.get(one)?))).collect();
    let [(kind, one)] = sources[..] else { return Some(format!("{name}: {source} is not a source")) };
    if !text(&variable["value"]).is_empty() {
        return Some(format!("{name}: is set twice over"));
    }
    let is_key = |key: &str| !key.is_empty() && !key.contains(['/', ' ']) && key != "..";
    let is_good = match kind {
        "configMapKeyRef" | "secretKeyRef" => is_key(text(&one["key"])) && is_key(text(&one["name"])),
        "fieldRef" => ["metadata.", "spec.nodeName", "status.hostIP", "status.podIP"].iter().any(|start| {
            text(&one["fieldPath"]).starts_with(start) && !text(&one["fieldPath"]).contains(' ')
        }),
        _ => false,
    };
    (!is_good).then(|| format!("{name}: {one} is not a source"))
}
