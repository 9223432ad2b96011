//! The input of `inject`, `explain` and `validate`: streams of documents, and the objects that decisions
//! depend on.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;

use super::{
    completions,
    flags::{InjectionFlags, KUBERNETES},
    output::Failure,
    workload,
};
use otel_webhook_inject::{
    Outcome, Settings, catalogue::Catalogue, mistakes::Mistake, nearly, template::Around,
};
use otel_webhook_store::{
    Snapshot, dir,
    manifest::{self, Document},
};

/// Flags of the input files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct FileFlags {
    /// File of YAML or JSON documents, directory of such files, or "-" for standard input; may be repeated
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", required = true)]
    filename: Vec<String>,

    /// Read the subdirectories of directories, too
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
}

/// Flags of the input files, and of the objects that decisions depend on.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct StreamFlags {
    /// The input files.
    #[command(flatten)]
    pub files: FileFlags,

    /// Namespace of documents that specify none, by default "default"; it is not written to the documents
    #[arg(short, long, value_name = "NAMESPACE", add = completions::namespaces())]
    pub namespace: Option<String>,

    /// Directory of YAML and JSON files with further objects of the cluster: Instrumentations, Namespaces,
    /// LimitRanges, ResourceQuotas, ServiceAccounts, ReplicaSets and Jobs
    #[arg(long, env = "OTEL_WEBHOOK_SOURCE", value_name = "DIR", value_parser = directory)]
    pub source: Option<PathBuf>,
}

impl StreamFlags {
    /// Returns the namespace of documents that specify none.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// Streams that were read completely. Documents borrow from them.
pub struct Streams(Vec<Stream>);

/// The text of a stream, and its name for messages.
struct Stream {
    name: String,
    text: String,
}

/// The objects and settings that decisions depend on.
pub struct Inputs {
    snapshot: Arc<Snapshot>,
    settings: Settings,
    namespace: String,
}

/// The result for one workload of a document.
pub struct Review {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The result of injection, or why the pod cannot be read.
    pub outcome: Result<Outcome, String>,
    /// Annotations and labels that have no effect.
    pub mistakes: Vec<Mistake>,
    /// Paths of the pod's own annotations that opt in, by language.
    pub fields: BTreeMap<&'static str, String>,
}

impl FileFlags {
    /// Returns the flags for one file.
    pub fn one(file: &str) -> Self {
        Self { filename: vec![file.to_owned()], recursive: false }
    }

    /// Reads all streams completely.
    ///
    /// # Errors
    /// If one of them cannot be read or is not UTF-8, or a directory has no files to read.
    pub fn read(&self) -> Result<Streams, Failure> {
        let mut streams = Vec::new();
        for file in &self.filename {
            let path = Path::new(file);
            if file == "-" || !path.is_dir() {
                streams.push(Stream::read(file)?);
                continue;
            }
            let files = dir::files(path, self.recursive).map_err(Failure::unreadable)?;
            if files.is_empty() {
                let more = if self.recursive { "" } else { "; --recursive reads its subdirectories" };
                let message = format!("{file}: the directory has no files *.yaml, *.yml or *.json{more}");
                return Err(Failure::unreadable(message));
            }
            for file in files {
                streams.push(Stream::read(&file.to_string_lossy())?);
            }
        }
        Ok(Streams(streams))
    }
}

impl Streams {
    /// Returns the documents of all streams, in order.
    ///
    /// # Errors
    /// If one is not a stream of Kubernetes objects.
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
            Failure::unreadable(format!("{name}: line {line}: not valid UTF-8"))
        })?;
        Ok(Self { name: name.to_owned(), text })
    }
}

impl Inputs {
    /// Reads the directory, then the documents. If both contain an object, that of the documents is used.
    ///
    /// # Errors
    /// If the directory or one of its files cannot be used.
    pub fn new<'d, 't: 'd>(
        flags: &StreamFlags,
        injection: &InjectionFlags,
        documents: impl IntoIterator<Item = &'d Document<'t>>,
    ) -> Result<Self, Failure> {
        let mut writer = injection.writer(None);
        if let Some(source) = &flags.source {
            dir::read(source, flags.namespace(), &mut writer).map_err(Failure::unreadable)?;
        }
        for document in documents {
            writer.put_document(&document.value, flags.namespace());
        }
        writer.publish();
        let namespace = flags.namespace().to_owned();
        Ok(Self { snapshot: writer.store().snapshot(), settings: injection.settings(), namespace })
    }

    /// Returns the Instrumentations.
    pub fn catalogue(&self) -> &Catalogue {
        &self.snapshot.catalogue
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Injects into the pods and pod templates of a document, as in a cluster. Returns a result for each.
    pub fn inject(&self, document: &mut Document<'_>) -> Vec<Review> {
        let mut reviews = Vec::new();
        workload::each(&mut document.value, &mut |workload, mut mistakes| {
            let namespace = workload.namespace.as_deref().unwrap_or(&self.namespace).to_owned();
            let fields = workload::fields(&workload);
            let outcome = workload.outcome(&self.around(&namespace)).map_err(|error| error.to_string());
            let outcome = outcome.and_then(|outcome| {
                mistakes.extend(nearly::selected(&workload, &self.around(&namespace), &outcome.findings));
                let patch = &outcome.patch.operations();
                json_patch::patch(workload.pod, patch).map_err(|error| error.to_string())?;
                Ok(outcome)
            });
            reviews.push(Review {
                kind: workload.kind,
                namespace,
                name: workload.name,
                outcome,
                mistakes,
                fields,
            });
        });
        reviews
    }

    /// Returns what decisions about the workloads of a namespace depend on.
    pub fn around<'w>(&'w self, namespace: &'w str) -> Around<'w> {
        let Self { snapshot, settings, .. } = self;
        Around { namespace, catalogue: &snapshot.catalogue, settings, owners: &snapshot.owners }
    }
}

impl Review {
    /// Returns whether the pod was changed.
    pub fn is_changed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| !outcome.patch.is_empty())
    }

    /// Returns the workload as `Kind/name`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// Parses a directory. Rejects the value `kubernetes`, which the environment may have for the server.
fn directory(text: &str) -> Result<PathBuf, String> {
    if text == KUBERNETES {
        return Err(format!(
            "\"{KUBERNETES}\" is valid for `serve` only, for which OTEL_WEBHOOK_SOURCE may be set; expected a \
             directory (\"./{KUBERNETES}\" if it has this name)"
        ));
    }
    Ok(text.into())
}
