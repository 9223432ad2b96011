//! Agents that an Instrumentation describes itself.

use otel_webhook_api::{ANNOTATION_PREFIX, DELIVERY_ANNOTATION};
use otel_webhook_inject::{STATUS, reason::ObjectName};
use otel_webhook_testkit::{
    objects::{asking, instrumentation, items, limit_range, pod},
    surroundings::{Injected, Surroundings, with},
};
use serde_json::{Value, json};

const NAME: &str = "opentelemetry-auto-instrumentation-agent-php";
const PATH: &str = "/otel-auto-instrumentation-php";

/// An agent that sets a variable, and extends two.
fn php() -> Value {
    json!({"name": "php", "image": "own/php:1", "directory": "/opt/agent", "env": [
        {"name": "OTEL_PHP_AUTOLOAD_ENABLED", "value": "true"},
        {"name": "PHP_INI_SCAN_DIR", "value": "$(mountPath)/conf.d", "mode": "append", "separator": ":"},
        {"name": "LD_PRELOAD", "value": "$(mountPath)/lib.so", "mode": "prepend", "separator": " "},
    ]})
}

fn spec() -> Value {
    json!({"agents": [php()], "env": [{"name": "TEAM", "value": "a"}]})
}

/// A pod of a container that opts in to these agents.
fn opted_in(agents: &str, container: Value) -> Value {
    let mut app = json!({"name": "app", "image": "example.com/app:1"});
    json_patch::merge(&mut app, &container);
    pod(&[("inject-agent", agents)], json!({"containers": [app]}))
}

fn injected(container: Value) -> Injected {
    let injected = with(spec()).inject(&opted_in("php", container));
    assert_eq!(injected.codes(), ["agent:php/app: Injected"]);
    injected
}

fn value(injected: &Injected, name: &str) -> Value {
    let env = &injected.container("app").expect("the target")["env"];
    let mut found = items(env).filter(|variable| variable["name"] == name);
    let value = found.next().map_or(Value::Null, |variable| variable["value"].clone());
    assert!(found.next().is_none(), "{name} is there twice");
    value
}

fn sentences(injected: &Injected) -> Vec<String> {
    injected.outcome.findings.iter().map(ToString::to_string).collect()
}

#[test]
fn d38_an_agent_of_the_instrumentation_is_copied_and_mounted() {
    let injected = injected(json!({}));
    let added = injected.container(NAME).expect("the init container");
    assert_eq!(added["image"], "own/php:1");
    assert_eq!(added["command"], json!(["cp", "-rf", "/opt/agent/.", PATH]));
    assert_eq!(added["volumeMounts"], json!([{"name": NAME, "mountPath": PATH}]));
    assert_eq!(added["resources"]["requests"], json!({"cpu": "50m", "memory": "64Mi"}));
    let volume = json!({"name": NAME, "emptyDir": {"sizeLimit": "200Mi"}});
    assert_eq!(injected.pod["spec"]["volumes"], json!([volume]));
    let target = injected.container("app").expect("the target");
    assert_eq!(target["volumeMounts"], json!([{"name": NAME, "mountPath": PATH}]));
    assert_eq!(value(&injected, "OTEL_PHP_AUTOLOAD_ENABLED"), "true");
    assert_eq!(value(&injected, "PHP_INI_SCAN_DIR"), json!([PATH, "/conf.d"].concat()));
    assert_eq!(value(&injected, "LD_PRELOAD"), json!([PATH, "/lib.so"].concat()));
    assert_eq!((value(&injected, "TEAM"), value(&injected, "OTEL_SERVICE_NAME")), (json!("a"), json!("app")));
}

#[test]
fn the_containers_own_variables_are_kept_and_extended() {
    let env = json!([
        {"name": "OTEL_PHP_AUTOLOAD_ENABLED", "value": "false"},
        {"name": "PHP_INI_SCAN_DIR", "value": "/etc/php"},
        {"name": "LD_PRELOAD", "value": ""},
    ]);
    let injected = injected(json!({"env": env}));
    assert_eq!(value(&injected, "OTEL_PHP_AUTOLOAD_ENABLED"), "false");
    assert_eq!(value(&injected, "PHP_INI_SCAN_DIR"), json!(["/etc/php:", PATH, "/conf.d"].concat()));
    assert_eq!(value(&injected, "LD_PRELOAD"), json!([PATH, "/lib.so"].concat()), "empty is not set");
}

#[test]
fn a_reference_is_kept_and_extended() {
    let from =
        |optional: bool| json!({"configMapKeyRef": {"name": "php", "key": "dirs", "optional": optional}});
    let env = |optional| json!([{"name": "LD_PRELOAD", "valueFrom": from(optional)}]);
    let extended = injected(json!({"env": env(false)}));
    assert_eq!(
        value(&extended, "LD_PRELOAD"),
        json!([PATH, "/lib.so $(OTEL_INJECT_ORIGINAL_LD_PRELOAD)"].concat())
    );
    let own = &extended.container("app").expect("the target")["env"];
    let original = items(own).find(|variable| variable["name"] == "OTEL_INJECT_ORIGINAL_LD_PRELOAD");
    assert_eq!(original.expect("the original")["valueFrom"], from(false));
    let lost = with(spec()).inject(&opted_in("php", json!({"env": env(true)})));
    assert_eq!(lost.codes(), ["agent:php/app: OptionalReference"]);
    assert!(lost.is_unchanged());
}

