//! The common code of Apache HTTPD and nginx: their agent is a module of
//! the server, so what changes is the server's configuration.
//!
//! A clone of the application's container copies the configuration folder
//! into a volume, the agent's container adds the module to that copy, and the
//! application mounts the copy over the folder.

use std::borrow::Cow;

use serde_json::{Value, value::RawValue};

use super::module::Module;
use crate::{
    added::{NewContainer, NewInitContainer, NewMount, mounts, pull_policy, variables},
    compiled::Prepared,
    container::{check_security_context, check_user, copied_mounts, init_resources, security_context},
    delivery,
    edit::{NewVolume, Place, container_at, is_empty_dir, own_env, unreadable},
    env::{Entry, Env, SetBy},
    injection::Injection,
    json,
    language::WEB_SERVER_CLONE,
    note::Note,
    pod::Container,
    reason::Reason,
    required_nodes,
    storage::{self, Room},
    target::{self, Own, SearchPath},
};

/// What differs between the web servers.
pub struct WebServer {
    /// Name of the agent's init container.
    pub attach: &'static str,
    /// Volume of the copied configuration.
    pub conf_volume: &'static str,
    /// Volume of the agent.
    pub agent_volume: &'static str,
    /// The sources of the two volumes.
    pub sources: for<'s> fn(&'s Prepared) -> [Cow<'s, Value>; 2],
    /// The location of the configuration.
    pub location: fn(&Prepared) -> Result<Location, Reason>,
    /// The command of the clone.
    pub copy: fn(&Location) -> Run,
    /// Whether that command replaces links that it copied before, with any `cp`.
    pub replaces_links: bool,
    /// The script of the agent's container.
    pub script: &'static str,
    /// The part of the location that is passed to the script.
    pub script_argument: fn(&Location) -> &str,
    /// The variable with the module's configuration.
    pub conf_variable: &'static str,
    /// The variable with the pod's name.
    pub instance_variable: &'static str,
    /// The module.
    pub module: Module,
    /// The search path that the first target needs, if any.
    pub search_path: Option<SearchPath>,
    /// Whether the init containers have the security context of the last target, instead of the first.
    pub secured_as_last: bool,
}

/// A folder and the file in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Location {
    /// The configuration's folder.
    pub folder: String,
    /// Name of its main file.
    pub file: String,
}

/// The mount path of the agent, in its init container and in the application.
pub const AGENT_FOLDER: &str = "/opt/opentelemetry-webserver/agent";

/// The mount path of the copied configuration in both init containers.
pub const CONF_FOLDER: &str = "/opt/opentelemetry-webserver/source-conf";

/// The argument `$0` of a script.
const SCRIPT_NAME: &str = "--";

/// The pod's name as the source of a variable.
const POD_NAME: &str = "metadata.name";

/// Injects the module into the first suitable target, and the variables into
/// the others.
pub fn inject(injection: &mut Injection<'_, '_>, server: &WebServer) {
    let (location, room) = match prepare(injection, server) {
        Ok(ready) => ready,
        Err(reason) => return injection.report_all(reason),
    };
    let mut conf = String::new();
    let injected = injection.each_target(|injection, place, not_first| {
        if server.secured_as_last || !not_first {
            let [_, agent] = (server.sources)(injection.prepared());
            check_user(injection, place, &agent)?;
        }
        if !not_first {
            conf = server.module.conf(injection, place)?;
        }
        inject_target(injection, server, &location, &room, place, not_first)
    });
    if let (Some(&first), Some(&last)) = (injected.first(), injected.last()) {
        let secured_as = if server.secured_as_last { last } else { first };
        let before = injection.edit.init_place(first);
        let resources = init_resources(injection, first);
        let site = Site { server, location: &location, conf, first, secured_as, resources };
        let containers = [site.clone_container(injection), site.attach_container(injection)];
        for container in containers {
            injection.edit.add_init_container(NewInitContainer { before, container });
        }
        storage::warn_of_volume(injection, &room);
        let chosen = delivery::choose(injection);
        let links = warn_of_links(injection, server, &location.folder, first);
        let [_, agent] = (server.sources)(injection.prepared());
        let user = check_user(injection, secured_as, &agent).ok().flatten();
        for note in chosen.notes.into_iter().chain(links).chain(user) {
            injection.note_injected(note);
        }
    }
}

