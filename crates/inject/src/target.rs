//! The common injection into every target, in any language (docs/reference/injection.md, "Environment variables").

mod merged;

use std::collections::HashSet;

use super::{
    compiled::Compiled,
    declarative::{self, Delivered},
    edit::{ContainerEdit, Mounts, Place, container_at},
    env::{Change, Entry, Env, SetBy},
    injection::Injection,
    note::Note,
    pod::EnvFrom,
    probes,
    reason::Reason,
    resource::{Attributes, Keys, NODE_NAME, POD_NAME, POD_UID},
    shown::Names,
};
use otel_webhook_api::defaults::Decoding;

pub use super::resource::RESOURCE_ATTRIBUTES;

use merged::ORIGINAL;

/// The variables with the addresses of the pod and its node.
pub fn addresses<'p>() -> [Entry<'p>; 2] {
    [Entry::field("OTEL_POD_IP", "status.podIP"), Entry::field("OTEL_NODE_IP", "status.hostIP")]
}

/// Checks that a target can get the common variables, and that its variables can be extended.
///
/// # Errors
/// The reason; then nothing was changed.
pub fn check(injection: &mut Injection<'_, '_>, place: Place, extended: &[&str]) -> Result<(), Reason> {
    let (prepared, instrumentation) = (injection.prepared(), injection.instrumentation());
    let settings = [&prepared.env[..], &instrumentation.env[..]];
    let exporter = &instrumentation.exporter;
    let target = injection.target(place)?;
    for name in extended.iter().chain(&[RESOURCE_ATTRIBUTES]) {
        target.env.check_extensible(name, &settings)?;
    }
    if let Some(ignored) = merged::ignored(prepared, instrumentation, &target.env) {
        merged::check(&target.env, ignored)?;
    }
    exporter.check_mounts(&target.mounts)?;
    if let Delivered::File { .. } = declarative::of(injection.plan)? {
        let path = declarative::mount_path(injection.name(place));
        check_path(&injection.target(place)?.mounts, &path)?;
    }
    Ok(())
}

/// A search path that a language extends.
///
/// It is before the common variables, unless one of those sets it.
#[derive(Debug)]
pub struct SearchPath {
    /// Name of the variable.
    pub name: &'static str,
    /// Returns the new value for the present one.
    pub join: fn(Option<&str>) -> String,
}

impl SearchPath {
    /// Extends the variable.
    pub fn extend(&self, env: &mut Env<'_>) {
        env.extend(self.name, self.join);
    }
}

/// Appends a path.
pub fn join_path(present: Option<&str>, path: &str) -> String {
    present.map_or_else(|| path.to_owned(), |present| [present, ":", path].concat())
}

/// The variables that a language adds to a target.
pub struct Own<'f, 'p> {
    /// The search path that it extends, if any.
    pub search_path: Option<&'f SearchPath>,
    /// Variables after those of every language, but before derived ones.
    pub last: &'f dyn Fn(&mut Env<'p>),
    /// Whether the variable of the node's name is added even if nothing refers to it (D29).
    pub node_name: bool,
}

impl Own<'_, '_> {
    /// Nothing.
    pub const NOTHING: Self = Self { search_path: None, last: &|_| (), node_name: false };
}

