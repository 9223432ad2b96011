//! Agents whose images are mounted.

mod compared;

use std::{collections::BTreeMap, sync::Arc};

use otel_webhook_api::Delivery;
use otel_webhook_inject::{
    STATUS,
    catalogue::Catalogue,
    cluster::{Cluster, Node},
};
use otel_webhook_testkit::{
    known::Known,
    objects::{asking, instrumentation, items, pod},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

fn mounting(spec: Value) -> Surroundings {
    let mut around = with(spec);
    around.settings.delivery = Delivery::ImageVolume;
    around
}

fn notes(injected: &Injected) -> Vec<String> {
    let findings = injected.outcome.findings.iter();
    findings.flat_map(|finding| finding.notes.iter().map(ToString::to_string)).collect()
}

/// What a language mounts: volume, image, path and folder.
fn mounted(injected: &Injected) -> Vec<(String, String, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let volumes = items(&injected.pod["spec"]["volumes"]).filter(|volume| volume.get("image").is_some());
    let mount = |volume: &Value| {
        let mounts = items(&injected.container("app").expect("the target")["volumeMounts"]);
        let mut own = mounts.filter(|mount| mount["name"] == volume["name"]);
        let mount = own.next().expect("a mount");
        assert!(own.next().is_none() && mount["readOnly"] == true, "{mount}");
        let required = |value: &Value| text(value).expect("text");
        let image = required(&volume["image"]["reference"]);
        (required(&volume["name"]), image, required(&mount["mountPath"]), text(&mount["subPath"]))
    };
    volumes.map(mount).collect()
}

#[test]
fn the_image_of_each_agent_is_mounted_at_the_path_of_the_copy() {
    const PREFIX: &str = "opentelemetry-auto-instrumentation";
    for (language, annotation, path, folder) in [
        ("java", None, "/otel-auto-instrumentation-java-app", None),
        ("nodejs", None, "/otel-auto-instrumentation-nodejs", Some("autoinstrumentation")),
        ("python", None, "/otel-auto-instrumentation-python", Some("autoinstrumentation")),
        (
            "python",
            Some(("otel-python-platform", "musl")),
            "/otel-auto-instrumentation-python",
            Some("autoinstrumentation-musl"),
        ),
        ("dotnet", None, "/otel-auto-instrumentation-dotnet", Some("autoinstrumentation")),
    ] {
        let around = mounting(json!({language: {"image": "own:1"}, "imagePullPolicy": "Always"}));
        let mut pod = asking(&[language], json!({}));
        if let Some((key, value)) = annotation {
            pod["metadata"]["annotations"][format!("instrumentation.opentelemetry.io/{key}")] = json!(value);
        }
        let injected = around.inject(&pod);
        assert_eq!(injected.codes(), [format!("{language}/app: Injected")]);
        let expected =
            (format!("{PREFIX}-{language}"), "own:1".to_owned(), path.to_owned(), folder.map(str::to_owned));
        assert_eq!(mounted(&injected), [expected], "{language}");
        let volume = &injected.pod["spec"]["volumes"][0]["image"];
        assert_eq!(*volume, json!({"reference": "own:1", "pullPolicy": "Always"}));
        assert!(injected.pod["spec"].get("initContainers").is_none(), "{language}");
        assert_eq!(
            notes(&injected),
            ["the image of the agent is mounted as a volume, without init containers"]
        );
    }
}

#[test]
fn each_extension_is_a_volume_that_the_agent_lists() {
    let extensions = json!([{"image": "e:0", "dir": "/extensions/"}, {"image": "e:1", "dir": "lib//./jars"}, {"image": "e:2", "dir": "/"}]);
    let spec = json!({"java": {"image": "own:1", "extensions": extensions}});
    let injected = mounting(spec.clone()).inject(&asking(&["java"], json!({})));
    let path = |index: usize| format!("/opentelemetry-auto-instrumentation-extension-{index}-app");
    let volumes = mounted(&injected);
    assert_eq!(volumes.iter().map(|volume| &*volume.1).collect::<Vec<_>>(), ["own:1", "e:0", "e:1", "e:2"]);
    for (index, volume) in volumes[1..].iter().enumerate() {
        let name = format!("opentelemetry-auto-instrumentation-extension-{index}");
        assert_eq!((&volume.0, &volume.2, &volume.3), (&name, &path(index), &None));
    }
    let folders = format!("{}/extensions,{}/lib/jars,{}", path(0), path(1), path(2));
    let expected = format!(
        " -javaagent:/otel-auto-instrumentation-java-app/javaagent.jar -Dotel.javaagent.extensions={folders}"
    );
    assert_eq!(injected.value("app", "JAVA_TOOL_OPTIONS"), Some(&*expected));

    for dir in ["/my extensions", "/a,b", "/a\"b", "../a"] {
        let mut spec = spec.clone();
        spec["java"]["extensions"][1]["dir"] = json!(dir);
        let injected = mounting(spec).inject(&asking(&["java"], json!({})));
        assert_eq!(injected.names("initContainers").len(), 4, "{dir}");
        assert!(mounted(&injected).is_empty());
        let note = format!(
            "init containers copy the agent, since the Java agent cannot be given the folder \"{dir}\" of an extension"
        );
        assert!(notes(&injected)[0].starts_with(&note), "{:?}", notes(&injected));
    }
}

#[test]
fn pod_then_namespace_then_language_then_instrumentation_then_installation_decide() {
    let namespace = |said: Option<&str>| {
        let annotations = said.map(|said| json!({"otel-webhook/delivery": said}));
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})
    };
    let (copied, volume) = (Some("initContainer"), Some("imageVolume"));
    // Annotation of the pod, of the namespace, of Java, of the specification, and the flag.
    for (sources, expected) in [
        ([None; 4], Delivery::ImageVolume),
        ([None, None, None, copied], Delivery::InitContainer),
        ([None, None, volume, copied], Delivery::ImageVolume),
        ([None, copied, volume, None], Delivery::InitContainer),
        ([volume, copied, copied, copied], Delivery::ImageVolume),
        ([copied, volume, volume, volume], Delivery::InitContainer),
        ([Some("mount"), copied, volume, volume], Delivery::InitContainer),
        ([Some(""), Some("Auto"), volume, copied], Delivery::ImageVolume),
        ([Some("x"), None, Some("y"), copied], Delivery::InitContainer),
    ] {
        let [of_pod, of_namespace, of_java, of_spec] = sources;
        let spec = json!({"delivery": of_spec, "java": {"delivery": of_java}});
        let mut around = Surroundings::new([namespace(of_namespace), instrumentation("inst", spec)]);
        around.settings.delivery = Delivery::ImageVolume;
        let mut pod = asking(&["java"], json!({}));
        if let Some(said) = of_pod {
            pod["metadata"]["annotations"]["otel-webhook/delivery"] = json!(said);
        }
        let injected = around.inject(&pod);
        assert_eq!(injected.codes(), ["java/app: Injected"], "{sources:?}");
        let is_mounted = !mounted(&injected).is_empty();
        assert_eq!(is_mounted, expected == Delivery::ImageVolume, "{sources:?}");
        let bad = [(of_pod, "the pod"), (of_namespace, "the namespace")];
        let bad = bad
            .into_iter()
            .filter_map(|(said, on)| Some((said?, on)))
            .take_while(|(said, _)| Delivery::parse(said).is_none());
        let warnings: Vec<_> = bad
            .map(|(said, on)| {
                format!(
                    "java in app: the annotation otel-webhook/delivery of {on} is \"{said}\", which is not a delivery and is \
                     ignored; valid: initContainer, imageVolume, auto"
                )
            })
            .collect();
        assert_eq!(injected.outcome.warnings(), warnings, "{sources:?}");
    }
}