#[test]
fn the_image_can_be_mounted() {
    let mut pod = opted_in("php", json!({}));
    pod["metadata"]["annotations"][DELIVERY_ANNOTATION] = json!("imageVolume");
    let mounted = with(spec()).inject(&pod);
    assert_eq!(mounted.names("initContainers"), [""; 0]);
    let volume = json!({"name": NAME, "image": {"reference": "own/php:1"}});
    assert_eq!(mounted.pod["spec"]["volumes"], json!([volume]));
    let mount = json!({"name": NAME, "mountPath": PATH, "subPath": "opt/agent", "readOnly": true});
    assert_eq!(mounted.container("app").expect("the target")["volumeMounts"], json!([mount]));
    let by_agent = with(json!({"agents": [{"name": "php", "image": "own/php:1", "directory": "/opt/agent",
        "delivery": "imageVolume"}]}));
    let by_agent = by_agent.inject(&opted_in("php", json!({})));
    assert_eq!(by_agent.pod["spec"]["volumes"], json!([volume]));
}

#[test]
fn a_pod_with_the_container_or_the_image_volume_is_injected_already() {
    for delivery in ["initContainer", "imageVolume"] {
        let mut pod = opted_in("php", json!({}));
        pod["metadata"]["annotations"][DELIVERY_ANNOTATION] = json!(delivery);
        let once = with(spec()).inject(&pod);
        let twice = with(spec()).inject(&once.pod);
        assert_eq!(twice.codes(), ["agent:php: AlreadyInjected"], "{delivery}");
        assert!(twice.is_unchanged());
    }
}

#[test]
fn several_agents_are_injected_into_the_same_containers() {
    let ruby = json!({"name": "ruby", "image": "own/ruby:1", "directory": "/agent", "mountPath": "/ruby",
        "env": [{"name": "LD_PRELOAD", "value": "$(mountPath)/r.so", "mode": "append", "separator": ":"}]});
    // One of another Instrumentation.
    let around = || {
        Surroundings::new([
            instrumentation("php", spec()),
            instrumentation("ruby", json!({"agents": [ruby]})),
        ])
    };
    let both = around().inject(&opted_in("php, ruby", json!({})));
    assert_eq!(both.codes(), ["agent:php/app: Injected", "agent:ruby/app: Injected"]);
    assert_eq!(both.names("initContainers").len(), 2);
    assert_eq!(value(&both, "LD_PRELOAD"), json!([PATH, "/lib.so:/ruby/r.so"].concat()));
    let mut stamped = around();
    stamped.settings.stamp = true;
    let status =
        stamped.inject(&opted_in("php,ruby", json!({}))).pod["metadata"]["annotations"][STATUS].clone();
    let status: Value = serde_json::from_str(status.as_str().expect("a status")).expect("JSON");
    let agents: Vec<_> = items(&status).map(|entry| (&entry["language"], &entry["agent"])).collect();
    assert_eq!(agents, [(&json!("agent"), &json!("php")), (&json!("agent"), &json!("ruby"))]);
    assert_ne!(status[0]["hash"], status[1]["hash"]);
}

#[test]
fn an_unknown_agent_is_told_with_those_that_there_are() {
    let unknown = with(spec()).inject(&opted_in("php,pearl", json!({})));
    assert_eq!(unknown.codes(), ["agent:pearl: AgentNotFound", "agent:php/app: Injected"]);
    assert_eq!(
        sentences(&unknown)[0],
        "agent pearl: agent \"pearl\" not found in spec.agents of the Instrumentations that the pod may use; they have: php"
    );
    let any = with(spec()).inject(&opted_in("true", json!({})));
    assert_eq!(any.codes(), ["agent:true: AgentNotFound"]);
    let none = with(json!({})).inject(&opted_in("php", json!({})));
    assert!(sentences(&none)[0].ends_with("they have: none"), "{:?}", sentences(&none));
    let many: Vec<_> = (0..17).map(|number| format!("a{number}")).collect();
    let many = with(spec()).inject(&opted_in(&many.join(","), json!({})));
    assert_eq!(many.codes(), ["agent: TooManyAgents"]);
}

