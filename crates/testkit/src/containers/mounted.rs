//! Volumes of images, of which podman 4.3 plays none: `podman image mount` makes the folder, and the pod mounts it
//! read-only, as with a container runtime. It has no `subPath` either: the folder of it is mounted.

use serde_json::{Value, json};

use super::podman::{both, podman};

/// The images that are mounted until this is dropped.
pub struct Images(Vec<String>);

impl Images {
    /// Replaces the volumes of images in a pod's specification by the folders of the mounted images.
    pub fn mount(spec: &mut Value) -> Self {
        let mut mounted = Self(Vec::new());
        let mut mounted_names = Vec::new();
        let mut mounts: Vec<Value> = Vec::new();
        for container in spec["containers"].as_array().into_iter().flatten() {
            mounts.extend(container["volumeMounts"].as_array().into_iter().flatten().cloned());
        }
        let folder_of = |volume: &Value| {
            let mut folders =
                mounts.iter().filter(|mount| mount["name"] == *volume).map(|mount| &mount["subPath"]);
            let folder = folders.next().cloned().unwrap_or_default();
            assert!(folders.all(|other| *other == folder), "{volume} is mounted in parts");
            folder.as_str().map(|folder| format!("/{folder}")).unwrap_or_default()
        };
        for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
            let Some(image) = volume["image"]["reference"].as_str().map(str::to_owned) else { continue };
            let output = podman(&["image", "mount", &image]);
            assert!(output.status.success(), "{}", both(&output));
            let path = String::from_utf8(output.stdout).expect("a path");
            mounted.0.push(image);
            let name = volume["name"].take();
            mounted_names.push(name.clone());
            let path = [path.trim_end(), &folder_of(&name)].concat();
            *volume = json!({"name": name, "hostPath": {"path": path, "type": "Directory"}});
        }
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            for mount in container["volumeMounts"].as_array_mut().into_iter().flatten() {
                let is_image = mounted_names.contains(&mount["name"]);
                if let Some(fields) = mount.as_object_mut().filter(|_| is_image) {
                    fields.remove("subPath");
                }
            }
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