fn prepare(injection: &Injection<'_, '_>, server: &WebServer) -> Result<(Location, Room), Reason> {
    let location = (server.location)(injection.prepared())?;
    check_architecture(injection)?;
    injection.check_security_context()?;
    let [conf, agent] = (server.sources)(injection.prepared());
    injection.check_claims(&[&conf, &agent])?;
    // A pod can have only one clone, and so only one web server (D17).
    injection.check_names(&[server.conf_volume, server.agent_volume], [WEB_SERVER_CLONE, server.attach])?;
    let room = storage::check(injection, !is_empty_dir(&agent))?;
    Ok((location, room))
}

/// Checks that the pod may run on a node for which the module has a build: its init container would not start.
fn check_architecture(injection: &Injection<'_, '_>) -> Result<(), Reason> {
    let image = injection.image();
    let lacks = injection.plan.language.defaults.is_some_and(|defaults| defaults.lacks_arm64(image));
    if lacks && required_nodes::is_arm64_only(&injection.facts.pod.spec) {
        return Err(Reason::ModuleLacksArm64 { image: image.to_owned() });
    }
    Ok(())
}

/// The warning about links in the configuration: a mounted ConfigMap is made of them. The clone runs `cp` of the
/// application's image, and the operator's command (D40).
fn warn_of_links(
    injection: &mut Injection<'_, '_>,
    server: &WebServer,
    folder: &str,
    target: Place,
) -> Option<Note> {
    let mounts = &injection.target(target).ok()?.mounts.own;
    let is_in = |path: &str| {
        let rest = path.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let has_links = mounts.iter().any(|mount| mount.sub_path.is_empty() && is_in(&mount.mount_path));
    let image = &container_at(injection.facts.pod, target).image;
    (has_links && !server.replaces_links).then(|| Note::CopyMayFailAgain {
        image: image.to_string(),
        advice: "mount single files of the configuration by subPath",
    })
}

fn inject_target(
    injection: &mut Injection<'_, '_>,
    server: &WebServer,
    location: &Location,
    room: &Room,
    place: Place,
    not_first: bool,
) -> Result<Vec<Note>, Reason> {
    let search_path = server.search_path.as_ref().filter(|_| !not_first);
    let extended: Vec<_> = search_path.iter().map(|path| path.name).collect();
    target::check(injection, place, &extended)?;
    check_security_context(injection, place)?;
    if !not_first {
        check_lists(container_at(injection.facts.pod, place))?;
        mount(injection, server, location, room, place)?;
    }
    target::instrument(injection, place, &Own { search_path, ..Own::NOTHING })
}

/// Whether the lists that the clone copies can be read.
fn check_lists(container: &Container<'_>) -> Result<(), Reason> {
    own_env(container)?;
    let lists = [container.env, container.env_from, container.volume_mounts];
    lists.into_iter().try_for_each(|list| items(container, list).map(drop))
}

/// Replaces the configuration by its copy.
fn mount(
    injection: &mut Injection<'_, '_>,
    server: &WebServer,
    location: &Location,
    room: &Room,
    place: Place,
) -> Result<(), Reason> {
    let prepared = injection.prepared();
    let at = injection.edit.open(place)?;
    let mounts = &mut injection.edit.containers[at].mounts;
    target::check_path(mounts, CONF_FOLDER)?;
    // A mount in the folder would hide the copy. The clone has the mount, so its
    // content is in the copy.
    let hides = mounts.own.iter().position(|mount| mount.mount_path.contains(&location.folder));
    mounts.removed = hides;
    let ours = [(server.agent_volume, AGENT_FOLDER), (server.conf_volume, &location.folder)];
    let taken = ours.iter().try_for_each(|(_, path)| target::check_path(mounts, path));
    if taken.is_err() {
        mounts.removed = None;
        return taken;
    }
    for (volume, path) in ours {
        mounts.add(NewMount::new(volume, path.to_owned()));
    }
    let [conf, agent] = (server.sources)(prepared);
    // The configuration is small enough for the reserve.
    injection.edit.volumes.add(NewVolume::new(server.conf_volume, conf));
    injection.edit.volumes.add(NewVolume::new(server.agent_volume, agent).holding(room.counted()));
    Ok(())
}

/// The input for the two init containers.
struct Site<'s, 'p> {
    server: &'s WebServer,
    location: &'s Location,
    /// The module's configuration.
    conf: String,
    /// The target with the module.
    first: Place,
    /// The target with their security context.
    secured_as: Place,
    /// Their resources.
    resources: Cow<'p, Value>,
}

impl<'p> Site<'_, 'p> {
    /// A copy of the application's original container, with the language's
    /// variables and the volume, and another command.
    fn clone_container(&self, injection: &Injection<'_, 'p>) -> NewContainer<'p> {
        let container = container_at(injection.facts.pod, self.first);
        let copies = |list| items(container, list).unwrap_or_default();
        let mut env = own_env(container).unwrap_or_default();
        env.set_defaults(&injection.prepared().env, SetBy::Language);
        if let Some(path) = self.server.search_path.as_ref().filter(|path| env.has(path.name)) {
            path.extend(&mut env);
        }
        let mount = NewMount::new(self.server.conf_volume, CONF_FOLDER);
        let security_context = security_context(injection, self.secured_as);
        let own = copied_mounts(copies(container.volume_mounts), security_context.as_deref());
        let Run { command, args } = (self.server.copy)(self.location);
        NewContainer {
            command,
            args,
            env: variables(env, &copies(container.env)),
            env_from: copies(container.env_from),
            volume_mounts: mounts(own, [mount]),
            image_pull_policy: pull_policy(Some(&container.image_pull_policy)),
            security_context,
            ..NewContainer::new(WEB_SERVER_CLONE, &*container.image, self.resources.clone())
        }
    }

    fn attach_container(&self, injection: &Injection<'_, 'p>) -> NewContainer<'p> {
        let (prepared, instrumentation) = (injection.prepared(), injection.instrumentation());
        let mut env = Env::default();
        env.set_defaults(&prepared.env, SetBy::Language);
        env.set_defaults(&instrumentation.env, SetBy::Common);
        for address in target::addresses() {
            env.set_default(address);
        }
        env.set_default(Entry::new(self.server.conf_variable, self.conf.clone()));
        env.set_default(Entry::field(self.server.instance_variable, POD_NAME));
        let folders = [
            NewMount::new(self.server.agent_volume, AGENT_FOLDER),
            NewMount::new(self.server.conf_volume, CONF_FOLDER),
        ];
        let Run { command, args } =
            run_script(self.server.script, (self.server.script_argument)(self.location));
        NewContainer {
            command,
            args,
            env: variables(env, &[]),
            volume_mounts: mounts(Vec::new(), folders),
            image_pull_policy: pull_policy(instrumentation.image_pull_policy.as_deref()),
            security_context: security_context(injection, self.secured_as),
            ..NewContainer::new(self.server.attach, injection.image(), self.resources.clone())
        }
    }
}

/// The process of an added container.
pub struct Run {
    /// The command.
    pub command: Vec<Cow<'static, str>>,
    /// Its arguments.
    pub args: Vec<Cow<'static, str>>,
}

/// Runs a script with an argument, which the shell never treats as code.
pub fn run_script(script: &'static str, argument: &str) -> Run {
    Run {
        command: vec!["/bin/sh".into(), "-c".into()],
        args: vec![script.into(), SCRIPT_NAME.into(), argument.to_owned().into()],
    }
}

/// The entries of a list, with every field.
fn items(container: &Container<'_>, list: Option<&RawValue>) -> Result<Vec<Value>, Reason> {
    let items = Container::items(list).map_err(|error| unreadable(container, &error))?;
    let values =
        items.into_iter().map(|item| json::value_of(item).map_err(|error| unreadable(container, &error)));
    values.collect()
}
