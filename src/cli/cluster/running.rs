//! The flags, the service account and the Secret of the webhook, read from its pods.
//!
//! The decisions of the webhook depend on its flags, so `check` and `explain` use the same flags.

mod controller;
mod flags;
mod pod;

use clap::{ArgMatches, FromArgMatches};

use super::account::{Account, ManagedNames};
use crate::cli::{flags::InjectionFlags, serve::ServeFlags};
use crate::subject::Subject;
pub use controller::{LABEL as CONTROLLER_LABEL, RestartFlags, RunningController, controller};
use flags::{given, parse, words};
pub use pod::Pod;
use pod::{Container, PodSpec};

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
        assert_eq!(settings.size_limits.one, 64 * 1024);
    }

    #[test]
    fn the_committed_deployment_is_parsed() {
        let text = include_str!("../../../manifests/managed/deployment.yaml");
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
}
