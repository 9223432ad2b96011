//! A directory that is reloaded when it changes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::files::{DEFAULT_NAMESPACE, SourceError, documents, files, read_file};
use crate::Writer;

/// The interval of checking the directory.
const PERIOD: Duration = Duration::from_secs(1);

/// Keeps a store up to date with a directory.
///
/// Files are compared by content: the symlinks of a mounted ConfigMap are replaced as a whole, which a watch of a file
/// would not notice.
#[derive(Debug)]
pub struct Follower {
    dir: PathBuf,
    writer: Writer,
    files: BTreeMap<PathBuf, Known>,
    /// The last logged failure to list the directory.
    complaint: Option<String>,
}

/// The last state of a file.
#[derive(Debug, Default)]
struct Known {
    /// The content of the file, or why it could not be read.
    seen: Option<Result<String, String>>,
    /// The objects of its last valid state.
    objects: Vec<Value>,
}

impl Follower {
    /// Reads the directory for the first time and publishes its objects.
    ///
    /// An invalid file is logged and skipped until it is valid.
    ///
    /// # Errors
    /// If the directory itself cannot be read.
    pub fn start(dir: PathBuf, writer: Writer) -> Result<Self, SourceError> {
        let paths = files(&dir, false)?;
        let mut follower = Self { dir, writer, files: BTreeMap::new(), complaint: None };
        follower.take(paths);
        follower.publish();
        Ok(follower)
    }

    /// Follows the directory, forever.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(PERIOD).await;
            let poll = tokio::task::spawn_blocking(move || {
                self.poll();
                self
            });
            match poll.await {
                Ok(follower) => self = follower,
                // The runtime is shutting down, or the reader panicked: the last snapshot stays published.
                Err(error) => return tracing::error!(%error, "stopped following the source directory"),
            }
        }
    }

    /// Checks the directory once. Returns whether anything in it has changed.
    pub fn poll(&mut self) -> bool {
        let paths = match files(&self.dir, false) {
            Ok(paths) => paths,
            Err(error) => {
                self.complain(error.to_string());
                return false;
            }
        };
        self.complaint = None;
        let changed = self.take(paths);
        if changed {
            self.publish();
        }
        changed
    }

    fn complain(&mut self, complaint: String) {
        if self.complaint.as_ref() != Some(&complaint) {
            tracing::error!(
                error = complaint,
                "cannot read the source directory; its last objects stay in use"
            );
            self.complaint = Some(complaint);
        }
    }

    /// Reads the files. Returns whether any object may have changed.
    fn take(&mut self, paths: Vec<PathBuf>) -> bool {
        let mut before = std::mem::take(&mut self.files);
        let mut changed = false;
        for path in paths {
            let mut known = before.remove(&path).unwrap_or_default();
            changed |= known.read(&path);
            self.files.insert(path, known);
        }
        changed || before.values().any(|gone| !gone.objects.is_empty())
    }

    fn publish(&mut self) {
        self.writer.forget_all();
        for object in self.files.values().flat_map(|file| &file.objects) {
            self.writer.put_document(object, DEFAULT_NAMESPACE);
        }
        self.writer.publish();
        tracing::info!(source = %self.dir.display(), files = self.files.len(), "read the source directory");
    }
}

