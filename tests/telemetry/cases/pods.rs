//! Targets other than the one container of a pod.

use serde_json::json;

use crate::cluster::Cluster;
use crate::received::Received;
use crate::service::{JAVA, NODEJS, image};
use crate::stage::{Service, Stage, pod};

/// Asks until somebody answers.
const ASK: &str = "\
    const ask = (tries) => require('http')
        .get('http://127.0.0.1:4318/', (answer) => answer.resume())
        .on('error', (error) => {
            if (tries === 0) throw error;
            setTimeout(ask, 250, tries - 1);
        });
    ask(40);";

/// An init container that asks somebody once, and the container of the pod, which is no target.
pub fn init_container(cluster: &Cluster) {
    let stage = Stage::new(cluster, "pods-init");
    stage.instrumentation("default", json!({}));
    let mut pod = pod(NODEJS, "default", &[]);
    pod["spec"]["initContainers"] =
        json!([{"name": "migrate", "image": image("nodejs"), "command": ["/node", "-e", ASK]}]);
    pod["metadata"]["annotations"]["instrumentation.opentelemetry.io/container-names"] = "migrate".into();
    let running = stage.create(pod);
    let service = Service::new(NODEJS, running);
    stage.ask(&service, "orders");
    stage.collector.wait("a span of the init container", |received| {
        received.spans.iter().any(|span| span.value["kind"] == 3).then_some(())
    });
    for span in &stage.collector.received().spans {
        assert_eq!(span.resource["k8s.container.name"], "migrate");
    }
}

/// Java and Node.js in two containers of one pod, one of which is started again.
pub fn two_languages(cluster: &Cluster) {
    let stage = Stage::new(cluster, "pods-two-languages");
    stage.instrumentation("default", json!({}));
    let mut pod = pod(JAVA, "default", &[]);
    let mut web = NODEJS.container(&[("NEXT", &JAVA.url("orders"))]);
    web["name"] = "web".into();
    pod["spec"]["containers"].as_array_mut().expect("containers").push(web);
    let annotations = &mut pod["metadata"]["annotations"];
    annotations[NODEJS.annotation()] = "default".into();
    annotations["instrumentation.opentelemetry.io/java-container-names"] = "app".into();
    annotations["instrumentation.opentelemetry.io/nodejs-container-names"] = "web".into();
    let both = stage.create(pod);
    let java = Service::new(JAVA, both);
    stage.ask(&java, "first");
    let web = Service::new(NODEJS, java.running);
    assert_eq!(stage.ask(&web, "orders"), "nodejs  java ");
    stage.collector.wait("a span of each container", |received| {
        (served(received, "app", "/orders") && served(received, "web", "/orders")).then_some(())
    });

    let began = web.running.played.inspect("web", "{{.State.StartedAt}}");
    web.running.played.restart("web");
    assert_ne!(began, web.running.played.inspect("web", "{{.State.StartedAt}}"));
    stage.ask(&web, "after-restart");
    stage.collector.wait("a span of the container after its restart", |received| {
        served(received, "web", "/after-restart").then_some(())
    });
}

/// Whether a container has served this path.
fn served(received: &Received, container: &str, path: &str) -> bool {
    let mut of_container =
        received.spans.iter().filter(|span| span.resource["k8s.container.name"] == container);
    of_container.any(|span| {
        let attributes = span.attributes();
        let paths = ["url.path", "http.target"].into_iter().filter_map(|key| attributes.get(key));
        paths.into_iter().any(|served| served == path)
    })
}
