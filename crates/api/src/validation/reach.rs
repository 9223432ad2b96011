//! The pods that an error of an Instrumentation would break.

use crate::{agent::AGENTS_FIELD, defaults::LANGUAGES};

/// The pods that an error would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None: the value is not used in pods, or injection has a rule for it.
    NoPod,
    /// Those with the language of this field of the specification.
    Language(&'static str),
    /// All injected pods.
    EveryPod,
}

/// Fields of a specification that cannot break a pod: they decide which
/// Instrumentation is used, are values of variables, which may be any string, or have a default.
const HARMLESS: [&str; 10] = [
    "defaults",
    "delivery",
    "inject",
    "namespaceSelector",
    "priority",
    "probes",
    "propagators",
    "resource",
    "sampler",
    "selector",
];

/// Fields of languages that have no volume for the agent.
const OF_VOLUMES: [&str; 2] = ["volumeClaimTemplate", "volumeLimitSize"];

impl Reach {
    /// By the path of the invalid field.
    pub(super) fn of(path: &str) -> Self {
        let mut names = path.split(['.', '[']);
        let (top, field, member) = (names.next(), names.next(), names.next());
        match field {
            // The name of the object is not used in pods.
            _ if top != Some("spec") => Self::NoPod,
            Some(field) if HARMLESS.contains(&field) => Self::NoPod,
            // Injection takes the next source of it.
            Some(_) if path.ends_with(".delivery") || path.ends_with(".exporter.protocol") => Self::NoPod,
            Some(field) if field == AGENTS_FIELD => Self::Language(AGENTS_FIELD),
            Some(field) => match LANGUAGES.iter().find(|language| language.field == field) {
                Some(language)
                    if !language.has_volume && member.is_some_and(|member| OF_VOLUMES.contains(&member)) =>
                {
                    Self::NoPod
                }
                Some(language) => Self::Language(language.field),
                None => Self::EveryPod,
            },
            None => Self::EveryPod,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_breaks_the_pods_that_get_the_invalid_value() {
        for (path, expected) in [
            ("metadata.name", Reach::NoPod),
            ("spec", Reach::EveryPod),
            ("spec.env[0].name", Reach::EveryPod),
            ("spec.exporter.tls.secretName", Reach::EveryPod),
            ("spec.imagePullPolicy", Reach::EveryPod),
            ("spec.initContainerSecurityContext.runAsUser", Reach::EveryPod),
            ("spec.delivery", Reach::NoPod),
            ("spec.java.delivery", Reach::NoPod),
            ("spec.sampler.type", Reach::NoPod),
            ("spec.propagators[1]", Reach::NoPod),
            ("spec.selector.matchLabels", Reach::NoPod),
            ("spec.inject[0]", Reach::NoPod),
            ("spec.namespaceSelector", Reach::NoPod),
            ("spec.java", Reach::Language("java")),
            ("spec.java.volumeLimitSize", Reach::Language("java")),
            ("spec.apacheHttpd.env[0].name", Reach::Language("apacheHttpd")),
            ("spec.go.volumeLimitSize", Reach::NoPod),
            ("spec.nginx.volumeClaimTemplate.spec.accessModes", Reach::NoPod),
            ("spec.agents[1].env[0].name", Reach::Language("agents")),
            ("spec.agents[1].delivery", Reach::NoPod),
            ("spec.nginx.image", Reach::Language("nginx")),
        ] {
            assert_eq!(Reach::of(path), expected, "{path}");
        }
    }
}
