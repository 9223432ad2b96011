//! The flags, the service account and the Secret of the webhook, read from its pods, and the controller, by its pods.
//!
//! The decisions of the webhook depend on its flags, so `check` and `explain` use the same flags.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, builder::Resettable};
use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::Deserialize;

use super::object::{Account, ManagedNames};
use crate::{controller::ControllerFlags, flags::InjectionFlags, pace::PaceFlags, serve::ServeFlags};
use otel_webhook_fleet::restart::Pace;
use otel_webhook_server::subject::Subject;

/// The settings of a pod of the webhook.
#[derive(Debug)]
pub struct Running {
    /// The pod.
    pub pod: Subject,
    /// Its service account.
    pub account: Account,
    /// Its flags, or why they cannot be read.
    pub flags: Result<ServingFlags, String>,
}

/// The objects that can pause all injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The namespace of the webhook.
    pub namespace: String,
    /// The Lease in it that the webhook watches, if it does.
    pub lease: Option<String>,
}

/// The flags that decisions and certificates depend on.
#[derive(Debug)]
pub struct ServingFlags {
    /// The injection flags.
    pub injection: InjectionFlags,
    /// The namespace of the release, and the Lease that can pause all injection.
    pub release: Release,
    /// Name of the Secret of the serving certificate, if there is one.
    pub secret: Option<String>,
    /// The objects of managed certificates, if they are enabled.
    pub managed: Option<ManagedNames>,
}

/// Reads the newest pod of the webhook, if there is one.
pub fn newest(pods: &[Pod]) -> Option<Running> {
    let alive = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let pod = alive.max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|created| created.0))?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let namespace = text(&pod.metadata.namespace);
    let spec = pod.spec.as_ref()?;
    Some(Running {
        pod: Subject::new("Pod", &namespace, &text(&pod.metadata.name)),
        flags: flags(spec, &namespace),
        account: spec.account(&namespace),
    })
}

fn flags(spec: &PodSpec, own_namespace: &str) -> Result<ServingFlags, String> {
    let serves = |container: &&Container| words(container).any(|word| word == "serve");
    let mut containers = spec.containers.iter();
    let container = containers.find(serves).ok_or("no container has the argument serve")?;
    let matches = parse::<ServeFlags>(container, "serve")?;
    let injection = InjectionFlags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let release = Release {
        namespace: given(&matches, "namespace").pop().unwrap_or_else(|| own_namespace.to_owned()),
        lease: given(&matches, "lease").pop(),
    };
    let managed = given(&matches, "tls_managed").pop().map(|secret| ManagedNames {
        namespace: release.namespace.clone(),
        secret,
        configurations: given(&matches, "webhook_configuration"),
        converts: !given(&matches, "conversion_service").is_empty(),
    });
    let mounted = || secret(spec, container, &matches);
    let secret = managed.as_ref().map(|managed| managed.secret.clone()).or_else(mounted);
    Ok(ServingFlags { injection, release, secret, managed })
}

