//! Flags that several subcommands have.

use std::{collections::BTreeMap, ops::RangeInclusive};

use clap::{ArgAction, Args};

use otel_webhook_api::{
    Delivery,
    defaults::{DefaultImages, LANGUAGES},
    quantity::Quantity,
    sizes::AgentSizes,
};
use otel_webhook_inject::{
    CrossNamespace, InitResources, PrivilegedInit, Settings, cluster::Version, helpers::Helpers,
    language::LanguageSet, reason::ObjectName, size::SizeLimits,
};
use otel_webhook_store::Writer;
use otel_webhook_telemetry::{LogFormat, Logging, init_logging, log_panics};

use super::output::Failure;

/// The value of `--source` for a cluster instead of a directory.
pub const KUBERNETES: &str = "kubernetes";

/// Flags of injection, the same for the server and for files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Injection")]
pub struct InjectionFlags {
    /// Languages that may be injected: a comma-separated list, or "all"
    #[arg(long, env = "OTEL_WEBHOOK_LANGUAGES", value_name = "LIST", value_parser = LanguageSet::parse,
        default_value_t = LanguageSet::default())]
    pub languages: LanguageSet,

    /// Mark pods that opted in with the label otel-webhook/injected (true, partial or false) and the annotations
    /// otel-webhook/status and, if there are problems, otel-webhook/message
    #[arg(long, env = "OTEL_WEBHOOK_STAMP", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub stamp: bool,

    /// List added volumes in the annotation cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes, so that
    /// they do not block scale-down; defaults to the value of --stamp
    #[arg(long, env = "OTEL_WEBHOOK_SAFE_TO_EVICT", value_name = "BOOL", action = ArgAction::Set)]
    pub safe_to_evict: Option<bool>,

    /// Resources of added init containers: with "neutral" they change neither the effective requests and limits
    /// of the pod nor its quality of service class; with "exact" they are those of the Instrumentation, as
    /// with the operator, unless a LimitRange or a ResourceQuota would then reject the pod
    #[arg(long, env = "OTEL_WEBHOOK_INIT_RESOURCES", value_enum, default_value_t = InitResources::Neutral)]
    pub init_resources: InitResources,

    /// Skip languages for which an Instrumentation that is stored as v1beta1 has no image, as the operator does; without
    /// it, the default image is used
    #[arg(long, env = "OTEL_WEBHOOK_REQUIRE_IMAGES")]
    require_images: bool,

    /// How agents get into pods if neither the annotation otel-webhook/delivery of the pod or its namespace nor the
    /// Instrumentation says: "initContainer" copies them, as the operator does; "imageVolume" mounts their images;
    /// "auto" mounts them where every node that the pod may run on can, and copies them elsewhere
    #[arg(long, env = "OTEL_WEBHOOK_DELIVERY", value_name = "DELIVERY", default_value_t = Delivery::InitContainer,
        value_parser = delivery)]
    pub delivery: Delivery,

    /// Watch nodes, for deliveries of "auto" of annotations and Instrumentations; implied by --delivery=auto. Needs the
    /// role of "otel-webhook rbac --watch-nodes". Without it, "auto" of those means init containers
    #[arg(long, env = "OTEL_WEBHOOK_WATCH_NODES")]
    watch_nodes: bool,

    /// Least version of API server and kubelets for which "auto" mounts images, 1.36 or 1.35: since 1.36 image volumes
    /// cannot be disabled; with their feature gate off, an API server of 1.35 drops the volumes, and pods run without
    /// agents
    #[arg(long, env = "OTEL_WEBHOOK_IMAGE_VOLUMES_FROM", value_name = "VERSION", default_value_t = Version::new(1, 36),
        value_parser = image_volumes_from)]
    image_volumes_from: Version,

    /// Instrumentation for pods that opt in with "true" in a namespace without Instrumentations
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_INSTRUMENTATION", value_name = "NAMESPACE/NAME",
        value_parser = object_name)]
    pub default_instrumentation: Option<ObjectName>,

    /// Whether pods may use Instrumentations of other namespaces: "allow" permits it, as the operator does;
    /// "granted" permits it if the annotation otel-webhook/allowed-namespaces of the Instrumentation lists the
    /// pod's namespace; "deny" forbids it. All namespaces may use the one of --default-instrumentation
    #[arg(long, env = "OTEL_WEBHOOK_CROSS_NAMESPACE", value_enum, default_value_t = CrossNamespace::Allow)]
    pub cross_namespace: CrossNamespace,

    /// Whether an Instrumentation may give its init containers more privileges (privileged, runAsUser 0,
    /// allowPrivilegeEscalation, added capabilities): "allow" permits it, as the operator does; "deny" skips the
    /// languages that would add such an init container. Go's sidecar, which is always privileged, is not affected
    #[arg(long, env = "OTEL_WEBHOOK_INIT_CONTAINERS_PRIVILEGED", value_enum, default_value_t = PrivilegedInit::Allow)]
    pub init_containers_privileged: PrivilegedInit,

    /// Containers to skip if no annotation names containers, in addition to the built-in list of proxies and
    /// helpers: comma-separated names, each may end with *; may be repeated
    #[arg(long, env = "OTEL_WEBHOOK_HELPER_CONTAINERS", value_name = "NAMES", value_delimiter = ',',
        value_parser = Helpers::parse_name)]
    helper_containers: Vec<String>,

    /// Ephemeral storage that an agent needs, such as java=40Mi, instead of the documented size; "extension" is
    /// the size of each extension of the Java agent; may be repeated
    #[arg(long, env = "OTEL_WEBHOOK_AGENT_SIZE", value_name = "LANGUAGE=SIZE", value_delimiter = ',',
        value_parser = AgentSizes::parse_one)]
    agent_size: Vec<(String, Quantity)>,

    /// Maximum size of an injected pod as JSON, at least 64Ki: a language that would make the pod larger is
    /// skipped; the default is the maximum of etcd (--max-request-bytes)
    #[arg(long, env = "OTEL_WEBHOOK_MAX_POD_SIZE", value_name = "SIZE", value_parser = max_pod_size,
        default_value = "1536Ki")]
    max_pod_size: usize,

    /// Maximum size of the file of spec.declarativeConfig, from 1Ki to 256Ki: agents with a larger one are skipped; each
    /// pod carries it in an annotation
    #[arg(long, env = "OTEL_WEBHOOK_MAX_DECLARATIVE_CONFIG_SIZE", value_name = "SIZE",
        value_parser = max_declarative_config_size, default_value = "16Ki")]
    max_declarative_config_size: usize,

    /// Maximum size of the JSON of an Instrumentation's spec; a larger one is not used
    #[arg(long, env = "OTEL_WEBHOOK_MAX_INSTRUMENTATION_SIZE", value_name = "SIZE", default_value = "128Ki",
        value_parser = SizeLimits::parse)]
    max_instrumentation_size: u64,

    /// Maximum memory of all Instrumentations in their compiled form. Namespaces share it equally, except that those
    /// that need less leave the rest to others; in a namespace that exceeds its share, the oldest are used
    #[arg(long, env = "OTEL_WEBHOOK_MAX_INSTRUMENTATIONS_TOTAL", value_name = "SIZE", default_value = "16Mi",
        value_parser = SizeLimits::parse)]
    max_instrumentations_total: u64,

    /// Namespaces with Instrumentations that are used before those of others, with up to half of
    /// --max-instrumentations-total: a comma-separated list; by default, the namespace of --default-instrumentation and
    /// that of the webhook
    #[arg(long, env = "OTEL_WEBHOOK_RESERVED_NAMESPACES", value_name = "NAMESPACES", value_delimiter = ',')]
    reserved_namespaces: Vec<String>,

    #[command(flatten)]
    images: ImageFlags,
}

