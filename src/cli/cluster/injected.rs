//! Detects what was injected into a running pod, and by which webhook.

use serde_json::Value;

use otel_webhook_inject::{
    STATUS,
    language::{LANGUAGES, Language},
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
const OF_EVERY_TARGET: &str = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME";

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
/// Languages are detected by their containers, or by their variables if they add no container. The annotation
/// only decides by which webhook, since annotations are often copied.
pub fn languages(pod: &Value) -> Vec<(&'static str, By)> {
    let stamped = stamped(pod);
    let is_there = |language: &&&Language| {
        let by_container = containers(pod).any(|(init, name)| is_of(language, init, name));
        by_container || language.marks.is_empty() && has_variables_alone(pod, &stamped, language.name)
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

/// Returns every container, and whether it is an init container.
fn containers(pod: &Value) -> impl Iterator<Item = (bool, &str)> {
    ["initContainers", "containers"].into_iter().flat_map(move |list| {
        let names = items(&pod["spec"][list]).filter_map(|container| container["name"].as_str());
        names.map(move |name| (list == "initContainers", name))
    })
}

/// Returns whether a container is specific to this language.
pub fn is_of(language: &Language, init: bool, name: &str) -> bool {
    let marks = |row: &Language| row.marks.iter().any(|mark| mark.is(init, name));
    marks(language) && LANGUAGES.iter().all(|row| row.name == language.name || !marks(row))
}

fn is_mark(init: bool, name: &str) -> bool {
    LANGUAGES.iter().any(|language| language.marks.iter().any(|mark| mark.is(init, name)))
}

/// Returns whether a target has the variables, but nothing of an agent.
fn has_variables_alone(pod: &Value, stamped: &[String], language: &str) -> bool {
    let has_variable =
        |container: &&Value| items(&container["env"]).any(|variable| variable["name"] == OF_EVERY_TARGET);
    let lists = [(true, "initContainers"), (false, "containers")];
    let mut targets = lists.into_iter().flat_map(|(init, list)| {
        let own = items(&pod["spec"][list]).filter(has_variable);
        own.filter(move |container| !is_mark(init, text(&container["name"])))
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
    use crate::store::Writer;
    use otel_webhook_api::defaults::DefaultImages;
    use otel_webhook_inject::{
        Settings,
        language::{self, LanguageSet},
        template::{Around, Workload},
    };

    /// A pod that opts in to these languages, after injection.
    fn injected(languages: &[&str], stamp: bool) -> Value {
        let prefix = otel_webhook_api::ANNOTATION_PREFIX;
        let mut writer = Writer::new(DefaultImages::default());
        let instrumentation = json!({"apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
            "metadata": {"name": "a", "namespace": "shop"}, "spec": {}});
        writer.put(&instrumentation);
        writer.publish();
        let snapshot = writer.store().snapshot();
        let mut containers = Vec::new();
        let mut annotations = json!({format!("{prefix}otel-go-auto-target-exe"): "/app"});
        for name in languages {
            let language = language::named(name).expect("a language");
            annotations[format!("{prefix}{}", language.inject)] = json!("true");
            annotations[format!("{prefix}{}", language.containers)] = json!(format!("app-{name}"));
            containers.push(json!({"name": format!("app-{name}"), "image": "app"}));
        }
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p",
            "annotations": annotations}, "spec": {"containers": containers}});
        let settings = Settings { languages: LanguageSet::all(), stamp, ..Settings::default() };
        let catalogue = &snapshot.catalogue;
        let around = Around { namespace: "shop", catalogue, settings: &settings, owners: &snapshot.owners };
        let workload = Workload::of(&mut pod, "v1", "Pod").expect("a pod");
        let patch = workload.outcome(&around).expect("readable").patch.operations();
        json_patch::patch(&mut pod, &patch).expect("applies");
        pod
    }

    #[test]
    fn each_language_is_detected_with_and_without_the_status_annotation() {
        for language in LANGUAGES {
            for (stamp, by) in [(true, By::Webhook), (false, By::Operator)] {
                let pod = injected(&[language.name], stamp);
                assert_eq!(languages(&pod), [(language.name, by)], "{pod}");
            }
        }
    }

    #[test]
    fn several_languages_are_detected() {
        for stamp in [true, false] {
            let names = |pod: &Value| languages(pod).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert_eq!(names(&injected(&["java", "go"], stamp)), ["java", "go"]);
            assert_eq!(names(&injected(&["nodejs", "sdk"], stamp)), ["nodejs", "sdk"]);
        }
    }

    #[test]
    fn a_copied_annotation_and_a_collector_are_not_agents() {
        let mut pod = injected(&["java"], true);
        pod["spec"]["initContainers"] = json!([]);
        pod["spec"]["containers"] = json!([{"name": "app"}, {"name": "otc-container"}]);
        assert_eq!(languages(&pod), []);
        assert!(has_collector(&pod));
        assert!(!has_collector(&injected(&["java"], true)));
    }
}