/// Adds all variables, and the mounts of certificates, to a target. Returns the notes about them.
///
/// # Errors
/// The reason for an unreadable container; then nothing was changed.
pub fn instrument<'p>(
    injection: &mut Injection<'_, 'p>,
    place: Place,
    own: &Own<'_, 'p>,
) -> Result<Vec<Note>, Reason> {
    let instrumentation = injection.instrumentation();
    let prepared = injection.prepared();
    let (facts, plan) = (injection.facts, injection.plan);
    let delivered = declarative::of(plan)?;
    let mut attributes = injection.attributes(place);
    attributes.is_encoded = plan.decoding() != Decoding::Never;
    let at = injection.edit.open(place)?;
    let edit = &mut *injection.edit;
    let ContainerEdit { env, mounts, attribute_keys, .. } = &mut edit.containers[at];
    let sources = container_at(facts.pod, place).sources().unwrap_or_default();
    let before = if sources.is_empty() { HashSet::new() } else { added_values(env).collect() };
    let ignored = merged::ignored(prepared, instrumentation, env);
    env.set_defaults(&prepared.env, SetBy::Language);
    if let (Some(ignored), Some(keys)) = (ignored, attribute_keys.as_mut()) {
        let added = merged::add(env, ignored, keys);
        keys.extend(added);
    }
    extend_and_add_common(instrumentation, env, own.search_path);
    let name = &*container_at(facts.pod, place).name;
    let file = declarative::Target { name, env, mounts, volumes: &mut edit.volumes };
    let (limit, annotation) = delivered.add(plan, file);
    (own.last)(env);
    let unheard = match delivered {
        Delivered::File { drops_probes: true, .. } => None,
        _ => probes::drop_by_variables(plan, container_at(facts.pod, place), env),
    };
    let present = own_keys(env);
    configure(instrumentation, env, &mut attributes, &present, own.node_name);
    attribute_keys.get_or_insert(present);
    instrumentation.exporter.mount(facts.pod, &mut edit.volumes, mounts);
    let added = added_values(env).filter(|name| !before.contains(name));
    let notes: Vec<_> =
        overridden(added, &sources).into_iter().chain(limit.map(Note::Declarative)).chain(unheard).collect();
    if let Some((key, text)) = annotation {
        edit.annotate(key, text);
    }
    Ok(notes.into_iter().chain(certificates(injection)).collect())
}

/// The variables that injection has added with a value.
fn added_values(env: &Env<'_>) -> impl Iterator<Item = String> {
    let added = env.entries().iter().filter(|entry| entry.origin.is_none() && entry.from.is_none());
    added.map(|entry| entry.name.to_string())
}

/// The note about added variables that `envFrom` may set, too. An entry of the container's own list overrides it with and
/// without the webhook.
fn overridden(added: impl Iterator<Item = String>, sources: &[EnvFrom<'_>]) -> Option<Note> {
    let can_set = |source: &EnvFrom<'_>, variable: &str| variable.starts_with(&*source.prefix);
    let added = added.filter(|variable| sources.iter().any(|source| can_set(source, variable)));
    let variables: Vec<String> = added.collect();
    let able = sources.iter().filter(|source| variables.iter().any(|variable| can_set(source, variable)));
    let sources = Names::of(able.map(name));
    (!variables.is_empty()).then(|| Note::MayBeSetByEnvFrom { variables: Names::of(variables), sources })
}

/// Extends a search path that only the common variables set at its
/// position among them, since it may refer to earlier ones (D14).
fn extend_and_add_common<'p>(
    instrumentation: &'p Compiled,
    env: &mut Env<'p>,
    search_path: Option<&SearchPath>,
) {
    let Some(path) = search_path else { return add_common(instrumentation, env) };
    let is_common = instrumentation.env.iter().any(|setting| setting.name == path.name);
    if is_common && !env.has(path.name) {
        add_common(instrumentation, env);
        path.extend(env);
    } else {
        path.extend(env);
        add_common(instrumentation, env);
    }
}

/// The keys of the present value of `OTEL_RESOURCE_ATTRIBUTES`.
pub fn own_keys(env: &Env<'_>) -> Keys {
    Keys::of(env.value(RESOURCE_ATTRIBUTES))
}

/// Adds the variables of every target, and the addresses at the beginning of the list.
///
/// They are always first (D13): the kubelet expands `$(OTEL_NODE_IP)` only
/// in later variables.
pub fn add_common<'p>(instrumentation: &'p Compiled, env: &mut Env<'p>) {
    env.set_defaults(&instrumentation.env, SetBy::Common);
    for address in addresses() {
        env.lead_with(address);
    }
}