/// Flags of the images of Instrumentations that specify none.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Images")]
pub struct ImageFlags {
    /// Default image of a language, instead of the built-in one; may be repeated. Instrumentations that were
    /// defaulted before use the new image as well, unless it is an older version in the same repository, or
    /// breaking changes lie between the versions (Java 2.0.0, .NET 1.3.0)
    #[arg(long, env = "OTEL_WEBHOOK_DEFAULT_IMAGE", value_name = "LANGUAGE=IMAGE", value_delimiter = ',',
        value_parser = language_image)]
    default_image: Vec<(String, String)>,

    /// Registry of the default images, instead of their own; Instrumentations that were defaulted before use it as
    /// with --default-image, and images that were set explicitly do not change
    #[arg(long, env = "OTEL_WEBHOOK_IMAGE_REGISTRY", value_name = "HOST[/PATH]", value_parser = registry)]
    image_registry: Option<String>,
}

/// Flags of the log, for the two servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogFlags {
    /// Format of log lines
    #[arg(long, env = "OTEL_WEBHOOK_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,

    /// Log level, or levels for each target, such as `info,otel_webhook=debug`
    #[arg(long, env = "OTEL_WEBHOOK_LOG", default_value = "info", value_name = "LEVEL")]
    log: String,
}

impl LogFlags {
    /// Begins to log, panics too.
    ///
    /// # Errors
    /// If the level cannot be read.
    pub fn begin(&self) -> Result<Logging, Failure> {
        let logging = init_logging(self.log_format, &self.log).map_err(Failure::unreadable)?;
        log_panics();
        Ok(logging)
    }
}

