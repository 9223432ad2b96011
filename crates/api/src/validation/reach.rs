//! Which pods an error of an Instrumentation would break.

use crate::defaults::LANGUAGES;

/// Which pods an error would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None: no pod gets to see the value, or injection settles it by a rule.
    NoPod,
    /// Those that get the language of this field of the specification.
    Language(&'static str),
    /// All that are injected.
    EveryPod,
}

/// Fields of a specification with which no pod can be wrong: they say which
/// Instrumentation is taken, or are values of variables, and those may be any text.
const HARMLESS: [&str; 6] = ["defaults", "priority", "propagators", "resource", "sampler", "selector"];

/// Fields of a language whose agent has no volume for them.
const OF_VOLUMES: [&str; 2] = ["volumeClaimTemplate", "volumeLimitSize"];

impl Reach {
    /// By the path of the field that is wrong.
    pub(super) fn of(path: &str) -> Self {
        let mut names = path.split(['.', '[']);
        let (top, field, member) = (names.next(), names.next(), names.next());
        match field {
            // The name of the object, which no pod has to bear.
            _ if top != Some("spec") => Self::NoPod,
            Some(field) if HARMLESS.contains(&field) => Self::NoPod,
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
    fn an_error_reaches_those_pods_that_get_what_is_wrong() {
        for (path, expected) in [
            ("metadata.name", Reach::NoPod),
            ("spec", Reach::EveryPod),
            ("spec.env[0].name", Reach::EveryPod),
            ("spec.exporter.tls.secretName", Reach::EveryPod),
            ("spec.imagePullPolicy", Reach::EveryPod),
            ("spec.initContainerSecurityContext.runAsUser", Reach::EveryPod),
            ("spec.sampler.type", Reach::NoPod),
            ("spec.propagators[1]", Reach::NoPod),
            ("spec.selector.matchLabels", Reach::NoPod),
            ("spec.java", Reach::Language("java")),
            ("spec.java.volumeLimitSize", Reach::Language("java")),
            ("spec.apacheHttpd.env[0].name", Reach::Language("apacheHttpd")),
            ("spec.go.volumeLimitSize", Reach::NoPod),
            ("spec.nginx.volumeClaimTemplate.spec.accessModes", Reach::NoPod),
            ("spec.nginx.image", Reach::Language("nginx")),
        ] {
            assert_eq!(Reach::of(path), expected, "{path}");
        }
    }
}
