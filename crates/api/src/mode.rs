//! How an agent sets a variable.

/// What happens to a variable that has a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It keeps its value.
    #[default]
    Set,
    /// The agent's value is added at the end.
    Append,
    /// The agent's value is added at the beginning.
    Prepend,
}

impl Mode {
    /// The valid names.
    pub const NAMES: [&str; 3] = ["set", "append", "prepend"];

    /// Reads a name; an absent one is that of the default.
    pub fn parse(name: Option<&str>) -> Option<Self> {
        match name {
            None | Some("set") => Some(Self::Set),
            Some("append") => Some(Self::Append),
            Some("prepend") => Some(Self::Prepend),
            Some(_) => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_mode() {
        for name in Mode::NAMES {
            assert_eq!(Mode::parse(Some(name)).map(Mode::name), Some(name));
        }
        assert_eq!((Mode::parse(None), Mode::parse(Some("Append"))), (Some(Mode::Set), None));
    }
}