#[test]
fn the_instrumentation_is_chosen_among_those_with_the_agent() {
    let around = |specs: [Value; 2]| {
        let [one, other] = specs;
        Surroundings::new([instrumentation("one", one), instrumentation("other", other)])
    };
    let codes = |specs| around(specs).inject(&opted_in("php", json!({}))).codes();
    assert_eq!(codes([spec(), json!({})]), ["agent:php/app: Injected"]);
    assert_eq!(codes([spec(), spec()]), ["agent:php: AmbiguousInstrumentation"]);
    let preferred = json!({"agents": [php()], "priority": 1});
    assert_eq!(codes([spec(), preferred]), ["agent:php/app: Injected"]);
    let other = json!({"agents": [php()], "selector": {"matchLabels": {"app": "other"}}});
    assert_eq!(codes([other.clone(), other]), ["agent:php: NoneSelectsPod"]);
    let mut around = Surroundings::new([instrumentation("one", json!({}))]);
    let mut default = instrumentation("default", spec());
    default["metadata"]["namespace"] = json!("platform");
    around.objects.push(default);
    around.settings.default_instrumentation =
        Some(ObjectName { namespace: "platform".into(), name: "default".into() });
    assert_eq!(around.inject(&opted_in("php", json!({}))).codes(), ["agent:php/app: Injected"]);
    let missing = around.inject(&opted_in("perl", json!({})));
    assert!(sentences(&missing)[0].ends_with("they have: php"), "{:?}", sentences(&missing));
}

#[test]
fn labels_namespaces_and_lists_of_containers_work_as_for_languages() {
    let two = json!({"containers": [{"name": "app", "image": "a"}, {"name": "web", "image": "b"}]});
    let codes = |pod: &Value| with(spec()).inject(pod).codes();
    let mut labelled = pod(&[], two.clone());
    labelled["metadata"]["labels"] = json!({format!("{ANNOTATION_PREFIX}inject-agent"): "php"});
    assert_eq!(codes(&labelled), ["agent:php/app: Injected"]);
    labelled["metadata"]["annotations"] = json!({format!("{ANNOTATION_PREFIX}inject-agent"): "other"});
    assert_eq!(codes(&labelled), ["agent:php/app: Injected"], "the label overrides the annotation");
    let listed = pod(&[("inject-agent", "php"), ("agent-container-names", "web")], two.clone());
    assert_eq!(codes(&listed), ["agent:php/web: Injected"]);
    let several = pod(&[("inject-agent", "php"), ("inject-java", "true")], two);
    assert_eq!(codes(&several), ["java: ContainerListMissing", "agent:php: ContainerListMissing"]);
    let metadata =
        json!({"name": "shop", "annotations": {format!("{ANNOTATION_PREFIX}inject-agent"): "php"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let of_namespace = Surroundings::new([instrumentation("inst", spec()), namespace]);
    assert_eq!(of_namespace.inject(&asking(&[], json!({}))).codes(), ["agent:php/app: Injected"]);
    assert_eq!(of_namespace.inject(&opted_in("false", json!({}))).codes(), ["agent: SwitchedOff"]);
}

#[test]
fn its_init_container_fits_as_those_of_languages() {
    let bounds = limit_range(&json!({"type": "Container", "max": {"memory": "32Mi"}}));
    let mut around = Surroundings::new([instrumentation("inst", spec()), bounds]);
    around.settings.init_resources = otel_webhook_inject::InitResources::Neutral;
    let small = json!({"resources": {"limits": {"memory": "32Mi", "cpu": "1"}, "requests": {"memory": "32Mi", "cpu": "1"}}});
    let fitted = around.inject(&opted_in("php", small));
    assert_eq!(fitted.codes(), ["agent:php/app: Injected"]);
    let memory = &fitted.container(NAME).expect("the init container")["resources"]["limits"]["memory"];
    assert_eq!(memory, "32Mi");
    let claims = json!({"name": "php", "image": "own/php:1", "directory": "/opt/agent", "volumeClaimTemplate":
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}});
    let claim = limit_range(&json!({"type": "PersistentVolumeClaim", "max": {"storage": "1Mi"}}));
    let refused = Surroundings::new([instrumentation("inst", json!({"agents": [claims]})), claim]);
    let refused = refused.inject(&opted_in("php", json!({})));
    assert_eq!(refused.codes(), ["agent:php: ClaimRefused"]);
    let sentence = &sentences(&refused)[0];
    assert!(sentence.contains("the claim of spec.agents[php].volumeClaimTemplate"), "{sentence}");
}

#[test]
fn what_the_pod_already_has_is_not_hidden() {
    let mounts = json!({"volumeMounts": [{"name": "own", "mountPath": PATH}]});
    let codes = |container| with(spec()).inject(&opted_in("php", container)).codes();
    assert_eq!(codes(mounts), ["agent:php/app: NameTaken"]);
    let own = with(json!({"agents": [{"name": "php", "image": "own/php:1", "directory": "/opt/agent",
        "mountPath": "/elsewhere"}]}));
    let mounts = json!({"volumeMounts": [{"name": "own", "mountPath": PATH}]});
    assert_eq!(own.inject(&opted_in("php", mounts)).codes(), ["agent:php/app: Injected"]);
}
