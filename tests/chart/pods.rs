//! The pods: what they may do, how they are told apart, and the arguments of the program in them.

use clap::{CommandFactory as _, Parser as _};
use otel_webhook::Cli;
use serde_json::{Value, json};

use crate::helm::{args, matrix, objects_of, of_kind, selector, server, services, the, values};

/// The pods that a release makes: those of the Deployments, that of `helm test`, and that of the Job.
fn pod_specs(objects: &[Value]) -> Vec<&Value> {
    let templates = of_kind(objects, "Deployment").into_iter().chain(of_kind(objects, "Job"));
    let specs = templates.map(|object| &object["spec"]["template"]["spec"]);
    specs.chain([&the(objects, "Pod")["spec"]]).collect()
}

/// With the program's own parser: a flag that is not there, or a value that it does not take, fails here.
#[test]
fn the_program_takes_its_arguments() {
    for file in matrix() {
        for spec in pod_specs(objects_of(&file)) {
            let args: Vec<String> =
                serde_json::from_value(spec["containers"][0]["args"].clone()).expect("arguments");
            let parsed = Cli::try_parse_from(["otel-webhook".to_owned()].into_iter().chain(args.clone()));
            parsed.unwrap_or_else(|error| panic!("{}: {args:?}: {error}", file.display()));
        }
    }
}

/// As the level "restricted" of pod security wants it, and on OpenShift, which gives the user itself.
#[test]
fn pods_are_restricted() {
    for file in matrix().into_iter().filter(|file| *file != values("everything")) {
        for spec in pod_specs(objects_of(&file)) {
            let context = &spec["securityContext"];
            assert_eq!(context, &json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
            let container = &spec["containers"][0]["securityContext"];
            let expected = json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            });
            assert_eq!(container, &expected);
            assert_eq!(
                spec["hostNetwork"] == true,
                file == values("host-network") && spec["containers"][0]["name"] == "webhook"
            );
        }
    }
}

/// A Service named otel-webhook would become `OTEL_WEBHOOK_PORT` and its like, next to the flags.
#[test]
fn no_service_gets_among_the_flags() {
    for file in matrix() {
        for spec in pod_specs(objects_of(&file)) {
            assert_eq!(spec["enableServiceLinks"], false, "{}", file.display());
        }
    }
}

/// A selector of pods chooses those of one component, and no others, such as the pod of `helm test`.
#[test]
fn selectors_choose_the_pods_of_one_component_alone() {
    for file in matrix() {
        let objects = objects_of(&file);
        let labels = |pod: &Value| pod["metadata"]["labels"].clone();
        let deployments = of_kind(objects, "Deployment");
        let mut pods: Vec<_> =
            deployments.iter().map(|deployment| labels(&deployment["spec"]["template"])).collect();
        pods.extend(of_kind(objects, "Job").iter().map(|job| labels(&job["spec"]["template"])));
        pods.push(labels(the(objects, "Pod")));
        for (own, deployment) in deployments.into_iter().enumerate() {
            let selector = selector(deployment);
            let chosen: Vec<_> = (0..pods.len()).filter(|pod| matches(selector, &pods[*pod])).collect();
            assert_eq!(chosen, [own], "{}: {selector} of {pods:?}", file.display());
        }
        for kind in ["Service", "PodDisruptionBudget", "NetworkPolicy"] {
            for object in of_kind(objects, kind) {
                let mut deployments = of_kind(objects, "Deployment").into_iter();
                let is_one = deployments.any(|deployment| selector(deployment) == selector(object));
                assert!(is_one, "{}: {object}", file.display());
            }
        }
        for monitor in of_kind(objects, "ServiceMonitor") {
            let selected = of_kind(objects, "Service")
                .into_iter()
                .filter(|service| matches(selector(monitor), &service["metadata"]["labels"]));
            let ports: Vec<_> = selected.map(|service| &service["spec"]["ports"][0]["name"]).collect();
            assert_eq!(ports, ["metrics", "metrics"], "of the webhook and of the controller");
        }
    }
}

fn matches(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().expect("labels");
    selector.iter().all(|(name, value)| labels.get(name) == Some(value))
}

