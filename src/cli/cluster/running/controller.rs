//! The controller, found by its pods.

use clap::FromArgMatches;

use super::{
    flags::{given, parse, words},
    pod::{Container, Pod},
};
use crate::{
    cli::{cluster::account::Account, controller::ControllerFlags, pace::PaceFlags},
    subject::Subject,
};
use otel_webhook_fleet::restart::Pace;

/// The label by which the chart tells its components apart.
pub const LABEL: &str = "app.kubernetes.io/component=controller";

/// The subcommand.
const COMMAND: &str = "controller";

/// The pods of the controller in a namespace.
#[derive(Debug)]
pub struct RunningController {
    /// The newest pod.
    pub pod: Subject,
    /// Its service account.
    pub account: Account,
    /// How many pods there are.
    pub pods: usize,
    /// How many of them are ready.
    pub ready: usize,
    /// Namespace and name of the Lease, or why they cannot be read.
    pub lease: Result<(String, String), String>,
    /// Whether it watches some namespaces only.
    pub is_scoped: bool,
    /// Its flags of restarts, if it restarts workloads, or why they cannot be read.
    pub restarts: Result<Option<RestartFlags>, String>,
}

/// How a controller restarts workloads.
#[derive(Debug)]
pub struct RestartFlags {
    /// How fast.
    pub pace: Pace,
    /// The namespace of the ConfigMap that remembers restarts.
    pub namespace: String,
    /// Its name.
    pub config_map: String,
}

/// Reads the pods of the controller, if there are any. Other programs have components of the same name.
pub fn controller(pods: &[Pod]) -> Option<RunningController> {
    let is_one = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && container(pod).is_some();
    let own: Vec<&Pod> = pods.iter().filter(is_one).collect();
    let pod =
        own.iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|created| created.0))?;
    let (container, spec) = (container(pod)?, pod.spec.as_ref()?);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let namespace = text(&pod.metadata.namespace);
    Some(RunningController {
        pod: Subject::new("Pod", &namespace, &text(&pod.metadata.name)),
        account: spec.account(&namespace),
        pods: own.len(),
        ready: own.iter().filter(|pod| is_ready(pod)).count(),
        lease: lease(container, &namespace),
        is_scoped: is_scoped(container),
        restarts: restarts(container, &namespace),
    })
}

fn container(pod: &Pod) -> Option<&Container> {
    let is_one = |container: &&Container| {
        let mut words = words(container);
        words.by_ref().any(|word| word == COMMAND) && words.any(|word| word.starts_with("--lease"))
    };
    pod.spec.as_ref()?.containers.iter().find(is_one)
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.r#type == "Ready" && condition.status == "True")
}

fn lease(container: &Container, own_namespace: &str) -> Result<(String, String), String> {
    let matches = parse::<ControllerFlags>(container, COMMAND)?;
    let namespace = given(&matches, "lease_namespace").pop().unwrap_or_else(|| own_namespace.to_owned());
    let name = given(&matches, "lease").pop().unwrap_or_default();
    Ok((namespace, name))
}

fn is_scoped(container: &Container) -> bool {
    parse::<ControllerFlags>(container, COMMAND)
        .is_ok_and(|matches| !given(&matches, "namespaces").is_empty())
}

fn restarts(container: &Container, own_namespace: &str) -> Result<Option<RestartFlags>, String> {
    let matches = parse::<ControllerFlags>(container, COMMAND)?;
    let flags = PaceFlags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let one = |id: &str| given(&matches, id).pop();
    Ok(matches.get_flag("restarts").then(|| RestartFlags {
        pace: flags.pace(),
        namespace: one("lease_namespace").unwrap_or_else(|| own_namespace.to_owned()),
        config_map: one("restarts_config_map").unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    /// A pod of the committed Deployment.
    fn pod(name: &str, is_ready: &str) -> Pod {
        let text = include_str!("../../../../manifests/controller/controller.yaml");
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
        let deployment = documents.iter().find(|document| document["kind"] == "Deployment").expect("one");
        let mut pod = deployment["spec"]["template"].clone();
        pod["metadata"]["namespace"] = json!("home");
        pod["metadata"]["name"] = json!(name);
        pod["status"] = json!({"conditions": [{"type": "Ready", "status": is_ready}]});
        from_value(pod).expect("a pod")
    }

    #[test]
    fn the_committed_deployment_is_recognised() {
        let found = controller(&[pod("a", "True"), pod("b", "False")]).expect("a controller");
        assert_eq!((found.pods, found.ready), (2, 1));
        assert_eq!(found.account, Account::parse("home/otel-webhook-controller").expect("valid"));
        let lease = ("otel-webhook".to_owned(), "otel-webhook-controller".to_owned());
        assert_eq!(found.lease, Ok(lease));
    }

    #[test]
    fn pods_of_other_controllers_and_terminating_ones_are_left_out() {
        let mut other = pod("a", "True");
        other.spec.as_mut().expect("a spec").containers[0].args = vec!["controller".to_owned()];
        let mut going = pod("b", "True");
        going.metadata.deletion_timestamp = Some(from_value(json!("2026-01-01T00:00:00Z")).expect("a time"));
        assert!(controller(&[other, going]).is_none());
    }

    #[test]
    fn the_flags_of_restarts_are_those_of_the_pod() {
        let mut restarting = pod("a", "True");
        let args = &mut restarting.spec.as_mut().expect("a spec").containers[0].args;
        args.extend(["--restarts", "--restart-at-once=7"].map(str::to_owned));
        let found = controller(&[restarting]).expect("a controller").restarts.expect("readable");
        let found = found.expect("it restarts workloads");
        assert_eq!((found.pace.at_once, found.pace.per_minute), (7, 10));
        assert_eq!([&*found.namespace, &found.config_map], ["otel-webhook", "otel-webhook-restarts"]);
        let without = controller(&[pod("a", "True")]).expect("a controller").restarts;
        assert!(without.expect("readable").is_none());
    }

    #[test]
    fn it_watches_all_namespaces_or_some() {
        let mut scoped = pod("a", "True");
        let args = &mut scoped.spec.as_mut().expect("a spec").containers[0].args;
        args.push("--namespaces=shop,billing".to_owned());
        assert!(controller(&[scoped]).expect("a controller").is_scoped);
        assert!(!controller(&[pod("a", "True")]).expect("a controller").is_scoped);
    }

    #[test]
    fn flags_that_cannot_be_read_leave_the_rest() {
        let mut future = pod("a", "True");
        future.spec.as_mut().expect("a spec").containers[0].args.push("--from-the-future".to_owned());
        let found = controller(&[future]).expect("a controller");
        assert!(found.lease.expect_err("unknown").contains("--from-the-future"));
    }
}