/// Adds derived variables: the service's name, the exporter, propagators,
/// sampler and resource attributes; the node's name if it is unknown or required.
pub fn configure<'p>(
    instrumentation: &'p Compiled,
    env: &mut Env<'p>,
    attributes: &mut Attributes<'_>,
    present: &Keys,
    node_name: bool,
) {
    if attributes.names_service() {
        env.set_default(Entry::new("OTEL_SERVICE_NAME", attributes.service_name.clone()));
    }
    instrumentation.exporter.set(env);
    env.set_default(Entry::field(POD_NAME, "metadata.name"));
    if attributes.uid_open && !present.has("k8s.pod.uid") {
        env.set_default(Entry::field(POD_UID, "metadata.uid"));
    }
    if node_name || attributes.node_name_open && !present.has("k8s.node.name") {
        env.set_default(Entry::field(NODE_NAME, "spec.nodeName"));
    }
    if let Some(propagators) = &instrumentation.propagators {
        env.set_default(Entry::new("OTEL_PROPAGATORS", propagators.as_str()));
    }
    add_sampler(instrumentation, env);
    add_attributes(env, &attributes.missing_from(present));
}

/// The sampler is added only if neither it nor its argument is set.
fn add_sampler<'p>(instrumentation: &'p Compiled, env: &mut Env<'p>) {
    const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
    const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
    let Some((sampler, argument)) = &instrumentation.sampler else {
        return;
    };
    if env.has(SAMPLER) || env.has(ARGUMENT) {
        return;
    }
    env.set_default(Entry::new(SAMPLER, sampler.as_str()));
    if let Some(argument) = argument {
        env.set_default(Entry::new(ARGUMENT, argument.as_str()));
    }
}

/// Adds attributes to the present ones, and moves the variable to the
/// end: it refers to others by `$(NAME)`, which the kubelet expands
/// only for earlier variables.
fn add_attributes(env: &mut Env<'_>, missing: &str) {
    if missing.is_empty() {
        // Nothing was added for this language, but another one may have added
        // it, followed by variables of this one.
        let ours = |entry: &Entry<'_>| entry.origin.is_none() || entry.change != Change::None;
        if env.get(RESOURCE_ATTRIBUTES).is_some_and(ours) {
            env.move_last(RESOURCE_ATTRIBUTES);
        }
        return;
    }
    env.extend_last(RESOURCE_ATTRIBUTES, |present| {
        // The keys of a reference are unknown; it is last, so it takes precedence (D6), also
        // if another language added it.
        let (own, reference) = match present {
            Some(present) if present.ends_with(ORIGINAL) => present.split_at(present.len() - ORIGINAL.len()),
            present => (present.unwrap_or_default(), ""),
        };
        let comma = |after: bool| if after { "," } else { "" };
        let before = comma(!own.is_empty() && !own.ends_with(','));
        [own, before, missing, comma(!reference.is_empty()), reference].concat()
    });
}

/// Checks that nothing is mounted at the path of a target's mount.
///
/// # Errors
/// The path that is already used.
pub fn check_path(mounts: &Mounts<'_>, path: &str) -> Result<(), Reason> {
    if mounts.has_path(path) {
        return Err(Reason::taken(super::reason::Taken::MountPath, path));
    }
    Ok(())
}

/// The notes about the exporter's certificates.
pub fn certificates(injection: &Injection<'_, '_>) -> impl Iterator<Item = Note> {
    injection.instrumentation().exporter.objects().map(|object| Note::CertificateNotChecked { object })
}

fn name(source: &EnvFrom<'_>) -> String {
    match (&source.config_map_ref, &source.secret_ref) {
        (Some(map), _) => ["ConfigMap ", &map.name].concat(),
        (None, Some(secret)) => ["Secret ", &secret.name].concat(),
        (None, None) => "a source".to_owned(),
    }
}