#[test]
fn ports_are_the_same_everywhere() {
    for file in matrix() {
        let objects = objects_of(&file);
        let container = &server(objects)["containers"][0];
        for (name, flag) in [("webhook", "--listen"), ("admin", "--admin-listen")] {
            let ports = container["ports"].as_array().expect("ports");
            let port = ports.iter().find(|port| port["name"] == name).expect(name);
            let expected = format!("{flag}=[::]:{}", port["containerPort"]);
            assert!(args(objects).contains(&expected), "{}: {expected}", file.display());
        }
        // The API server, and who else reaches its Service, has no way to health and metrics.
        let expected = [("https", "webhook"), ("metrics", "admin")];
        for (service, (port, target)) in services(objects).into_iter().zip(expected) {
            let ports = service["spec"]["ports"].as_array().expect("ports");
            assert_eq!(ports.len(), 1, "{}: {service}", file.display());
            assert_eq!((&ports[0]["name"], &ports[0]["targetPort"]), (&json!(port), &json!(target)));
        }
    }
}

/// What is in flight is cut off by the program before the kubelet does it.
#[test]
fn the_kubelet_waits_longer_than_the_program() {
    for file in matrix() {
        let objects = objects_of(&file);
        let args = args(objects);
        let seconds = |flag: &str| {
            let given = args.iter().find_map(|arg| arg.strip_prefix(flag)).expect(flag);
            given.parse::<i64>().expect("seconds")
        };
        let grace = server(objects)["terminationGracePeriodSeconds"].as_i64();
        let needed = seconds("--shutdown-delay=") + seconds("--shutdown-grace=");
        assert!(grace > Some(needed), "{}: {grace:?}", file.display());
    }
}

#[test]
fn the_image_is_that_of_the_registry_and_of_the_digest() {
    let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    for (name, expected) in [
        ("default", concat!("ghcr.io/otel-webhook/otel-webhook:", env!("CARGO_PKG_VERSION")).to_owned()),
        ("everything", format!("mirror.example.com:5000/example/webhook:1.2.3@{digest}")),
    ] {
        for spec in pod_specs(objects_of(&values(name))) {
            assert_eq!(spec["containers"][0]["image"], expected);
        }
    }
}

/// The token is mounted where it is used; the others ask the API server nothing.
#[test]
fn only_the_server_and_the_controller_have_a_token() {
    let objects = objects_of(&values("everything"));
    let accounts = of_kind(objects, "ServiceAccount");
    assert!(accounts.iter().all(|account| account["automountServiceAccountToken"] == false), "{accounts:?}");
    for spec in pod_specs(objects) {
        let container = &spec["containers"][0]["name"];
        let asks = ["webhook", "controller"].iter().any(|name| container == name);
        assert_eq!(spec["automountServiceAccountToken"], asks, "{container}");
    }
}

/// `helm test` trusts what the API server is told to trust, and gets no key.
#[test]
fn the_test_has_the_authority_and_not_the_key() {
    for file in matrix() {
        let objects = objects_of(&file);
        let volume = &the(objects, "Pod")["spec"]["volumes"][0];
        if volume["secret"].is_null() {
            let bundle = &of_kind(objects, "ConfigMap")
                .into_iter()
                .find(|found| found["metadata"]["name"] == volume["configMap"]["name"])
                .expect("a ConfigMap")["data"];
            assert!(
                bundle["ca.crt"].as_str().is_some_and(|text| text.starts_with("-----BEGIN CERT")),
                "{bundle}"
            );
        } else {
            assert_eq!(volume["secret"]["items"], json!([{"key": "ca.crt", "path": "ca.crt"}]));
        }
    }
}

/// The chart's defaults are those of the program.
#[test]
fn sizes_are_given_to_the_program() {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").expect("a subcommand");
    let (default, everything) =
        (args(objects_of(&values("default"))), args(objects_of(&values("everything"))));
    assert!(
        everything.contains(&"--reserved-namespaces=platform,observability".to_owned()),
        "{everything:?}"
    );
    for (flag, given) in [
        ("max-pod-size", "3Mi"),
        ("max-declarative-config-size", "32Ki"),
        ("max-instrumentation-size", "1.5Mi"),
        ("max-instrumentations-total", "64Mi"),
        ("max-review-memory", "64"),
    ] {
        let argument = serve.get_arguments().find(|one| one.get_long() == Some(flag)).expect(flag);
        let own = argument.get_default_values()[0].to_str().expect("text");
        assert!(default.contains(&format!("--{flag}={own}")), "{flag}: {default:?}");
        assert!(everything.contains(&format!("--{flag}={given}")), "{flag}: {everything:?}");
    }
}
