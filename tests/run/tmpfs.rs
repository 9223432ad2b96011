//! Folders in memory that hold so much and no more.

use std::process::Command;

use tempfile::TempDir;

/// A tmpfs on a folder; both are gone when this is dropped.
pub struct Tmpfs {
    folder: TempDir,
}

impl Tmpfs {
    /// One of a size in mebibytes, as a quantity of Kubernetes.
    pub fn of(size: &str) -> Self {
        let mebibytes = size.strip_suffix("Mi").expect("a size in mebibytes");
        let folder = tempfile::tempdir().expect("a folder");
        let options = format!("size={mebibytes}m,mode=0777");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .output()
            .expect("mount can be started");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
        Self { folder }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.folder.path().to_str().expect("text")
    }

    /// How many bytes are left.
    pub fn left(&self) -> u64 {
        let said = Command::new("df")
            .args(["--output=avail", "-B1", self.path()])
            .output()
            .expect("df can be started");
        let text = String::from_utf8_lossy(&said.stdout);
        text.lines().last().and_then(|line| line.trim().parse().ok()).expect("a number of bytes")
    }
}

impl Drop for Tmpfs {
    /// Never panics: it also runs while a test that failed is unwinding. Containers that still
    /// have it keep it until they end.
    fn drop(&mut self) {
        let ended = Command::new("umount").arg("--lazy").arg(self.folder.path()).status();
        if !ended.is_ok_and(|status| status.success()) {
            eprintln!("{} is left mounted", self.folder.path().display());
        }
    }
}
