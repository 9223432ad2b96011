//! How bad a result is.

/// The severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No problem.
    Ok,
    /// A problem, or something that could not be checked.
    Warning,
    /// Injection does not work.
    Failure,
}

impl Level {
    /// Returns the name in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}
