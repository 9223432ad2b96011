//! What `inject`, `explain` and `validate` share: the streams they read, and what is known
//! from them when the pods are looked at.

use std::{io::Read, path::PathBuf, sync::Arc};

use clap::Args;

use super::{
    failure::Failure,
    flags::{InjectionFlags, KUBERNETES},
    workload,
};
use crate::{
    manifest::{self, Document},
    store::{Snapshot, Writer, dir},
};
use otel_webhook_api::sizes::AgentSizes;
use otel_webhook_inject::{Outcome, Settings, catalogue::Catalogue, template::Around};

/// Where the documents come from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct FileFlags {
    /// Stream of YAML or JSON documents; "-" is standard input; may be given several times
    #[arg(short, long = "filename", value_name = "FILE|-", required = true)]
    filename: Vec<String>,
}

/// The same, and what is known beside the documents.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct StreamFlags {
    /// The documents.
    #[command(flatten)]
    pub files: FileFlags,

    /// Namespace of documents that name none; it is never written into a document
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    pub namespace: String,

    /// Directory of YAML and JSON files with objects that are known as well: Instrumentations, Namespaces,
    /// LimitRanges, ResourceQuotas, ServiceAccounts, ReplicaSets and Jobs
    #[arg(long, env = "OTEL_WEBHOOK_SOURCE", value_name = "DIR", value_parser = directory)]
    pub source: Option<PathBuf>,
}

/// Streams that were read to their ends; their documents borrow from them.
pub struct Streams(Vec<Stream>);

/// The text of a stream, and its name for messages.
struct Stream {
    name: String,
    text: String,
}

/// What is known when a pod is looked at.
pub struct World {
    snapshot: Arc<Snapshot>,
    settings: Settings,
    namespace: String,
}

/// What came of one workload of a document.
pub struct Review {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What came of it, or why its pod cannot be read.
    pub outcome: Result<Outcome, String>,
}

impl FileFlags {
    /// Reads all streams to their ends.
    ///
    /// # Errors
    /// When one of them cannot be read or is no text.
    pub fn read(&self) -> Result<Streams, Failure> {
        self.filename.iter().map(|file| Stream::read(file)).collect::<Result<_, _>>().map(Streams)
    }
}

impl Streams {
    /// The documents of all streams, in their order.
    ///
    /// # Errors
    /// When one is not a stream of Kubernetes objects.
    pub fn documents(&self) -> Result<Vec<Document<'_>>, Failure> {
        let mut documents = Vec::new();
        for Stream { name, text } in &self.0 {
            documents.extend(manifest::read(text, name).map_err(Failure::unreadable)?);
        }
        Ok(documents)
    }
}

impl Stream {
    fn read(file: &str) -> Result<Self, Failure> {
        let name = if file == "-" { "standard input" } else { file };
        let mut bytes = Vec::new();
        let read = if file == "-" {
            std::io::stdin().lock().read_to_end(&mut bytes)
        } else {
            std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut bytes))
        };
        read.map_err(|error| Failure::unreadable(format!("{name}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            let line = good.matches('\n').count() + 1;
            Failure::unreadable(format!("{name}: line {line}: this is not text in UTF-8"))
        })?;
        Ok(Self { name: name.to_owned(), text })
    }
}

impl World {
    /// Takes in everything there is: the directory first, then the documents,
    /// which count where both have an object.
    ///
    /// # Errors
    /// When the directory or a file of it cannot be used.
    pub fn new(
        flags: &StreamFlags,
        injection: &InjectionFlags,
        documents: &[Document<'_>],
    ) -> Result<Self, Failure> {
        let mut writer = Writer::new(injection.images());
        if let Some(source) = &flags.source {
            dir::read(source, &flags.namespace, &mut writer).map_err(Failure::unreadable)?;
        }
        for document in documents {
            writer.put_document(&document.value, &flags.namespace);
        }
        writer.publish();
        let namespace = flags.namespace.clone();
        Ok(Self { snapshot: writer.store().snapshot(), settings: injection.settings(), namespace })
    }

    /// The Instrumentations that are known.
    pub fn catalogue(&self) -> &Catalogue {
        &self.snapshot.catalogue
    }

    /// How much room agents take.
    pub fn sizes(&self) -> &AgentSizes {
        &self.settings.sizes
    }

    /// Injects the pods and pod templates of a document, as a cluster would,
    /// and says what came of each.
    pub fn inject(&self, document: &mut Document<'_>) -> Vec<Review> {
        let mut reviews = Vec::new();
        workload::each(&mut document.value, &mut |workload| {
            let namespace = workload.namespace.as_deref().unwrap_or(&self.namespace).to_owned();
            let outcome = workload.outcome(&self.around(&namespace)).map_err(|error| error.to_string());
            let outcome = outcome.and_then(|outcome| {
                let patch = &outcome.patch.operations();
                json_patch::patch(workload.pod, patch).map_err(|error| error.to_string())?;
                Ok(outcome)
            });
            reviews.push(Review { kind: workload.kind, namespace, name: workload.name, outcome });
        });
        reviews
    }

    /// What is known around the workloads of a namespace.
    pub fn around<'w>(&'w self, namespace: &'w str) -> Around<'w> {
        let Self { snapshot, settings, .. } = self;
        Around { namespace, catalogue: &snapshot.catalogue, settings, owners: &snapshot.owners }
    }
}

impl Review {
    /// Whether the pod was changed.
    pub fn is_changed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| !outcome.patch.is_empty())
    }

    /// The workload as people call it.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// A directory. The server's other source, set in the environment for it, is no
/// directory of that name by accident.
fn directory(text: &str) -> Result<PathBuf, String> {
    if text == KUBERNETES {
        return Err(format!(
            "\"{KUBERNETES}\" is a source of `serve` only, from which the environment may have it \
             (OTEL_WEBHOOK_SOURCE); give a directory here, \"./{KUBERNETES}\" if it is called that"
        ));
    }
    Ok(text.into())
}

/// A sentence as one line, whatever the names in it hold.
pub fn one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}
