//! Notes about unknown parts of a target.

use crate::{
    edit::{Place, container_at},
    injection::Injection,
    note::Note,
    pod::EnvFrom,
    shown::Names,
};

/// The notes about extended variables of a target.
pub fn of_target(injection: &mut Injection<'_, '_>, place: Place, extended: &[&str]) -> Vec<Note> {
    let mut notes = Vec::new();
    let sources = container_at(injection.facts.pod, place).sources().unwrap_or_default();
    if let Ok(target) = injection.target(place) {
        for variable in extended {
            let able = sources.iter().filter(|source| variable.starts_with(&*source.prefix));
            let able = Names::of(able.map(name));
            // An entry of the container's own list overrides envFrom,
            // with and without the webhook.
            if !target.env.has(variable) && !able.is_empty() {
                notes.push(Note::MayBeSetByEnvFrom { variable: (*variable).into(), sources: able });
            }
        }
    }
    notes.extend(certificates(injection));
    notes
}

/// The notes about the exporter's certificates.
pub fn certificates(injection: &Injection<'_, '_>) -> impl Iterator<Item = Note> {
    injection.instrumentation().exporter.objects().map(|object| Note::CertificateNotChecked { object })
}

fn name(source: &EnvFrom<'_>) -> String {
    match (&source.config_map_ref, &source.secret_ref) {
        (Some(map), _) => ["ConfigMap ", &map.name].concat(),
        (None, Some(secret)) => ["Secret ", &secret.name].concat(),
        (None, None) => "a source".to_owned(),
    }
}
