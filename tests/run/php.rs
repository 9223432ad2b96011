//! PHP with an agent that an Instrumentation describes itself. What stands for the agent is a file that PHP runs before
//! the application, because a folder of the agent is among those with PHP's settings.

use serde_json::{Value, json};

use crate::{deployment, image, inject, unique};
use otel_webhook_testkit::containers::{played::Played, podman::Network};

const PATH: &str = "/otel-auto-instrumentation-php";

/// An application with its own variables: one that the agent extends, one that it would set, and a reference.
fn app(name: &str) -> Value {
    let env = json!([
        {"name": "PHP_INI_SCAN_DIR", "value": "/own"},
        {"name": "AGENT_ENABLED", "value": "as-the-application-says"},
        {"name": "AGENT_FLAGS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    let command = json!(["/usr/bin/php8.2", "/app/order.php"]);
    let container = json!({"name": "app", "image": image("php"), "command": command, "env": env});
    let mut app = deployment(name, "agent", container);
    app["spec"]["template"]["metadata"]["annotations"] =
        json!({"instrumentation.opentelemetry.io/inject-agent": "php"});
    app
}

fn instrumentation(delivery: &str) -> Value {
    let env = json!([
        {"name": "PHP_INI_SCAN_DIR", "value": "$(mountPath)/conf.d", "mode": "append", "separator": ":"},
        {"name": "AGENT_ENABLED", "value": "true"},
        {"name": "AGENT_FLAGS", "value": "--first", "mode": "prepend", "separator": " "},
    ]);
    let agent = json!({"name": "php", "image": image("php-agent"), "directory": "/agent", "env": env});
    json!({"delivery": delivery, "agents": [agent]})
}

/// The application with the agent, after it has said what it was started with.
fn started(name: &str, delivery: &str) -> Played {
    let documents = inject(&[app(name)], &instrumentation(delivery));
    let init = &documents[0]["spec"]["template"]["spec"]["initContainers"];
    assert_eq!(init.is_array(), delivery == "initContainer", "{init}");
    let pod = Played::start(documents, Network::None);
    pod.wait_for(&[
        &format!("PHP_INI_SCAN_DIR=/own:{PATH}/conf.d\n"),
        "AGENT_ENABLED=as-the-application-says\n",
        &format!("AGENT_FLAGS=--first {name}-pod-0\n"),
        &format!("OTEL_SERVICE_NAME={name}\n"),
        "precision=5\n",
        &format!("agent=loaded by cli from {PATH}\n"),
    ]);
    pod
}

#[test]
fn php_runs_with_an_agent_of_the_instrumentation_that_is_copied() {
    started(&unique("php"), "initContainer");
}

/// As when a node starts again, with the volumes of its pods.
#[test]
fn an_agent_of_the_instrumentation_is_copied_again_over_its_first_copy() {
    let name = unique("php-again");
    let pod = started(&name, "initContainer");
    let documents = inject(&[app(&name)], &instrumentation("initContainer"));
    let init = &documents[0]["spec"]["template"]["spec"]["initContainers"][0];
    pod.run_in_volumes(init);
    let (ok, said) = pod.shell(&format!("test -L {PATH}/prepend.php"));
    assert!(ok, "{said}: the agent of the test has no link");
    let (ok, said) = pod.shell("echo '<?= AGENT ?>' | /usr/bin/php8.2");
    assert!(ok && said.ends_with(&format!("loaded by cli from {PATH}")), "{said}");
}

#[test]
fn php_runs_with_an_agent_of_the_instrumentation_that_is_mounted_read_only() {
    let pod = started(&unique("php-mounted"), "imageVolume");
    let (ok, said) = pod.shell(&format!("echo >{PATH}/new"));
    assert!(!ok && said.contains("Read-only file system"), "{said}");
}
