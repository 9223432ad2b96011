//! The operator's own results, case by case (`tests/data/conformance`).

use std::{fs, io::Read};

use flate2::read::GzDecoder;
use otel_webhook_inject::{
    agents::scripts,
    language::{LANGUAGES, LanguageSet},
};
use serde_json::{Value, json};

use crate::{
    files,
    models::{
        service_account::{self, TOKEN_VOLUME},
        users,
    },
    objects::items,
};

/// The cases of a file, one JSON object a line.
pub fn cases(file: &str) -> Vec<Value> {
    let path = files::path("tests/data/conformance").join(file);
    let compressed = fs::read(path).expect("the file is in the repository");
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("a gzip file");
    text.lines().map(|line| serde_json::from_str(line).expect("a case is JSON")).collect()
}

/// Every injection case.
pub fn injection_cases() -> Vec<Value> {
    [cases("injection-systematic.jsonl.gz"), cases("injection-random.jsonl.gz")].concat()
}

/// The languages of the operator that made the cases. It ignores the annotations of any other language.
pub const OPERATOR_LANGUAGES: [&str; 8] =
    ["java", "nodejs", "python", "dotnet", "go", "apache-httpd", "nginx", "sdk"];

/// The languages that a case has on.
pub fn languages(case: &Value) -> LanguageSet {
    let off = |name: &str| case["settings"]["languages"][name] == json!(false);
    let rows = LANGUAGES.into_iter().filter(|row| OPERATOR_LANGUAGES.contains(&row.name) && !off(row.name));
    let none = LanguageSet::parse("").expect("an empty list");
    rows.fold(none, LanguageSet::with)
}

/// What the README of the cases says to leave out of the comparison.
pub fn comparable(pod: &Value) -> Value {
    let mut pod = pod.clone();
    for list in ["containers", "initContainers"] {
        for container in items_mut(&mut pod, &format!("/spec/{list}")) {
            items_mut(container, "/env").for_each(normalize_variable);
            items_mut(container, "/args").for_each(name_script);
        }
    }
    for volume in items_mut(&mut pod, "/spec/volumes") {
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
            drop_empty(claim);
        }
    }
    pod
}

fn items_mut<'v>(value: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    value.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn normalize_variable(variable: &mut Value) {
    let Some(members) = variable.as_object_mut() else { return };
    if !members.contains_key("value") && !members.contains_key("valueFrom") {
        members.insert("value".into(), json!(""));
    }
    if members.get("name") == Some(&json!("OTEL_APACHE_AGENT_CONF")) {
        let text = members["value"].as_str().unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let kept: String = lines.flat_map(|line| [line, "\n"]).collect();
        members.insert("value".into(), json!(kept));
    }
}

fn name_script(argument: &mut Value) {
    let names = [
        (scripts::APACHE_HTTPD_AGENT, "@@SCRIPT:apache-httpd-agent@@"),
        (scripts::NGINX_CLONE, "@@SCRIPT:nginx-clone@@"),
        (scripts::NGINX_AGENT, "@@SCRIPT:nginx-agent@@"),
    ];
    if let Some((_, name)) = names.iter().find(|(script, _)| argument == script) {
        *argument = json!(name);
    }
}

fn drop_empty(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(drop_empty);
        members.retain(|_, member| member.as_object().is_none_or(|object| !object.is_empty()));
    }
}

/// The languages that a case's annotations ask for, on the pod or on the namespace.
pub fn asked(case: &Value) -> Vec<String> {
    let mut asked: Vec<String> = ["pod", "namespace"]
        .iter()
        .flat_map(|object| case[*object]["metadata"]["annotations"].as_object().into_iter().flatten())
        .filter_map(|(key, value)| {
            let language = key.strip_prefix("instrumentation.opentelemetry.io/inject-")?;
            let is_container_list = language.ends_with("container-names");
            let wanted = !value.as_str()?.eq_ignore_ascii_case("false");
            (!is_container_list && wanted).then(|| language.to_owned())
        })
        .collect();
    asked.sort();
    asked.dedup();
    asked
}

/// Whether a case has an expected result that follows from the recorded one. Where added containers could not write to
/// their claims (D41), the language is skipped, and the result depends on the other languages.
pub fn is_comparable(case: &Value) -> bool {
    !case["expect"].is_null() && !users::cannot_write(&case["pod"], &case["expect"]["pod"])
}

