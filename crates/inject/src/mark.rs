//! Whether a pod is already injected, by the operator or the webhook.
//!
//! It is recognised by the injected containers, by mounted image volumes that stand in for them or, if only
//! variables were added, by these. The stamp is ignored, since it may be copied with other annotations.

use super::{
    language::LANGUAGES,
    pod::{Container, Pod, Variable},
    reason::Sign,
    resource::{Keys, POD_NAME, RESOURCE_ATTRIBUTES},
};

/// Variables that every target has after injection.
const VARIABLES: [&str; 5] =
    ["OTEL_NODE_IP", "OTEL_POD_IP", "OTEL_SERVICE_NAME", POD_NAME, RESOURCE_ATTRIBUTES];

/// Attributes that every target has after injection.
const ATTRIBUTES: [&str; 3] = ["k8s.container.name", "k8s.namespace.name", "k8s.pod.name"];

/// Returns the sign that the pod is already injected, in any language.
///
/// A pod that is exported and created again, or that another webhook has changed, still has
/// all of them, even if its metadata or its Instrumentation differ by then.
pub fn of(pod: &Pod<'_>) -> Option<Sign> {
    let init = pod.spec.init_containers.iter().map(|container| (!container.is_sidecar(), container));
    let regular = pod.spec.containers.iter().map(|container| (false, container));
    let all = || init.clone().chain(regular.clone());
    let added = all().find(|(init, container)| is_added(*init, &container.name));
    let by_container = added.map(|(_, container)| Sign::Container(container.name.to_string()));
    let by_volume = || image_volume(pod, all()).map(Sign::ImageVolume);
    by_container.or_else(by_volume).or_else(|| {
        let target = all().find(|(_, container)| is_target(container));
        target.map(|(_, container)| Sign::Variables(container.name.to_string()))
    })
}

/// Whether only the operator or the webhook adds a container of this name.
fn is_added(init: bool, name: &str) -> bool {
    LANGUAGES.iter().flat_map(|language| language.marks).any(|mark| mark.is(init, name))
}

/// The first image volume with the name of an agent's init container, if a container mounts it.
fn image_volume<'c>(
    pod: &Pod<'_>,
    containers: impl Iterator<Item = (bool, &'c Container<'c>)>,
) -> Option<String> {
    let is_agent = |name: &str| LANGUAGES.iter().any(|language| language.is_image_volume(name));
    let volumes = pod.spec.volumes.iter().filter(|volume| volume.image.is_some() && is_agent(&volume.name));
    let mut volumes = volumes.peekable();
    volumes.peek()?;
    let mounts: Vec<_> =
        containers.flat_map(|(_, container)| container.mounts().unwrap_or_default()).collect();
    let is_mounted = |name: &str| mounts.iter().any(|mount| *mount.name == *name);
    volumes.find(|volume| is_mounted(&volume.name)).map(|volume| volume.name.to_string())
}

/// Whether the container has all variables of a target. One of them is no sign (D4): a
/// collector next to the application has some as well.
pub fn is_target(container: &Container<'_>) -> bool {
    // Few containers have it, so few lists have to be parsed.
    if !container.env.is_some_and(|env| env.get().contains(POD_NAME)) {
        return false;
    }
    let Ok(variables) = container.variables() else { return false };
    let find = |name: &str| variables.iter().rfind(|variable| *variable.name == *name);
    let is_described = |attributes: &Variable<'_>| {
        let keys = Keys::of(Some(&attributes.value));
        ATTRIBUTES.iter().all(|key| keys.has(key))
    };
    VARIABLES.iter().all(|name| find(name).is_some()) && find(RESOURCE_ATTRIBUTES).is_some_and(is_described)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::language::{APACHE_ATTACH, GO_SIDECAR, JAVA_AGENT, PYTHON_AGENT};

    const DESCRIBED: &str = "team=a,k8s.container.name=app,k8s.namespace.name=shop,k8s.pod.name=p";

    fn sign(list: &str, env: &Value) -> Option<Sign> {
        let text = json!({"spec": {list: [{"name": "first"}, {"name": "app", "env": env}]}}).to_string();
        of(&Pod::parse(&text).expect("a pod"))
    }

    #[test]
    fn a_sidecar_marks_the_pod_as_a_regular_container_and_as_a_native_sidecar() {
        for (list, policy, is_sign) in [
            ("containers", Value::Null, true),
            ("initContainers", json!("Always"), true),
            ("initContainers", Value::Null, false),
        ] {
            let sidecar = json!({"name": GO_SIDECAR, "restartPolicy": policy});
            let text = json!({"spec": {list: [sidecar]}}).to_string();
            let sign = of(&Pod::parse(&text).expect("a pod"));
            assert_eq!(sign, is_sign.then(|| Sign::Container(GO_SIDECAR.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_mounted_image_volume_marks_the_pod() {
        let sign = |name: &str, source: &str, mounted: &str| {
            let volume = json!({"name": name, source: {}});
            let container = json!({"name": "app", "volumeMounts": [{"name": mounted, "mountPath": "/a"}]});
            let text = json!({"spec": {"containers": [container], "volumes": [volume]}}).to_string();
            of(&Pod::parse(&text).expect("a pod"))
        };
        for name in [JAVA_AGENT, PYTHON_AGENT, "opentelemetry-auto-instrumentation-extension-0"] {
            assert_eq!(sign(name, "image", name), Some(Sign::ImageVolume(name.to_owned())));
            assert_eq!(sign(name, "emptyDir", name), None, "another type");
            assert_eq!(sign(name, "image", "other"), None, "not mounted");
        }
        for name in [APACHE_ATTACH, "opentelemetry-auto-instrumentation-extension-", "app"] {
            assert_eq!(sign(name, "image", name), None, "{name} is not the name of an agent's volume");
        }
    }

    /// The variables of a target except for one, with these attributes.
    fn variables(attributes: &str, without: &str) -> Value {
        let value = |name: &&str| if *name == RESOURCE_ATTRIBUTES { attributes } else { "v" }.to_owned();
        let kept = VARIABLES.iter().filter(|name| **name != without);
        kept.map(|name| json!({"name": name, "value": value(name)})).collect()
    }

    #[test]
    fn a_container_with_all_variables_marks_the_pod() {
        for list in ["containers", "initContainers"] {
            let all = variables(DESCRIBED, "");
            assert_eq!(sign(list, &all), Some(Sign::Variables("app".to_owned())), "{list}");
        }
    }

    #[test]
    fn a_container_with_some_of_them_does_not() {
        for without in VARIABLES {
            assert_eq!(sign("containers", &variables(DESCRIBED, without)), None, "{without}");
        }
        let undescribed = variables("team=a,k8s.pod.name=p,k8s.namespace.name=shop", "");
        assert_eq!(sign("containers", &undescribed), None);
        assert_eq!(sign("containers", &json!("no list of OTEL_RESOURCE_ATTRIBUTES_POD_NAME")), None);
    }
}
