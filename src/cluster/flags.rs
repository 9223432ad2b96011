//! Flags that select clusters, as for kubectl.

use std::path::PathBuf;

use clap::Args;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{
    completions,
    flags::{InjectionFlags, object_name},
};
use otel_webhook_inject::reason::ObjectName;

/// Flags of the cluster and the user.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterFlags {
    /// Path of the kubeconfig; defaults to $KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long, env = "OTEL_WEBHOOK_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig; defaults to the current context
    #[arg(long, env = "OTEL_WEBHOOK_CONTEXT", value_name = "NAME", add = completions::contexts())]
    context: Option<String>,
}

/// The same for several clusters.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClustersFlags {
    /// Path of the kubeconfig; defaults to $KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long, env = "OTEL_WEBHOOK_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Contexts of the kubeconfig, comma-separated; may be repeated; defaults to the current context
    #[arg(long, env = "OTEL_WEBHOOK_CONTEXT", value_name = "NAME", value_delimiter = ',',
        add = completions::contexts())]
    context: Vec<String>,
}

/// Flags of what is installed in the cluster, and of what is taken in its place.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct InstalledFlags {
    /// Name of the webhook configurations; may be repeated; by default, they are found by the names of their
    /// webhooks
    #[arg(long, env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION", value_name = "NAME", value_delimiter = ',')]
    pub webhook_configuration: Vec<String>,

    /// ConfigMap with the settings of the webhook, which the chart writes for users who may read neither the webhook
    /// configurations nor the pods of the webhook
    #[arg(long, env = "OTEL_WEBHOOK_SETTINGS", value_name = "NAMESPACE/NAME",
        default_value = "otel-webhook/otel-webhook-settings", value_parser = object_name)]
    pub settings: ObjectName,

    /// Use the injection flags of this command instead of those of the webhook's pods
    #[arg(long, env = "OTEL_WEBHOOK_OWN_FLAGS", help_heading = "Injection")]
    pub own_flags: bool,

    #[command(flatten)]
    pub injection: InjectionFlags,
}

impl ClustersFlags {
    /// Returns the flags of each cluster.
    pub fn each(&self) -> Vec<ClusterFlags> {
        let of = |context: Option<&String>| ClusterFlags {
            kubeconfig: self.kubeconfig.clone(),
            context: context.cloned(),
        };
        if self.context.is_empty() {
            return vec![of(None)];
        }
        self.context.iter().map(|context| of(Some(context))).collect()
    }
}

impl ClusterFlags {
    /// Returns the configuration of a client.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub async fn config(&self) -> Result<Config, String> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        if self.kubeconfig.is_some() {
            let config = self.read().map_err(|error| error.to_string())?;
            return Config::from_custom_kubeconfig(config, &options).await.map_err(|error| error.to_string());
        }
        if self.context.is_some() {
            return Config::from_kubeconfig(&options).await.map_err(|error| error.to_string());
        }
        Config::infer().await.map_err(|error| error.to_string())
    }

    /// Returns the name of the context, if there is a kubeconfig.
    pub fn name(&self) -> Option<String> {
        self.context.clone().or_else(|| self.read().ok()?.current_context)
    }

    fn read(&self) -> Result<Kubeconfig, KubeconfigError> {
        self.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from)
    }

    /// Adds the flags that select this cluster to a command of kubectl, for a shell. They come last, since kubectl
    /// takes none before the name of a plugin.
    pub fn complete(&self, command: &str) -> String {
        let file = self.kubeconfig.as_ref().map(|file| ("--kubeconfig", file.to_string_lossy().into_owned()));
        let context = self.context.clone().map(|name| ("--context", name));
        let flags = file.into_iter().chain(context);
        let flags = flags.map(|(flag, value)| format!(" {flag} {}", quoted(&value)));
        [command.to_owned()].into_iter().chain(flags).collect()
    }
}

/// Returns a word that a shell reads as this text.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_the_cluster_are_passed_on() {
        let of = |kubeconfig: Option<&str>, context: Option<&str>| {
            let context = context.map(str::to_owned);
            ClusterFlags { kubeconfig: kubeconfig.map(Into::into), context }.complete("kubectl argo rollouts")
        };
        assert_eq!(of(None, None), "kubectl argo rollouts");
        assert_eq!(of(Some("a/b.yaml"), None), "kubectl argo rollouts --kubeconfig a/b.yaml");
        assert_eq!(of(None, Some("it's; rm")), "kubectl argo rollouts --context 'it'\\''s; rm'");
    }

    #[test]
    fn each_context_is_a_cluster() {
        let contexts = |names: &[&str]| {
            let context = names.iter().map(|name| (*name).to_owned()).collect();
            let flags = ClustersFlags { kubeconfig: Some("c.yaml".into()), context };
            flags.each().iter().map(|one| one.complete("kubectl")).collect::<Vec<_>>()
        };
        assert_eq!(contexts(&[]), ["kubectl --kubeconfig c.yaml"]);
        let both = ["kubectl --kubeconfig c.yaml --context a", "kubectl --kubeconfig c.yaml --context b"];
        assert_eq!(contexts(&["a", "b"]), both);
    }
}
