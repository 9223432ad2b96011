//! The common fields of the languages: volumes, resources, variables.

use serde_json::Value;

use super::{claim, resources, security, text, text::Path, variables, verdict::Verdict};
use crate::{
    defaults::{LANGUAGES, LanguageDefaults},
    quantity::Quantity,
    sizes::AgentSizes,
    values::is_hollow,
};

/// Checks every language.
pub fn check(verdict: &mut Verdict, path: Path<'_>, spec: &Value) {
    for language in LANGUAGES {
        let (field, own) = (path.member(language.field), &spec[language.field]);
        if own.is_object() {
            check_volume(verdict, language, field, own);
            resources::check(
                verdict,
                &language.requests,
                field.member(language.resources),
                &own[language.resources],
            );
            security::check(verdict, field.member("securityContext"), &own["securityContext"]);
            variables::check(verdict, field.member("env"), &own["env"]);
            variables::check_attrs(verdict, field.member("attrs"), &own["attrs"]);
        }
    }
    let version = spec["apacheHttpd"]["version"].as_str().unwrap_or_default();
    if !["", "2.2", "2.4"].contains(&version) {
        let message = format!("{} is treated as 2.4; valid: 2.4, 2.2", text::quoted(version));
        verdict.warn("apache-version-unknown", "spec.apacheHttpd.version", message);
    }
}

/// Warns about size limits that are smaller than the agent: the kubelet evicts a
/// pod when one of its volumes contains more than its limit.
pub fn warn_of_sizes(verdict: &mut Verdict, spec: &Value, sizes: &AgentSizes) {
    for language in LANGUAGES.iter().filter(|language| language.has_volume) {
        let own = &spec[language.field];
        let limit = Quantity::of(&own["volumeLimitSize"]).filter(|limit| *limit > Quantity::ZERO);
        let size = sizes.of(language, own["extensions"].as_array().map_or(0, Vec::len));
        if let Some(limit) = limit.filter(|limit| *limit < size && is_hollow(&own["volumeClaimTemplate"])) {
            let kind = format!("volume-limit-too-small:{}", language.field);
            let message = format!(
                "{limit} is less than the size of the agent ({size}), so the kubelet may evict its pods; \
                 valid: at least {size}, or volumeClaimTemplate"
            );
            verdict.warn(kind, format!("spec.{}.volumeLimitSize", language.field), message);
        }
    }
}

fn check_volume(verdict: &mut Verdict, language: &LanguageDefaults, field: Path<'_>, own: &Value) {
    let claim = &own["volumeClaimTemplate"];
    let claim_field = field.member("volumeClaimTemplate");
    let limit_field = field.member("volumeLimitSize");
    let has_limit = !own["volumeLimitSize"].is_null();
    if has_limit {
        let kind = format!("volume-limit-deprecated:{}", language.field);
        verdict.warn(kind, limit_field, format!("is deprecated; use {claim_field}"));
    }
    if has_limit && !is_hollow(claim) {
        let message = format!("cannot be set together with {limit_field}; valid: one of the two");
        verdict.reject_settled(claim_field, message);
    }
    if language.has_volume {
        claim::check(verdict, claim_field, claim);
    }
}
