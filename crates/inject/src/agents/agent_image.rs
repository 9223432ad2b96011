//! An image of an agent: the command that copies from it, or the volume with it.

use std::borrow::Cow;

use serde_json::json;

use crate::{edit::NewVolume, injection::Injection, note::Note};

/// An image whose content a target gets.
pub struct AgentImage<'p> {
    /// Name of the init container, or of the volume.
    pub name: Cow<'p, str>,
    /// The image.
    pub image: &'p str,
    /// What the init container copies.
    pub content: Content<'p>,
    /// The folder that is mounted, if not the whole image.
    pub sub_path: Option<&'p str>,
}

impl<'p> AgentImage<'p> {
    /// Whether `cp` of the image is known to have the option `-f`: that of the operator's images has, and agents of
    /// `spec.agents` require it. Others may know the operator's command alone (D40).
    fn knows_force(&self, injection: &Injection<'_, '_>) -> bool {
        let defaults = injection.plan.language.defaults;
        injection.prepared().generic.is_some() || defaults.is_some_and(|one| one.is_name_of(self.image))
    }

    /// The command of the init container. After a restart of the node it runs again, and finds what it copied
    /// before: only `-f` replaces links and files that cannot be written.
    pub fn command(&self, injection: &Injection<'_, '_>) -> Vec<Cow<'p, str>> {
        let is_forced = self.knows_force(injection);
        let (options, from, to) = match &self.content {
            Content::File { from, to } => (is_forced.then_some("-f"), from, to),
            Content::Folder { from, to } => (Some(if is_forced { "-rf" } else { "-r" }), from, to),
        };
        let options = options.map(Cow::Borrowed);
        [Some("cp".into()), options, Some(from.clone()), Some(to.clone())].into_iter().flatten().collect()
    }

    /// The warning about a folder that may have links, if its copy may not replace them.
    pub fn warning(&self, injection: &Injection<'_, '_>) -> Option<Note> {
        let is_folder = matches!(self.content, Content::Folder { .. });
        (is_folder && !self.knows_force(injection)).then(|| Note::CopyMayFailAgain {
            image: self.image.to_owned(),
            advice: "if its cp knows -f, give the repository the name of the operator's, such as \
                     autoinstrumentation-nodejs; image volumes copy nothing",
        })
    }

    /// The source of a volume with it.
    pub fn volume(&self, pull_policy: Option<Cow<'p, str>>) -> NewVolume<'p> {
        let mut source = json!({"reference": self.image});
        if let Some(policy) = pull_policy {
            source["pullPolicy"] = policy.into();
        }
        NewVolume::new(self.name.clone(), Cow::Owned(json!({"image": source})))
    }
}

/// What an init container copies.
pub enum Content<'p> {
    /// A file.
    File {
        /// Its path in the image.
        from: Cow<'p, str>,
        /// Its path in the init container.
        to: Cow<'p, str>,
    },
    /// The content of a folder.
    Folder {
        /// The folder in the image, followed by `/.`.
        from: Cow<'p, str>,
        /// The folder in the init container.
        to: Cow<'p, str>,
    },
}