/// The label of teams, for `controller` and `status`.
#[derive(Debug, Args)]
pub struct TeamFlags {
    /// Label of namespaces that names the team of each, for the coverage of teams on the status page
    #[arg(long, env = "OTEL_WEBHOOK_TEAM_LABEL", value_name = "LABEL", help_heading = "Status page")]
    pub team_label: Option<String>,
}

impl InjectionFlags {
    /// Returns the settings of the crate that injects.
    pub fn settings(&self) -> Settings {
        Settings {
            languages: self.languages,
            stamp: self.stamp,
            // Without --stamp, a pod gets only what injection requires.
            safe_to_evict: self.safe_to_evict.unwrap_or(self.stamp),
            init_resources: self.init_resources,
            delivery: self.delivery,
            image_volumes_from: self.image_volumes_from,
            default_instrumentation: self.default_instrumentation.clone(),
            cross_namespace: self.cross_namespace,
            privileged_init: self.init_containers_privileged,
            helpers: Helpers::with(self.helper_containers.iter().cloned()),
            require_images: self.require_images,
            sizes: AgentSizes::with(self.agent_size.iter().cloned()),
            max_pod_size: self.max_pod_size,
            max_declarative_config_size: self.max_declarative_config_size,
            size_limits: SizeLimits {
                one: self.max_instrumentation_size,
                all: self.max_instrumentations_total,
            },
        }
    }

    /// Returns whether the webhook watches nodes.
    pub fn watches_nodes(&self) -> bool {
        self.watch_nodes || self.delivery == Delivery::Auto
    }

    /// Returns the images for Instrumentations that specify none.
    pub fn images(&self) -> DefaultImages {
        self.images.images()
    }

    /// Returns an empty store with these flags. `release` is the namespace of the release, if there is one.
    pub fn writer(&self, release: Option<&str>) -> Writer {
        let settings = self.settings();
        let default = settings.default_instrumentation.as_ref().map(|default| &*default.namespace);
        let reserved = match &self.reserved_namespaces[..] {
            [] => default.into_iter().chain(release).collect(),
            set => set.iter().map(String::as_str).collect::<Vec<_>>(),
        };
        Writer::new(self.images())
            .with_size_limits(settings.size_limits, reserved)
            .with_labels(default.is_some())
            .with_release(release)
    }
}

impl ImageFlags {
    /// Returns the images for Instrumentations that specify none.
    pub fn images(&self) -> DefaultImages {
        let overrides: BTreeMap<_, _> = self.default_image.iter().cloned().collect();
        DefaultImages { overrides, registry: self.image_registry.clone() }
    }
}

fn delivery(text: &str) -> Result<Delivery, String> {
    Delivery::parse(text).ok_or_else(|| format!("expected one of: {}", Delivery::NAMES.join(", ")))
}