/// Returns the Secret that is mounted at the path of the certificate.
fn secret(spec: &PodSpec, container: &Container, matches: &ArgMatches) -> Option<String> {
    let file = given(matches, "tls_cert").pop()?;
    let folder =
        |path: &str| file.strip_prefix(path.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    let mounts = container.volume_mounts.iter().filter(|mount| folder(&mount.mount_path));
    let mount = mounts.max_by_key(|mount| mount.mount_path.len())?;
    let volume = spec.volumes.iter().find(|volume| volume.name == mount.name)?;
    let projected = volume.projected.iter().flat_map(|projected| &projected.sources);
    let projected = projected.filter_map(|source| Some(source.secret.as_ref()?.name.clone()));
    volume
        .secret
        .as_ref()
        .and_then(|secret| secret.secret_name.clone())
        .or_else(|| projected.into_iter().next())
}

/// Returns the values of a flag.
fn given(matches: &ArgMatches, id: &str) -> Vec<String> {
    let values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    values.filter_map(|value| value.to_str().map(str::to_owned)).collect()
}

/// Returns the command and the arguments of a container.
fn words(container: &Container) -> impl Iterator<Item = &String> {
    container.command.iter().chain(&container.args)
}

/// Parses the arguments of a container with its environment, as the subcommand does.
fn parse<F: Args>(container: &Container, subcommand: &'static str) -> Result<ArgMatches, String> {
    let flags = F::augment_args(Command::new(subcommand));
    let arguments: Vec<&String> = words(container).skip_while(|word| *word != subcommand).collect();
    let mut line: Vec<String> = Vec::new();
    for argument in flags.get_arguments() {
        line.extend(by_environment(argument, container, &arguments));
    }
    line.extend(arguments.into_iter().skip(1).cloned());
    // The environment of this process does not apply.
    let flags = flags.mut_args(|argument| argument.env(Resettable::Reset)).no_binary_name(true);
    flags.try_get_matches_from(line).map_err(|error| first_line(&error))
}

/// Returns a flag of the container's environment, unless the arguments set it.
fn by_environment(argument: &Arg, container: &Container, arguments: &[&String]) -> Option<String> {
    let (variable, long) = (argument.get_env()?.to_str()?, format!("--{}", argument.get_long()?));
    let is_given = |given: &str| given == long || given.starts_with(&format!("{long}="));
    if arguments.iter().any(|given| is_given(given)) {
        return None;
    }
    let value = container.env.iter().find(|one| one.name == variable)?.value.as_ref()?;
    if argument.get_action().takes_values() {
        return Some(format!("{long}={value}"));
    }
    ["true", "1", "yes", "on"].contains(&&*value.to_lowercase()).then_some(long)
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The fields of a pod of the webhook or of the controller that are read. The complete type would add half a megabyte to
/// the program.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = v1::Pod)]
pub struct Pod {
    /// Name, namespace, and the times of its creation and deletion.
    pub metadata: ObjectMeta,
    /// Its specification.
    pub spec: Option<PodSpec>,
    /// Its status.
    pub status: Option<PodStatus>,
}

/// The status of a pod.
#[derive(Clone, Debug, Deserialize)]
pub struct PodStatus {
    /// Its conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Deserialize)]
pub struct Condition {
    /// Its type.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

/// The specification of a pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its service account; none for `default`.
    pub service_account_name: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Its volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
}

impl PodSpec {
    /// Returns the service account of the pod.
    pub fn account(&self, namespace: &str) -> Account {
        let name = self.service_account_name.clone().unwrap_or_else(|| "default".to_owned());
        Account { namespace: namespace.to_owned(), name }
    }
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The command.
    pub command: Vec<String>,
    /// The arguments.
    pub args: Vec<String>,
    /// The environment variables.
    pub env: Vec<Variable>,
    /// The volume mounts.
    pub volume_mounts: Vec<Mount>,
}

/// An environment variable.
#[derive(Clone, Debug, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, unless it has a source.
    pub value: Option<String>,
}

/// A volume mount.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The volume's name.
    pub name: String,
    /// The path.
    pub mount_path: String,
}

/// A volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its Secret.
    pub secret: Option<SecretVolume>,
    /// Its projected sources.
    pub projected: Option<Projected>,
}

/// A Secret as a volume.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolume {
    /// The Secret's name.
    pub secret_name: Option<String>,
}

/// A projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Projected {
    /// Its sources.
    #[serde(default)]
    pub sources: Vec<Source>,
}

/// A source of a projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    /// Its Secret.
    pub secret: Option<SecretSource>,
}

/// A Secret in a projected volume.
#[derive(Clone, Debug, Deserialize)]
pub struct SecretSource {
    /// The Secret's name.
    #[serde(default)]
    pub name: String,
}

/// The label by which the chart tells its components apart.
pub const CONTROLLER_LABEL: &str = "app.kubernetes.io/component=controller";

/// The subcommand.
const CONTROLLER: &str = "controller";

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
    /// Whether it restarts without a policy that restricts it.
    pub is_without_policy: bool,
}

/// Reads the pods of the controller, if there are any. Other programs have components of the same name.
pub fn controller(pods: &[Pod]) -> Option<RunningController> {
    let is_one = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && controlling(pod).is_some();
    let own: Vec<&Pod> = pods.iter().filter(is_one).collect();
    let pod =
        own.iter().max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|created| created.0))?;
    let (container, spec) = (controlling(pod)?, pod.spec.as_ref()?);
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

fn controlling(pod: &Pod) -> Option<&Container> {
    let is_one = |container: &&Container| {
        let mut words = words(container);
        words.by_ref().any(|word| word == CONTROLLER) && words.any(|word| word.starts_with("--lease"))
    };
    pod.spec.as_ref()?.containers.iter().find(is_one)
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| condition.r#type == "Ready" && condition.status == "True")
}

fn lease(container: &Container, own_namespace: &str) -> Result<(String, String), String> {
    let matches = parse::<ControllerFlags>(container, CONTROLLER)?;
    let namespace = given(&matches, "lease_namespace").pop().unwrap_or_else(|| own_namespace.to_owned());
    let name = given(&matches, "lease").pop().unwrap_or_default();
    Ok((namespace, name))
}

fn is_scoped(container: &Container) -> bool {
    parse::<ControllerFlags>(container, CONTROLLER)
        .is_ok_and(|matches| !given(&matches, "namespaces").is_empty())
}

