//! The compiled form of an agent of `spec.agents` (docs/guides/generic-agent.md).

use crate::held::held;

/// What only an agent of `spec.agents` has.
#[derive(Debug, PartialEq)]
pub struct Generic {
    /// Its name.
    pub name: Box<str>,
    /// The name of its volume and its init container.
    pub container: String,
    /// Its folder in the image, without the first slash.
    pub folder: String,
    /// Where it is mounted.
    pub mount_path: String,
    /// The variables that it extends.
    pub extended: Vec<Extended>,
}

/// A variable that an agent extends.
#[derive(Debug, PartialEq)]
pub struct Extended {
    /// Its name.
    pub name: String,
    /// The agent's part of the value.
    pub value: String,
    /// Whether that part is the first one.
    pub is_first: bool,
    /// What separates it from the rest.
    pub separator: String,
}

held!(Generic: name, container, folder, mount_path, extended;);
held!(Extended: name, value, separator; is_first);

impl Extended {
    /// The value for the present one. An empty one is treated as not set.
    pub fn join(&self, present: Option<&str>) -> String {
        match present.filter(|present| !present.is_empty()) {
            None => self.value.clone(),
            Some(present) if self.is_first => [&self.value, &self.separator, present].concat(),
            Some(present) => [present, &self.separator, &self.value].concat(),
        }
    }
}
