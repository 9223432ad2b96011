//! What can be wrong with an annotation or a label.

/// What is wrong with an annotation or a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The annotation has the prefix, but nothing reads it.
    UnknownAnnotation,
    /// Only Instrumentations have this annotation.
    InstrumentationsOnly,
    /// Only namespaces have this annotation.
    NamespacesOnly,
    /// The annotation that pauses injection has a value that pauses nothing.
    PausedUnclear,
    /// The annotation of a namespace names no default image.
    DefaultImageInvalid,
    /// The annotation does not have the prefix.
    WrongPrefix,
    /// The key is that of a label.
    IsLabel,
    /// The value is not a string.
    NotAString,
    /// The annotation is on the workload and not in its pod template.
    OnWorkload,
}

impl Fault {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnknownAnnotation => "unknown-annotation",
            Self::InstrumentationsOnly => "annotation-for-instrumentations",
            Self::NamespacesOnly => "annotation-for-namespaces",
            Self::PausedUnclear => "paused-unclear",
            Self::DefaultImageInvalid => "default-image-invalid",
            Self::WrongPrefix => "wrong-prefix",
            Self::IsLabel => "label-instead-of-annotation",
            Self::NotAString => "annotation-not-a-string",
            Self::OnWorkload => "annotation-on-workload",
        }
    }
}