fn image_volumes_from(text: &str) -> Result<Version, String> {
    match text {
        "1.35" => Ok(Version::new(1, 35)),
        "1.36" => Ok(Version::new(1, 36)),
        _ => Err("expected 1.36 or 1.35".to_owned()),
    }
}

/// Reads a namespace and a name.
///
/// # Errors
/// If the text is not of the form `namespace/name`.
pub fn object_name(text: &str) -> Result<ObjectName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ObjectName { namespace: namespace.into(), name: name.into() })
        }
        _ => Err("expected NAMESPACE/NAME, such as observability/default".to_owned()),
    }
}

fn language_image(text: &str) -> Result<(String, String), String> {
    let (language, image) =
        text.split_once('=').ok_or("expected LANGUAGE=IMAGE, such as java=registry/java:2")?;
    if image.is_empty() {
        return Err(format!(
            "\"{language}=\" has no image; expected LANGUAGE=IMAGE, such as java=registry/java:2"
        ));
    }
    let names = LANGUAGES.map(|language| language.language);
    if !names.contains(&language) {
        return Err(format!("\"{language}\" is not a language with an image; valid: {}", names.join(", ")));
    }
    Ok((language.to_owned(), image.to_owned()))
}

fn max_pod_size(text: &str) -> Result<usize, String> {
    /// Ordinary pods are smaller.
    const LEAST: usize = 64 * 1024;
    let size = Quantity::parse(text).and_then(Quantity::whole).filter(|size| *size >= LEAST);
    size.ok_or_else(|| {
        format!("\"{text}\" is not a size; expected a quantity of at least 64Ki, such as 1536Ki")
    })
}

fn max_declarative_config_size(text: &str) -> Result<usize, String> {
    /// More is not accepted as the annotations of a pod.
    const VALID: RangeInclusive<usize> = 1024..=256 * 1024;
    let size = Quantity::parse(text).and_then(Quantity::whole).filter(|size| VALID.contains(size));
    size.ok_or_else(|| {
        format!("\"{text}\" is not a size; expected a quantity from 1Ki to 256Ki, such as 16Ki")
    })
}

fn registry(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    if text.is_empty() || text.contains("://") || text.contains(char::is_whitespace) {
        return Err("expected HOST[/PATH], such as registry.example.com/mirror".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_images_are_parsed() {
        let given = language_image("apache-httpd=own:1").expect("valid");
        assert_eq!(given, ("apache-httpd".to_owned(), "own:1".to_owned()));
        for (text, problem) in [
            ("java", "expected LANGUAGE=IMAGE"),
            ("java=", "\"java=\" has no image"),
            ("sdk=own:1", "\"sdk\" is not a language with an image; valid: java, nodejs"),
        ] {
            let found = language_image(text).expect_err(text);
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn the_maximum_size_of_a_file_is_a_quantity() {
        assert_eq!(max_declarative_config_size("16Ki"), Ok(otel_webhook_inject::declarative::MAX_SIZE));
        for text in ["", "1000", "257Ki"] {
            let found = max_declarative_config_size(text).expect_err(text);
            let expected =
                format!("\"{text}\" is not a size; expected a quantity from 1Ki to 256Ki, such as 16Ki");
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_maximum_pod_size_is_a_quantity() {
        assert_eq!(max_pod_size("1536Ki"), Ok(otel_webhook_inject::growth::MAX_POD_SIZE));
        assert_eq!(max_pod_size("3M"), Ok(3_000_000));
        for text in ["", "large", "-1Mi", "63Ki", "1e99"] {
            let found = max_pod_size(text).expect_err(text);
            let expected =
                format!("\"{text}\" is not a size; expected a quantity of at least 64Ki, such as 1536Ki");
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn registries_are_a_host_with_an_optional_path() {
        assert_eq!(registry("mirror.example.com/otel/").as_deref(), Ok("mirror.example.com/otel"));
        for text in ["", "/", "https://mirror.example.com", "a b"] {
            assert!(registry(text).is_err(), "{text}");
        }
    }
}