impl Known {
    /// Reads the file. Returns whether its objects may have changed.
    fn read(&mut self, path: &Path) -> bool {
        let seen = read_file(path).map_err(|error| error.to_string());
        if self.seen.as_ref() == Some(&seen) {
            return false;
        }
        let read = seen.as_ref().map_err(Clone::clone).and_then(|text| {
            let documents = documents(path, text).map_err(|error| error.to_string())?;
            Ok(documents.into_iter().map(|document| document.value).collect())
        });
        self.seen = Some(seen);
        match read {
            Ok(objects) => {
                self.objects = objects;
                true
            }
            Err(error) => {
                tracing::error!(error, "cannot use a file; its last valid objects stay in use");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use otel_webhook_api::defaults::DefaultImages;

    const FIRST: &str = "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: {name: a}\n";

    fn known(store: &Store) -> Vec<String> {
        let snapshot = store.snapshot();
        let all = snapshot.catalogue.namespaces.values().flat_map(|namespace| &namespace.instrumentations);
        all.map(|stored| stored.name().to_string()).collect()
    }

    fn follow(dir: &Path) -> (Follower, Store) {
        let writer = Writer::new(DefaultImages::default());
        let store = writer.store();
        (Follower::start(dir.to_owned(), writer).unwrap(), store)
    }

    #[test]
    fn snapshots_are_published_only_after_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.yaml");
        std::fs::write(&path, FIRST).unwrap();
        let (mut follower, store) = follow(dir.path());
        assert_eq!(known(&store), ["default/a"]);
        assert!(!follower.poll());

        std::fs::write(&path, FIRST.replace("name: a", "name: b")).unwrap();
        assert!(follower.poll());
        assert_eq!(known(&store), ["default/b"]);

        std::fs::remove_file(&path).unwrap();
        assert!(follower.poll());
        assert_eq!(known(&store), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_becomes_invalid_keeps_its_last_valid_state() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), FIRST).unwrap();
        let (mut follower, store) = follow(dir.path());
        std::fs::write(dir.path().join("a.yaml"), "a: [").unwrap();
        assert!(!follower.poll());
        std::fs::write(dir.path().join("b.yml"), FIRST.replace("name: a", "name: b")).unwrap();
        assert!(follower.poll());
        assert_eq!(known(&store), ["default/a", "default/b"]);
    }

    #[test]
    fn a_file_that_becomes_too_large_keeps_its_last_valid_state() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.yaml");
        std::fs::write(&path, FIRST).unwrap();
        let (mut follower, store) = follow(dir.path());
        std::fs::write(&path, [FIRST, &"#".repeat(4 * 1024 * 1024)].concat()).unwrap();
        assert!(!follower.poll());
        let seen = follower.files[&path].seen.clone().unwrap().unwrap_err();
        assert!(
            seen.ends_with("the file has more than 4 MiB, which is the maximum; split it into several files"),
            "{seen}"
        );
        assert_eq!(known(&store), ["default/a"]);
    }

    #[test]
    fn a_file_that_is_invalid_at_startup_does_not_affect_others() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "kind: Instrumentation").unwrap();
        std::fs::write(dir.path().join("b.yaml"), FIRST).unwrap();
        let (_follower, store) = follow(dir.path());
        assert_eq!(known(&store), ["default/a"]);
    }

    #[test]
    fn a_deleted_directory_keeps_its_last_state() {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("source");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("a.yaml"), FIRST).unwrap();
        let (mut follower, store) = follow(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!follower.poll());
        assert_eq!(known(&store), ["default/a"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_files_of_a_mounted_config_map_are_read_once() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        for (folder, name) in [("..first", "a"), ("..second", "b")] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
            let text = FIRST.replace("name: a", &format!("name: {name}"));
            std::fs::write(dir.path().join(folder).join("x.yaml"), text).unwrap();
        }
        symlink("..first", dir.path().join("..data")).unwrap();
        symlink("..data/x.yaml", dir.path().join("x.yaml")).unwrap();
        let (mut follower, store) = follow(dir.path());
        assert_eq!(known(&store), ["default/a"]);

        symlink("..second", dir.path().join("..new")).unwrap();
        std::fs::rename(dir.path().join("..new"), dir.path().join("..data")).unwrap();
        assert!(follower.poll());
        assert_eq!(known(&store), ["default/b"]);
    }

    #[test]
    fn the_error_of_a_missing_directory_names_it() {
        let writer = Writer::new(DefaultImages::default());
        let error = Follower::start("/nowhere/at/all".into(), writer).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/at/all: "), "{error}");
    }
}