#[test]
fn what_cannot_be_mounted_is_copied_with_a_note() {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (language, spec, why) in [
        ("apache-httpd", json!({}), "they also write the configuration of the web server"),
        ("nginx", json!({}), "they also write the configuration of the web server"),
        ("java", json!({"java": {"volumeClaimTemplate": claim}}), "spec.java.volumeClaimTemplate is set"),
        (
            "dotnet",
            json!({"dotnet": {"volumeClaimTemplate": claim}}),
            "spec.dotnet.volumeClaimTemplate is set",
        ),
    ] {
        let pod = asking(&[language], json!({}));
        let (copied, kept) = (with(spec.clone()).inject(&pod), mounting(spec).inject(&pod));
        assert_eq!(copied.pod["spec"], kept.pod["spec"], "{language}");
        assert_eq!(notes(&kept), [format!("init containers copy the agent, since {why}")], "{language}");
        assert_eq!(notes(&copied), [""; 0]);
    }
    for language in ["go", "sdk"] {
        let pod = asking(&[language], json!({}));
        let (copied, kept) = (with(json!({})).inject(&pod), mounting(json!({})).inject(&pod));
        assert_eq!((&copied.pod, notes(&kept)), (&kept.pod, Vec::new()), "{language} copies nothing");
    }
}

