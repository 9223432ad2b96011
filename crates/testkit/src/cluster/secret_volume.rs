//! A certificate and its key on disk, as the kubelet mounts a Secret.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder whose files are links into `..data`, which is a link to a folder
/// with a date for a name, and is replaced by a rename.
pub struct SecretVolume {
    folder: TempDir,
    versions: u32,
}

impl SecretVolume {
    /// A folder with this pair.
    pub fn new(certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut volume = Self { folder, versions: 0 };
        volume.swap(certificate, key);
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), volume.path().join(file)).expect("a link");
        }
        volume
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path().join("tls.crt")
    }

    /// The path of the key.
    pub fn key(&self) -> PathBuf {
        self.path().join("tls.key")
    }

    /// Replaces both at once.
    pub fn swap(&mut self, certificate: &str, key: &str) {
        let old = fs::read_link(self.path().join("..data")).ok();
        self.versions += 1;
        let name = format!("..2026_01_01_00_00_{:02}.1", self.versions);
        let version = self.path().join(&name);
        fs::create_dir(&version).expect("a folder");
        fs::write(version.join("tls.crt"), certificate).expect("a certificate");
        fs::write(version.join("tls.key"), key).expect("a key");
        let next = self.path().join("..data_tmp");
        symlink(&name, &next).expect("a link");
        fs::rename(&next, self.path().join("..data")).expect("a swap");
        if let Some(old) = old {
            fs::remove_dir_all(self.path().join(old)).expect("the old folder to go");
        }
    }
}
