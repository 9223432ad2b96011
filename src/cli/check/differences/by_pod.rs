//! Differences that are derived from the pod, before or after injection.

use serde_json::Value;

use super::seen::{ATTRIBUTES, Seen, containers, entries, is_extension, is_sidecar, items, own_attributes};
use otel_webhook_inject::{
    Finding,
    language::{self, LanguageId, Shape},
    workload::{Lookup, OwnerKind, OwnerQuery},
};

/// The prefix of variables that keep the user's original value.
const ORIGINAL: &str = "OTEL_INJECT_ORIGINAL_";

/// The variable of the node's name.
const NODE_NAME: &str = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME";

/// How the names of volumes with the ServiceAccount's token begin.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Variables that the operator adds again if they are already set.
const REPEATED: [&str; 2] = ["OTEL_RESOURCE_ATTRIBUTES_POD_NAME", NODE_NAME];

/// Variables that it sets first in every language; it does not move those of one language.
const ADDRESSES: [&str; 2] = ["OTEL_NODE_IP", "OTEL_POD_IP"];

/// Returns the variables with a source (`valueFrom`) that were kept under another name.
fn originals<'s>(seen: &'s Seen<'_>) -> impl Iterator<Item = &'s str> {
    let is_reference = |variable: &&Value| variable["valueFrom"].is_object();
    let own = containers(seen.case.pod).flat_map(|container| items(&container["env"])).filter(is_reference);
    let names = own.filter_map(|variable| variable["name"].as_str());
    names.filter(|name| {
        let kept = format!("{ORIGINAL}{name}");
        containers(seen.after).any(|container| entries(&container["env"], &kept).next().is_some())
    })
}

/// D1: variables with a source are extended as well.
pub fn original_kept(seen: &Seen<'_>) -> bool {
    originals(seen).any(|name| name != ATTRIBUTES)
}

/// D6: resource attributes with a source are extended as well.
pub fn original_attributes_kept(seen: &Seen<'_>) -> bool {
    originals(seen).any(|name| name == ATTRIBUTES)
}

/// D3: extension init containers have the pull policy.
pub fn extension_has_pull_policy(seen: &Seen<'_>) -> bool {
    let has_name = |container: &&Value| container["name"].as_str().is_some_and(is_extension);
    let mut extensions = items(&seen.after["spec"]["initContainers"]).filter(has_name);
    seen.injected().next().is_some() && extensions.any(|container| container["imagePullPolicy"].is_string())
}

/// D4: the operator treats such a pod as already injected.
pub fn has_node_name(seen: &Seen<'_>) -> bool {
    // It ignores its own collector sidecar.
    let mut own = containers(seen.case.pod).filter(|container| container["name"] != "otc-container");
    let has = |container: &Value| entries(&container["env"], NODE_NAME).next().is_some();
    seen.injected().next().is_some() && own.any(has)
}

/// D7: the operator does not recognise such an attribute, and adds its own.
pub fn attribute_with_equals_sign(seen: &Seen<'_>) -> bool {
    let of_resource = |key: &str| {
        seen.used().any(|(object, _)| !object["spec"]["resource"]["resourceAttributes"][key].is_null())
    };
    let is_added =
        |key: &str| ["service.", "k8s."].iter().any(|prefix| key.starts_with(prefix)) || of_resource(key);
    let mut own = seen.targets().flat_map(|(container, _)| own_attributes(container));
    own.any(|(key, value)| value.contains('=') && is_added(key) && !is_owner(key))
}

/// D12: the operator adds these keys even if they exist.
pub fn attribute_would_be_repeated(seen: &Seen<'_>) -> bool {
    let repeated = ["k8s.pod.name", "k8s.node.name", "k8s.pod.uid"];
    let in_own = seen
        .targets()
        .any(|(container, _)| own_attributes(container).iter().any(|(key, _)| repeated.contains(key)));
    let mut by_sidecar = seen.used().filter(|(_, language)| language.shape == Shape::Sidecar);
    let in_sidecar = by_sidecar.any(|(object, language)| {
        let field = language.defaults.map_or("", |defaults| defaults.field);
        let (common, own) = (&object["spec"]["env"], &object["spec"][field]["env"]);
        [common, own].iter().any(|list| entries(list, ATTRIBUTES).next().is_some())
    });
    in_own || in_sidecar || sidecar_keeps_attribute(seen)
}

