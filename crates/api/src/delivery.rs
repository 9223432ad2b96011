//! How an agent gets into a pod.

use std::fmt;

/// The annotation of a pod or a namespace that chooses the delivery. It overrides Instrumentations.
pub const DELIVERY_ANNOTATION: &str = "otel-webhook/delivery";

/// How an agent gets into a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// An init container copies it into a volume, as with the operator.
    #[default]
    InitContainer,
    /// Its image is mounted as a volume.
    ImageVolume,
    /// Its image is mounted where every node that the pod may run on can mount it, and copied elsewhere.
    Auto,
}

impl Delivery {
    /// The valid names.
    pub const NAMES: [&str; 3] = ["initContainer", "imageVolume", "auto"];

    const ALL: [Self; 3] = [Self::InitContainer, Self::ImageVolume, Self::Auto];

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_that_of_one_delivery() {
        let read = Delivery::NAMES.map(Delivery::parse);
        assert_eq!(read, Delivery::ALL.map(Some));
        assert_eq!(["", "Auto", "image-volume"].map(Delivery::parse), [None; 3]);
        assert_eq!(Delivery::default().to_string(), "initContainer");
    }
}
