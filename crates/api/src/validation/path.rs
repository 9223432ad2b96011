//! Paths of fields, formatted only for messages.

use std::fmt;

/// The path of a field, each part with a reference to its parent.
#[derive(Clone, Copy, Debug)]
pub enum Path<'p> {
    /// The root, such as `spec`.
    Root(&'p str),
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An item of a list.
    Item(&'p Self, usize),
}

impl<'p> Path<'p> {
    /// The path of a member.
    pub fn member(&'p self, name: &'p str) -> Self {
        Path::Member(self, name)
    }

    /// The path of an item.
    pub fn item(&'p self, index: usize) -> Self {
        Path::Item(self, index)
    }

    /// The last name, and the one of its parent, without positions.
    pub fn last_names(&self) -> (&'p str, &'p str) {
        match self {
            Path::Root(name) => (name, ""),
            Path::Member(above, name) => (name, above.last_names().0),
            Path::Item(list, _) => list.last_names(),
        }
    }
}

impl fmt::Display for Path<'_> {
    /// Keys of maps that contain dots are in brackets, as the API server writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(name) => f.write_str(name),
            Path::Item(list, index) => write!(f, "{list}[{index}]"),
            Path::Member(above, name) => {
                let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                if is_plain {
                    write!(f, "{above}.{name}")
                } else {
                    // A line break in a key must not begin a new line of the log.
                    write!(f, "{above}[{}]", name.escape_debug())
                }
            }
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_the_api_server_writes_it() {
        let root = Path::Root("spec");
        let list = root.member("env");
        let item = list.item(3);
        assert_eq!(item.member("value_from").to_string(), "spec.env[3].value_from");
        assert_eq!(root.member("example.com/gpu").to_string(), "spec[example.com/gpu]");
        assert_eq!(root.member("a\nb").to_string(), r"spec[a\nb]");
        assert_eq!(item.last_names(), ("env", "spec"));
    }
}