/// D12: the operator removes attributes of the application from the sidecar.
fn sidecar_keeps_attribute(seen: &Seen<'_>) -> bool {
    let sidecar = containers(seen.after).find(|one| one["name"].as_str().is_some_and(is_sidecar));
    let kept = sidecar.map(own_attributes).unwrap_or_default();
    let mut applications = seen.targets().filter(|(_, language)| language.shape == Shape::Sidecar);
    applications.any(|(application, _)| {
        let own = own_attributes(application).into_iter().map(|(key, _)| key);
        own.filter(|key| *key != "service.version").any(|key| kept.iter().any(|(other, _)| *other == key))
    })
}

/// D29: the operator omits the variable of the node's name if nothing refers to it.
pub fn node_name_added(seen: &Seen<'_>) -> bool {
    let has = |container: &Value| entries(&container["env"], NODE_NAME).next().is_some();
    let reference = format!("$({NODE_NAME})");
    let refers = |container: &Value| {
        let mut values = items(&container["env"]).filter_map(|variable| variable["value"].as_str());
        values.any(|value| value.contains(&reference))
    };
    let mut targets = seen.targets().filter(|(_, language)| language.shape == Shape::Variables);
    targets.any(|(before, _)| {
        let after = containers(seen.after).find(|after| after["name"] == before["name"]);
        after.is_some_and(|after| !has(before) && has(after) && !refers(after))
    })
}

/// D13: one container in two languages, derived variables that are set already, and addresses that an
/// Instrumentation sets.
pub fn variable_would_be_repeated(seen: &Seen<'_>) -> bool {
    let is_added = |code: &str| ["Injected", "NothingToAdd"].contains(&code);
    // A sidecar has its own variables.
    let is_in_target =
        |one: &Finding| language::named(one.language).is_some_and(|row| row.shape != Shape::Sidecar);
    let added = seen.findings().iter().filter(|one| is_added(one.reason.code()) && is_in_target(one));
    let names: Vec<_> = added.filter_map(|finding| finding.container.as_deref()).collect();
    let in_two = names.iter().enumerate().any(|(index, name)| names[..index].contains(name));
    let sets = |list: &Value, names: &[&str]| names.iter().any(|name| entries(list, name).next().is_some());
    let mut targets = seen.targets().filter(|(_, language)| language.shape != Shape::Sidecar);
    let by_container = targets.any(|(container, _)| sets(&container["env"], &REPEATED));
    let by_resource = seen.used().any(|(object, language)| {
        let field = language.defaults.map_or("", |defaults| defaults.field);
        let (common, own) = (&object["spec"]["env"], &object["spec"][field]["env"]);
        [common, own].iter().any(|list| sets(list, &REPEATED) || sets(list, &ADDRESSES))
    });
    in_two || by_container || by_resource
}

/// D16: an empty variable, and an invalid version.
pub fn odd_attributes(seen: &Seen<'_>) -> bool {
    seen.targets().any(|(container, _)| {
        let Some(entry) = entries(&container["env"], ATTRIBUTES).last() else { return false };
        let text = entry["value"].as_str().unwrap_or_default();
        let has_key = own_attributes(container).iter().any(|(key, _)| *key == "service.version");
        text.is_empty() && entry["valueFrom"].is_null() || text.contains("service.version") && !has_key
    })
}

