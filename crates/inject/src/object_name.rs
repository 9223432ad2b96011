//! The name of a namespaced object.

use std::fmt;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // For each injected pod, and twice as fast as `write!`.
        f.write_str(&self.namespace)?;
        f.write_str("/")?;
        f.write_str(&self.name)
    }
}