fn restarts(container: &Container, own_namespace: &str) -> Result<Option<RestartFlags>, String> {
    let matches = parse::<ControllerFlags>(container, CONTROLLER)?;
    let flags = PaceFlags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let one = |id: &str| given(&matches, id).pop();
    Ok(matches.get_flag("restarts").then(|| RestartFlags {
        pace: flags.pace(),
        namespace: one("lease_namespace").unwrap_or_else(|| own_namespace.to_owned()),
        config_map: one("restarts_config_map").unwrap_or_default(),
        is_without_policy: matches.get_flag("restarts_without_policy"),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use otel_webhook_api::{defaults::JAVA, quantity::Quantity};
    use otel_webhook_inject::{CrossNamespace, PrivilegedInit};

    fn pod(name: &str, created: &str, container: &Value) -> Pod {
        let volumes = json!([{"name": "certificate", "secret": {"secretName": "serving"}}]);
        let spec = json!({"serviceAccountName": "webhook", "containers": [
            {"name": "proxy", "args": ["run"]}, container], "volumes": volumes});
        let metadata = json!({"name": name, "namespace": "home", "creationTimestamp": created});
        from_value(json!({"metadata": metadata, "spec": spec})).expect("a pod")
    }

    fn flags_of(container: Value) -> Result<ServingFlags, String> {
        newest(&[pod("a", "2026-01-01T00:00:00Z", &container)]).expect("a pod").flags
    }

    fn container(args: &[&str], env: Value) -> Value {
        let mounts =
            json!([{"name": "other", "mountPath": "/"}, {"name": "certificate", "mountPath": "/certs"}]);
        json!({"name": "webhook", "args": args, "env": env, "volumeMounts": mounts})
    }

    const FILES: [&str; 3] = ["serve", "--tls-cert=/certs/tls.crt", "--tls-key=/certs/tls.key"];

    #[test]
    fn flags_come_from_arguments_and_from_the_environment_of_the_container() {
        let env = json!([
            {"name": "OTEL_WEBHOOK_LANGUAGES", "value": "java,go"},
            {"name": "OTEL_WEBHOOK_STAMP", "value": "false"},
            {"name": "OTEL_WEBHOOK_CROSS_NAMESPACE", "value": "granted"},
            {"name": "OTEL_WEBHOOK_INIT_CONTAINERS_PRIVILEGED", "value": "deny"},
            {"name": "OTEL_WEBHOOK_PREVIEW_WARNINGS", "value": "true"},
            {"name": "OTEL_WEBHOOK_AGENT_SIZE", "value": "java=40Mi,extension=1Mi"},
            {"name": "OTEL_WEBHOOK_MAX_POD_SIZE", "value": "2Mi"},
            {"name": "OTEL_WEBHOOK_MAX_DECLARATIVE_CONFIG_SIZE", "value": "8Ki"},
            {"name": "OTEL_WEBHOOK_MAX_INSTRUMENTATION_SIZE", "value": "64Ki"},
            {"name": "OTHER", "value": "1"},
        ]);
        let args = [
            &FILES[..],
            &["--stamp=true", "--default-instrumentation", "home/default"][..],
            &["--helper-containers=my-proxy,mesh-*", "--helper-containers", "own"],
        ]
        .concat();
        let flags = flags_of(container(&args, env)).expect("readable");
        assert_eq!(flags.injection.languages.names(), "java,go");
        assert_eq!(flags.injection.settings().cross_namespace, CrossNamespace::Granted);
        assert_eq!(flags.injection.settings().privileged_init, PrivilegedInit::Deny);
        assert!(flags.injection.stamp, "arguments override the environment");
        let default = flags.injection.default_instrumentation.as_ref().expect("given");
        assert_eq!(default.to_string(), "home/default");
        assert_eq!(flags.secret.as_deref(), Some("serving"));
        let settings = flags.injection.settings();
        assert!(["my-proxy", "mesh-a", "own", "envoy"].iter().all(|name| settings.helpers.has(name)));
        assert_eq!(settings.sizes.of(&JAVA, 1), Quantity::mebibytes(41));
        assert_eq!(settings.max_pod_size, 2 << 20);
        assert_eq!(settings.max_declarative_config_size, 8 * 1024);
        assert_eq!(settings.size_limits.one, 64 * 1024);
    }

    #[test]
    fn the_committed_deployment_is_parsed() {
        let text = include_str!("../../manifests/managed/deployment.yaml");
        let deployment: Value = serde_saphyr::from_str(text).expect("YAML");
        let mut pod = deployment["spec"]["template"].clone();
        pod["metadata"]["namespace"] = json!("otel-webhook");
        let running = newest(&[from_value(pod).expect("a pod")]).expect("one");
        assert_eq!(running.account, Account::parse("otel-webhook/otel-webhook").expect("valid"));
        let flags = running.flags.expect("readable");
        assert_eq!(flags.secret.as_deref(), Some("otel-webhook-certificates"));
        let managed = ManagedNames {
            namespace: "otel-webhook".to_owned(),
            secret: "otel-webhook-certificates".to_owned(),
            configurations: vec!["otel-webhook".to_owned()],
            converts: false,
        };
        assert_eq!(flags.managed, Some(managed));
    }

    #[test]
    fn unreadable_flags_are_reported() {
        let problem = flags_of(container(&["serve", "--from-the-future"], json!([]))).expect_err("unknown");
        assert!(problem.contains("--from-the-future"), "{problem}");
        let mut commanded = container(&FILES[1..], json!([]));
        commanded["command"] = json!(["/otel-webhook", "serve"]);
        assert_eq!(flags_of(commanded).expect("readable").secret.as_deref(), Some("serving"));
        let problem = flags_of(container(&["demo"], json!([]))).expect_err("no server");
        assert_eq!(problem, "no container has the argument serve");
    }

    #[test]
    fn the_newest_pod_that_is_not_terminating_is_used() {
        let fine = container(&FILES, json!([]));
        let (old, new) = (pod("a", "2026-01-01T00:00:00Z", &fine), pod("b", "2026-02-01T00:00:00Z", &fine));
        let mut going = pod("c", "2026-03-01T00:00:00Z", &fine);
        going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
        let running = newest(&[old, new, going]).expect("a pod");
        assert_eq!(running.pod, Subject::new("Pod", "home", "b"));
        assert_eq!(running.account, Account { namespace: "home".to_owned(), name: "webhook".to_owned() });
        let languages = running.flags.expect("readable").injection.languages.names();
        assert_eq!(languages, "java,nodejs,python,dotnet,apache-httpd,sdk,agent");
        assert!(newest(&[]).is_none());
    }

    /// A pod of the committed Deployment.
    fn controlling_pod(name: &str, is_ready: &str) -> Pod {
        let text = include_str!("../../manifests/controller/controller.yaml");
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
        let found =
            controller(&[controlling_pod("a", "True"), controlling_pod("b", "False")]).expect("a controller");
        assert_eq!((found.pods, found.ready), (2, 1));
        assert_eq!(found.account, Account::parse("home/otel-webhook-controller").expect("valid"));
        let lease = ("otel-webhook".to_owned(), "otel-webhook-controller".to_owned());
        assert_eq!(found.lease, Ok(lease));
    }

    #[test]
    fn pods_of_other_controllers_and_terminating_ones_are_left_out() {
        let mut other = controlling_pod("a", "True");
        other.spec.as_mut().expect("a spec").containers[0].args = vec!["controller".to_owned()];
        let mut going = controlling_pod("b", "True");
        going.metadata.deletion_timestamp = Some(from_value(json!("2026-01-01T00:00:00Z")).expect("a time"));
        assert!(controller(&[other, going]).is_none());
    }

    #[test]
    fn the_flags_of_restarts_are_those_of_the_pod() {
        let mut restarting = controlling_pod("a", "True");
        let args = &mut restarting.spec.as_mut().expect("a spec").containers[0].args;
        args.extend(["--restarts", "--restart-at-once=7"].map(str::to_owned));
        let found = controller(&[restarting]).expect("a controller").restarts.expect("readable");
        let found = found.expect("it restarts workloads");
        assert_eq!((found.pace.at_once, found.pace.per_minute), (7, 10));
        assert_eq!([&*found.namespace, &found.config_map], ["otel-webhook", "otel-webhook-restarts"]);
        let without = controller(&[controlling_pod("a", "True")]).expect("a controller").restarts;
        assert!(without.expect("readable").is_none());
    }

    #[test]
    fn it_watches_all_namespaces_or_some() {
        let mut scoped = controlling_pod("a", "True");
        let args = &mut scoped.spec.as_mut().expect("a spec").containers[0].args;
        args.push("--namespaces=shop,billing".to_owned());
        assert!(controller(&[scoped]).expect("a controller").is_scoped);
        assert!(!controller(&[controlling_pod("a", "True")]).expect("a controller").is_scoped);
    }

    #[test]
    fn flags_that_cannot_be_read_leave_the_rest() {
        let mut future = controlling_pod("a", "True");
        future.spec.as_mut().expect("a spec").containers[0].args.push("--from-the-future".to_owned());
        let found = controller(&[future]).expect("a controller");
        assert!(found.lease.expect_err("unknown").contains("--from-the-future"));
    }
}