/// No container is added, so nothing that rejects or bounds one applies.
#[test]
fn nothing_that_is_about_init_containers_applies() {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
    let lax = json!({"initContainerSecurityContext": {"runAsUser": 0}});
    let mut around = Surroundings::new([namespace, instrumentation("inst", lax)]);
    let small = json!({"resources": {"limits": {"ephemeral-storage": "30Mi"}}});
    let pod = asking(&["java"], small);
    assert_eq!(around.inject(&pod).codes(), ["java: PodSecurity"]);
    around.settings.delivery = Delivery::ImageVolume;
    around.settings.safe_to_evict = true;
    let injected = around.inject(&pod);
    assert_eq!(injected.codes(), ["java/app: Injected"]);
    assert_eq!(
        injected.container("app").expect("the target")["resources"],
        pod["spec"]["containers"][0]["resources"]
    );
    assert_eq!(
        injected.pod["metadata"]["annotations"], pod["metadata"]["annotations"],
        "no emptyDir blocks scale-down"
    );
}

#[test]
fn taken_names_and_paths_skip_the_language() {
    let volume = "opentelemetry-auto-instrumentation-extension-0";
    let spec = json!({"java": {"extensions": [{"image": "e:0", "dir": "/e"}]}});
    let mut taken = asking(&["java"], json!({}));
    taken["spec"]["volumes"] = json!([{"name": volume, "emptyDir": {}}]);
    let injected = mounting(spec.clone()).inject(&taken);
    assert_eq!(injected.codes(), ["java: NameTaken"]);
    assert!(injected.outcome.warnings()[0].contains(volume) && injected.is_unchanged());
    let path = "/opentelemetry-auto-instrumentation-extension-0-app";
    let mounts = json!({"volumeMounts": [{"name": "own", "mountPath": path}]});
    let injected = mounting(spec).inject(&asking(&["java"], mounts));
    assert_eq!(injected.codes(), ["java/app: NameTaken"]);
    assert!(injected.outcome.warnings()[0].contains(path) && injected.is_unchanged());
}

#[test]
fn the_stamp_has_the_delivery_and_why_it_fell_back() {
    let entry = |around: &mut Surroundings, catalogue: Option<&Catalogue>| -> Value {
        around.settings.stamp = true;
        let known = Known::of(&around.objects, &around.images);
        let pod = asking(&["java"], json!({}));
        let injected = around.inject_knowing(&pod, catalogue.unwrap_or(&known.catalogue), &known.owners);
        let status = injected.pod["metadata"]["annotations"][STATUS].as_str().expect("a status").to_owned();
        let entries: Vec<Value> = serde_json::from_str(&status).expect("entries");
        entries[0].clone()
    };
    let mut around = mounting(json!({}));
    let mounted = entry(&mut around, None);
    assert_eq!((&mounted["delivery"], mounted.get("notes")), (&json!("imageVolume"), None));
    around.settings.delivery = Delivery::InitContainer;
    assert_eq!(entry(&mut around, None).get("delivery"), None);
    around.settings.delivery = Delivery::Auto;
    let unknown = "init containers copy the agent, since the nodes are not known; see --watch-nodes of serve, and --nodes of explain";
    let kept = entry(&mut around, None);
    assert_eq!((kept.get("delivery"), &kept["notes"]), (None, &json!([unknown])));
    let info = json!({"kubeletVersion": "v1.36.0", "containerRuntimeVersion": "containerd://2.1.0"});
    let node = Node::of(&json!({"metadata": {}, "status": {"nodeInfo": info}})).expect("for Linux");
    let cluster = Cluster {
        server: Some("v1.36.0".into()),
        nodes: BTreeMap::from([("n".into(), Arc::new(node))]),
        is_listed: true,
    };
    let known = Known::of(&around.objects, &around.images);
    let catalogue = Catalogue { cluster: Some(Arc::new(cluster)), ..known.catalogue };
    assert_eq!(entry(&mut around, Some(&catalogue))["delivery"], "imageVolume");
}

#[test]
fn a_pod_that_only_has_such_a_volume_is_not_injected_again() {
    let volume =
        json!({"name": "opentelemetry-auto-instrumentation-nodejs", "image": {"reference": "own:1"}});
    let container = json!({"name": "app", "volumeMounts": [{"name": volume["name"], "mountPath": "/a"}]});
    let injected = with(json!({}))
        .inject(&pod(&[("inject-java", "true")], json!({"containers": [container], "volumes": [volume]})));
    assert_eq!(injected.codes(), ["java: AlreadyInjected"]);
    let sentence = injected.outcome.findings[0].to_string();
    assert!(
        sentence.ends_with("it mounts the image volume \"opentelemetry-auto-instrumentation-nodejs\""),
        "{sentence}"
    );
}
