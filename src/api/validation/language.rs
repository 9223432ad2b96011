//! What the languages have in common: volumes, resources, variables.

use serde_json::{Map, Value};

use super::{Cause, Verdict, schema::member_path, text, variables};
use crate::api::{
    defaults::{LANGUAGES, LIMITS, LanguageDefaults},
    is_hollow,
    quantity::Quantity,
};

/// Checks every language.
pub fn check(verdict: &mut Verdict, spec: &Value) {
    for language in LANGUAGES {
        let own = &spec[language.field];
        if own.is_object() {
            let field = format!("spec.{}", language.field);
            check_volume(verdict, language, &field, own);
            check_resources(verdict, language, &field, &own[language.resources]);
            variables::check(verdict, &format!("{field}.env"), &own["env"]);
            variables::check_attrs(verdict, &format!("{field}.attrs"), &own["attrs"]);
        }
    }
    let version = spec["apacheHttpd"]["version"].as_str().unwrap_or_default();
    if !["", "2.2", "2.4"].contains(&version) {
        let message = format!("{} is taken for 2.4; valid: 2.4, 2.2", text::quoted(version));
        verdict.warn("apache-version-unknown", "spec.apacheHttpd.version", message);
    }
}

fn check_volume(verdict: &mut Verdict, language: &LanguageDefaults, field: &str, own: &Value) {
    let claim = &own["volumeClaimTemplate"];
    let limit_field = format!("{field}.volumeLimitSize");
    let has_limit = !own["volumeLimitSize"].is_null();
    if has_limit {
        let kind = format!("volume-limit-deprecated:{}", language.field);
        verdict.warn(kind, &limit_field, format!("is deprecated; use {field}.volumeClaimTemplate"));
    }
    if has_limit && !is_hollow(claim) {
        let message = format!("cannot be set beside {limit_field}; valid: one of the two");
        verdict.refuse(Cause::Invalid, format!("{field}.volumeClaimTemplate"), message);
    }
    let lacks = |path: &str| claim.pointer(path).is_none_or(is_hollow);
    for path in ["/spec/accessModes", "/spec/resources/requests/storage"] {
        if claim.is_object() && !is_hollow(claim) && lacks(path) {
            let field = format!("{field}.volumeClaimTemplate{}", path.replace('/', "."));
            verdict.warn(
                "claim-incomplete",
                field,
                "is not set; the API server refuses pods with such a claim",
            );
        }
    }
}

/// Requests beyond limits make a pod that the API server refuses. What
/// defaulting fills in counts: to give one of the two is enough to be wrong.
fn check_resources(verdict: &mut Verdict, language: &LanguageDefaults, field: &str, resources: &Value) {
    if !(resources.is_null() || resources.is_object()) {
        return;
    }
    let limits = Amounts::new(&resources["limits"], &LIMITS);
    let requests = Amounts::new(&resources["requests"], &language.requests);
    for (name, request) in requests.all() {
        let Some(limit) = limits.get(&name) else { continue };
        if let (Some(asked), Some(most)) = (Quantity::of(&request), Quantity::of(&limit))
            && asked > most
        {
            let field = member_path(&format!("{field}.{}.requests", language.resources), &name);
            let message = format!(
                "{}{} is more than the limit {}{}; valid: the limit at most",
                text::shown(&request),
                requests.remark(&name, &request),
                text::shown(&limit),
                limits.remark(&name, &limit),
            );
            verdict.refuse(Cause::Invalid, field, message);
        }
    }
}

/// Limits or requests: what is given, or else the defaults.
struct Amounts<'r> {
    given: Option<&'r Map<String, Value>>,
    defaults: Option<&'r [(&'static str, &'static str)]>,
    usual: &'r [(&'static str, &'static str)],
}

impl<'r> Amounts<'r> {
    fn new(given: &'r Value, usual: &'r [(&'static str, &'static str)]) -> Self {
        Self { given: given.as_object(), defaults: given.is_null().then_some(usual), usual }
    }

    fn all(&self) -> Vec<(String, Value)> {
        let given = self.given.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
        let defaults = self.defaults.into_iter().flatten();
        given.chain(defaults.map(|(name, value)| ((*name).to_owned(), Value::from(*value)))).collect()
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.all().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Nobody looks for a number that they did not write. Whether they did
    /// cannot be told once it is filled in, so the number decides.
    fn remark(&self, name: &str, value: &Value) -> &'static str {
        let is_default = self.usual.iter().any(|(known, default)| *known == name && value == default);
        if is_default { " (the default)" } else { "" }
    }
}
