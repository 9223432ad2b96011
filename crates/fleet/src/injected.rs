//! Detects what was injected into a running pod, and by which webhook.

use serde_json::Value;

use otel_webhook_inject::{
    STATUS,
    language::{LANGUAGES, Language},
    pod::ALWAYS,
};

/// The webhook that injected a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// This webhook, according to the annotation `otel-webhook/status` of the pod.
    Webhook,
    /// The operator, or this webhook without `--stamp`: both add the same.
    Operator,
}

/// A variable that both add to every target, in every language.
pub const OF_EVERY_TARGET: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME";

/// The prefix of the names of the agents' volumes.
const AGENTS: &str = "opentelemetry-auto-instrumentation";

/// The prefixes of the names of the web servers' volumes.
const WEB_SERVERS: [&str; 2] = ["otel-apache-", "otel-nginx-"];

/// The name of the operator's collector sidecar.
const COLLECTOR: &str = "otc-container";

impl By {
    /// Returns the name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Webhook => "otel-webhook",
            Self::Operator => "operator",
        }
    }
}

/// Returns the languages that were injected into a pod, in the order of the language table.
///
/// Languages are detected by their containers, by volumes of their images, or by their variables if they add no container. The annotation
/// only decides by which webhook, since annotations are often copied.
pub fn languages(pod: &Value) -> Vec<(&'static str, By)> {
    let stamped = stamped(pod);
    let is_there = |language: &&&Language| {
        let by_container = containers(pod).any(|(init, name)| is_of(language, init, name));
        by_container
            || image_volume(pod, language).is_some()
            || language.marks.is_empty() && has_variables_alone(pod, &stamped, language.name)
    };
    let by = |language: &Language| {
        if stamped.iter().any(|stamped| stamped == language.name) { By::Webhook } else { By::Operator }
    };
    LANGUAGES.iter().filter(is_there).map(|language| (language.name, by(language))).collect()
}

/// Returns whether the operator injected a collector sidecar.
pub fn has_collector(pod: &Value) -> bool {
    containers(pod).any(|(_, name)| name == COLLECTOR)
}

/// Returns every container by its name, and whether it is an init container other than a native sidecar.
fn containers(pod: &Value) -> impl Iterator<Item = (bool, &str)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        let own = items(&pod["spec"][list]);
        own.filter_map(move |container| Some((is_init(list, container), container["name"].as_str()?)))
    })
}

/// Returns whether a container of a list is an init container other than a native sidecar.
pub fn is_init(list: &str, container: &Value) -> bool {
    list == "initContainers" && container["restartPolicy"] != ALWAYS
}

/// Returns the image of the container, or of the volume, that is specific to a language.
pub fn image(pod: &Value, language: &str) -> Option<Box<str>> {
    let row = LANGUAGES.iter().find(|row| row.name == language)?;
    ["initContainers", "containers"]
        .into_iter()
        .find_map(|list| {
            let is_own = |one: &&Value| is_of(row, is_init(list, one), text(&one["name"]));
            items(&pod["spec"][list]).find(is_own)?["image"].as_str().map(Into::into)
        })
        .or_else(|| image_volume(pod, row).map(Into::into))
}

/// Returns the image of the volume that is specific to a language, if it is one of an image.
fn image_volume<'p>(pod: &'p Value, language: &Language) -> Option<&'p str> {
    let is_own =
        |volume: &&Value| volume["image"].is_object() && language.is_image_volume(text(&volume["name"]));
    items(&pod["spec"]["volumes"]).find(is_own)?["image"]["reference"].as_str()
}

/// Returns whether a container is specific to this language. `init` is as in [`is_init`].
pub fn is_of(language: &Language, init: bool, name: &str) -> bool {
    let marks = |row: &Language| row.marks.iter().any(|mark| mark.is(init, name));
    marks(language) && LANGUAGES.iter().all(|row| row.name == language.name || !marks(row))
}

/// Returns whether a container is an injected one, of any language. `init` is as in [`is_init`].
pub fn is_mark(init: bool, name: &str) -> bool {
    LANGUAGES.iter().any(|language| language.marks.iter().any(|mark| mark.is(init, name)))
}

/// Returns whether a target has the variables, but nothing of an agent.
fn has_variables_alone(pod: &Value, stamped: &[String], language: &str) -> bool {
    let has_variable =
        |container: &&Value| items(&container["env"]).any(|variable| variable["name"] == OF_EVERY_TARGET);
    let mut targets = ["initContainers", "containers"].into_iter().flat_map(|list| {
        let own = items(&pod["spec"][list]).filter(has_variable);
        own.filter(move |one| !is_mark(is_init(list, one), text(&one["name"])))
    });
    if !stamped.is_empty() {
        return targets.next().is_some() && stamped.iter().any(|stamped| stamped == language);
    }
    // Only the first target of a web server's module has its mounts.
    let is_server = |name: &str| WEB_SERVERS.iter().any(|prefix| name.starts_with(prefix));
    if items(&pod["spec"]["volumes"]).any(|volume| is_server(text(&volume["name"]))) {
        return false;
    }
    let is_agent = |mount: &Value| text(&mount["name"]).starts_with(AGENTS);
    targets.any(|container| !items(&container["volumeMounts"]).any(is_agent))
}

/// Returns the injected languages according to `otel-webhook/status`.
fn stamped(pod: &Value) -> Vec<String> {
    let status = text(&pod["metadata"]["annotations"][STATUS]);
    let entries: Vec<Value> = serde_json::from_str(status).unwrap_or_default();
    let injected = entries.iter().filter(|entry| entry["outcome"] == "Injected");
    injected.map(|entry| text(&entry["language"]).to_owned()).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sidecar_is_detected_in_pods_that_end_too() {
        let sidecar = |list: &str, policy: Value| {
            let one = json!({"name": "opentelemetry-auto-instrumentation", "image": "go:1", "restartPolicy": policy});
            json!({"spec": {list: [one]}})
        };
        for pod in [sidecar("containers", Value::Null), sidecar("initContainers", json!("Always"))] {
            assert_eq!(languages(&pod), [("go", By::Operator)], "{pod}");
            assert_eq!(image(&pod, "go").as_deref(), Some("go:1"), "{pod}");
        }
        let other = sidecar("initContainers", Value::Null);
        assert!(languages(&other).is_empty(), "{other}");
    }

    #[test]
    fn an_agent_is_detected_by_its_container_or_by_the_volume_of_its_image() {
        let name = "opentelemetry-auto-instrumentation-python";
        let copied = json!({"spec": {"initContainers": [{"name": name, "image": "own:1"}]}});
        let mounted = json!({"spec": {"volumes": [{"name": name, "image": {"reference": "own:1"}}]}});
        for pod in [copied, mounted] {
            assert_eq!(languages(&pod), [("python", By::Operator)], "{pod}");
            assert_eq!(image(&pod, "python").as_deref(), Some("own:1"), "{pod}");
            assert_eq!(image(&pod, "java"), None);
        }
        let other = json!({"spec": {"volumes": [{"name": name, "emptyDir": {}}, {"name": "own", "image": {"reference": "own:1"}}]}});
        assert!(languages(&other).is_empty(), "{other}");
    }
}