/// A pod as the core left it, and the expected one, as far as they are to be the same.
///
/// The cases were recorded before some differences were numbered, and have the operator's result there:
/// - D12: the application's attributes take none from Go's sidecar. Cases with the mark O15 have an
///   application with its own attributes. The sidecar may have more attributes than expected there,
///   and the variables that they refer to; all that is expected has to be there.
/// - D13: addresses that a language's variables set stand at the head as well. What is expected has
///   them there, unless the container sets them itself.
/// - D29: a container that gets variables alone always has the one of the node's name.
/// - D31: added containers have the token's mount, which the API server adds to the operator's pod
///   afterwards. So that pod is the expected one.
/// - D40: the command of an init container whose image has the name of the operator's has `-f`.
/// - D41: added containers have a user where the kubelet would not start them without one.
pub fn comparison(case: &Value, after: &Value) -> (Value, Value) {
    let mut after = comparable(after);
    let mut expected = comparable(&after_plugin(&case["pod"], &case["expect"]["pod"]));
    expected = users::started(&case["pod"], &expected);
    items_mut(&mut expected, "/spec/initContainers").for_each(force_copy);
    for container in items_mut(&mut expected, "/spec/containers") {
        let own = items(&case["pod"]["spec"]["containers"]).find(|own| own["name"] == container["name"]);
        for address in ["OTEL_POD_IP", "OTEL_NODE_IP"] {
            lead_with(container, own, address);
        }
    }
    let is_sdk = asked(case).iter().any(|language| language == "sdk");
    let own_attributes = marks(case).any(|mark| mark == "O15");
    for container in items_mut(&mut after, "/spec/containers") {
        let twin = items(&expected["spec"]["containers"]).find(|twin| twin["name"] == container["name"]);
        let Some(twin) = twin else { continue };
        let is_sidecar = container["name"] == "opentelemetry-auto-instrumentation";
        if own_attributes && is_sidecar {
            drop_added(container, twin, "OTEL_RESOURCE_ATTRIBUTES_POD_UID");
            drop_added(container, twin, "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME");
            drop_attributes(container, twin);
        }
        if is_sdk && !is_sidecar {
            drop_added(container, twin, "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME");
        }
    }
    (after, expected)
}

/// The operator's pod after the second call of the ServiceAccount plugin, if the pod that it got came from the
/// first one (D31).
fn after_plugin(before: &Value, after: &Value) -> Value {
    let is_token =
        |volume: &Value| volume["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
    let has_token = items(&before["spec"]["volumes"]).any(is_token);
    let comes_from_plugin = has_token && service_account::mounted(before, "") == *before;
    if comes_from_plugin { service_account::mounted(after, "") } else { after.clone() }
}

/// The languages with copied agents.
const COPIED: [&str; 4] = ["java", "nodejs", "python", "dotnet"];

/// Adds `-f` to the command that copies from an image of the operator's name (D40).
fn force_copy(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let named = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let name = named.split(':').next().unwrap_or_default();
    if !name.strip_prefix("autoinstrumentation-").is_some_and(|language| COPIED.contains(&language)) {
        return;
    }
    let Some(command) = container.get_mut("command").and_then(Value::as_array_mut) else { return };
    let words: Vec<_> = command.iter().map(|word| word.as_str().unwrap_or_default()).collect();
    match words[..] {
        ["cp", "-r", _, _] => command[1] = json!("-rf"),
        ["cp", "/javaagent.jar", _] => command.insert(1, json!("-f")),
        _ => {}
    }
}

/// Brings a variable to the head of a container's list, unless the container sets it itself.
fn lead_with(container: &mut Value, own: Option<&Value>, name: &str) {
    let is_it = |variable: &Value| variable["name"] == name;
    let is_own = own.is_some_and(|own| items(&own["env"]).any(is_it));
    let list = container.get_mut("env").and_then(Value::as_array_mut).filter(|_| !is_own);
    if let Some((list, at)) = list.and_then(|list| list.iter().position(is_it).map(|at| (list, at))) {
        list[..=at].rotate_right(1);
    }
}

/// Drops a variable that is taken from the pod's fields and that the other container does not have.
fn drop_added(container: &mut Value, twin: &Value, name: &str) {
    let is_it = |variable: &Value| variable["name"] == name;
    if items(&twin["env"]).any(is_it) {
        return;
    }
    if let Some(list) = container.get_mut("env").and_then(Value::as_array_mut) {
        list.retain(|variable| !(is_it(variable) && variable["valueFrom"]["fieldRef"].is_object()));
    }
}

/// Drops the resource attributes that the other container does not have.
fn drop_attributes(container: &mut Value, twin: &Value) {
    let is_it = |variable: &&Value| variable["name"] == "OTEL_RESOURCE_ATTRIBUTES";
    let expected = items(&twin["env"]).find(is_it).and_then(|variable| variable["value"].as_str());
    let expected: Vec<_> = expected.unwrap_or_default().split(',').collect();
    for variable in items_mut(container, "/env").filter(|variable| is_it(&&**variable)) {
        let present = variable["value"].as_str().unwrap_or_default().split(',');
        let kept: Vec<_> = present.filter(|pair| expected.contains(pair)).collect();
        variable["value"] = json!(kept.join(","));
    }
}

/// The marks of a case: the known differences that it shows.
pub fn marks(case: &Value) -> impl Iterator<Item = String> {
    items(&case["diverges"]).filter_map(Value::as_str).map(str::to_owned)
}
