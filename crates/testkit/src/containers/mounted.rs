//! Volumes of images, of which podman 4.3 plays none: `podman image mount` makes the folder, and the pod mounts it
//! read-only, as with a container runtime. It has no `subPath`, so only volumes that are mounted whole are played.

use serde_json::{Value, json};

use super::podman::{both, podman};

/// The images that are mounted until this is dropped.
pub struct Images(Vec<String>);

impl Images {
    /// Replaces the volumes of images in a pod's specification by the folders of the mounted images.
    pub fn mount(spec: &mut Value) -> Self {
        let mut mounted = Self(Vec::new());
        for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
            let Some(image) = volume["image"]["reference"].as_str().map(str::to_owned) else { continue };
            let output = podman(&["image", "mount", &image]);
            assert!(output.status.success(), "{}", both(&output));
            let path = String::from_utf8(output.stdout).expect("a path");
            mounted.0.push(image);
            *volume =
                json!({"name": volume["name"], "hostPath": {"path": path.trim_end(), "type": "Directory"}});
        }
        mounted
    }
}

impl Drop for Images {
    /// Never panics: it also runs while a test that failed is unwinding.
    fn drop(&mut self) {
        for image in &self.0 {
            let output = podman(&["image", "unmount", image]);
            if !output.status.success() {
                eprintln!("{image} stays mounted: {}", both(&output));
            }
        }
    }
}