/// Whether an attribute names an owner.
fn is_owner(key: &str) -> bool {
    let owners = ["deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "pod"];
    owners.iter().any(|owner| key == format!("k8s.{owner}.name"))
}

/// D19: an own attribute names another owner; or a sidecar is for a container of a language that came before it.
pub fn owner_in_attributes(seen: &Seen<'_>) -> bool {
    let own =
        seen.targets().any(|(container, _)| own_attributes(container).iter().any(|(key, _)| is_owner(key)));
    let before_sidecar = seen.injected().take_while(|(_, language)| language.shape != Shape::Sidecar);
    let before: Vec<_> = before_sidecar.map(|(finding, _)| &finding.container).collect();
    let mut with_sidecar = seen.injected().filter(|(_, language)| language.shape == Shape::Sidecar);
    own || with_sidecar.any(|(finding, _)| before.contains(&&finding.container))
}

/// D24: the main container is not the first container.
pub fn default_container_is_not_first(seen: &Seen<'_>) -> bool {
    let named = &seen.case.pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
    let first = &seen.case.pod["spec"]["containers"][0]["name"];
    let is_listed = |key: &str| seen.annotation(key).iter().flatten().any(|list| !list.is_empty());
    seen.injected().any(|(finding, language)| {
        finding.container.as_deref().is_some_and(|name| named == name && first != name)
            && !is_listed("container-names")
            && !is_listed(language.containers)
    })
}

/// D26: the operator extends the first entry, which a later one overrides.
pub fn extended_twice(seen: &Seen<'_>) -> bool {
    seen.targets().any(|(container, language)| {
        let mut names = language.extended.iter().chain(&[ATTRIBUTES]);
        names.any(|name| entries(&container["env"], name).count() > 1)
    })
}

/// D31: added containers have the token. A clone has what its original mounts.
pub fn token_mounted(seen: &Seen<'_>) -> bool {
    let is_token = |mount: &Value| mount["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
    let is_own = |added: &Value| containers(seen.case.pod).any(|own| own["name"] == added["name"]);
    let is_added = |one: &&Value| !is_own(one) && one["name"] != language::WEB_SERVER_CLONE;
    containers(seen.after).filter(is_added).any(|added| items(&added["volumeMounts"]).any(is_token))
}

/// D42: the sidecar is an init container, since the pod ends.
pub fn sidecar_is_native(seen: &Seen<'_>) -> bool {
    let is_sidecar = |one: &Value| one["name"].as_str().is_some_and(is_sidecar);
    seen.injected().any(|(_, language)| language.shape == Shape::Sidecar)
        && items(&seen.after["spec"]["initContainers"]).any(is_sidecar)
}

/// D43: the profiler for .NET is in a folder of an older image.
pub fn older_folder_of_dotnet(seen: &Seen<'_>) -> bool {
    let is_older = |entry: &Value| entry["value"].as_str().is_some_and(|path| path.contains("-x64/"));
    seen.injected().any(|(_, language)| language.id == LanguageId::Dotnet)
        && containers(seen.after).any(|one| entries(&one["env"], "CORECLR_PROFILER_PATH").any(is_older))
}

/// D27: the ReplicaSet has another controller than a Deployment, which gives the service its name.
pub fn replica_set_of_another(seen: &Seen<'_>) -> bool {
    let metadata = &seen.case.pod["metadata"];
    let text = |reference: &Value, field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    let of_pod = items(&metadata["ownerReferences"])
        .map(|owner| (text(owner, "kind"), text(owner, "name"), text(owner, "uid")));
    let of_template =
        seen.case.owner.map(|owner| (owner.kind.to_string(), owner.name.to_string(), owner.uid.to_string()));
    let hash = metadata["labels"]["rollouts-pod-template-hash"].as_str();
    let replica_sets = of_template.into_iter().chain(of_pod).filter(|(kind, ..)| kind == "ReplicaSet");
    let controllers: Vec<String> = replica_sets
        .flat_map(|(_, name, uid)| {
            let namespace = seen.case.around.namespace;
            let query = OwnerQuery { kind: OwnerKind::ReplicaSet, namespace, name: &name, uid: &uid };
            let derived = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-').map(str::to_owned));
            let Lookup::Known(owners) = seen.case.around.owners.look_up(query) else {
                return derived.into_iter().collect::<Vec<_>>();
            };
            let others = owners.into_iter().filter(|owner| owner.controller && &*owner.kind != "Deployment");
            others.map(|owner| owner.name.to_string()).collect()
        })
        .collect();
    let names = |pod: &Value| containers(pod).flat_map(|one| items(&one["env"]).cloned()).collect::<Vec<_>>();
    let (before, after) = (names(seen.case.pod), names(seen.after));
    let is_named = |variable: &Value| {
        let value = variable["value"].as_str().unwrap_or_default();
        variable["name"] == "OTEL_SERVICE_NAME" && controllers.iter().any(|name| name == value)
    };
    after.iter().filter(|variable| !before.contains(variable)).any(is_named)
}
