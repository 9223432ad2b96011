//! Agents that an Instrumentation describes itself.

use serde_json::Value;

use super::{
    claim, nearest, resources, secret, text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::{
    agent::{MOUNT_PATH, default_mount_path},
    crd::names::reserved,
    defaults::AGENT_REQUESTS,
    values::{Mode, is_hollow},
};

/// The variable that injection extends by itself.
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// Checks all agents.
pub fn check(verdict: &mut Verdict, list: Path<'_>, agents: &Value) {
    let mut names = Vec::new();
    let mut paths: Vec<(String, usize)> = Vec::new();
    for (index, agent) in agents.as_array().into_iter().flatten().enumerate() {
        let field = list.item(index);
        check_name(verdict, field.member("name"), agent, &mut names);
        check_path(verdict, (list, index), agent, &mut paths);
        check_volume(verdict, field, agent);
        let own = "resourceRequirements";
        resources::check(verdict, &AGENT_REQUESTS, field.member(own), &agent[own]);
        check_variables(verdict, field.member("env"), &agent["env"]);
    }
}

fn check_name<'a>(verdict: &mut Verdict, field: Path<'_>, agent: &'a Value, known: &mut Vec<&'a str>) {
    let Some(name) = agent["name"].as_str() else { return };
    if reserved().any(|taken| taken == name) {
        let message = format!(
            "{} cannot be the name of an agent; valid: any name but {}",
            text::quoted(name),
            text::list(reserved())
        );
        verdict.reject(Cause::Invalid, field, message);
    }
    check_once(verdict, field, name, known);
}

fn check_once<'a>(verdict: &mut Verdict, field: Path<'_>, name: &'a str, known: &mut Vec<&'a str>) {
    if known.contains(&name) {
        let message = format!("{} is listed more than once; valid: each name once", text::quoted(name));
        verdict.reject(Cause::Invalid, field, message);
    }
    known.push(name);
}

/// One mount hides the other if one path is the other, or in it.
fn check_path(
    verdict: &mut Verdict,
    (list, index): (Path<'_>, usize),
    agent: &Value,
    known: &mut Vec<(String, usize)>,
) {
    let own = agent["mountPath"].as_str().filter(|path| !path.is_empty()).map(str::to_owned);
    let Some(path) = own.or_else(|| agent["name"].as_str().map(default_mount_path)) else { return };
    let is_in = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let other = known.iter().find(|(other, _)| is_in(&path, other) || is_in(other, &path));
    if let Some((other, at)) = other {
        let message = format!(
            "{} overlaps with {}, the mount path of {}; valid: a path that nothing else uses",
            text::quoted(&path),
            text::quoted(other),
            list.item(*at)
        );
        verdict.reject(Cause::Invalid, list.item(index).member("mountPath"), message);
    }
    known.push((path, index));
}

fn check_volume(verdict: &mut Verdict, field: Path<'_>, agent: &Value) {
    let template = &agent["volumeClaimTemplate"];
    let claim_field = field.member("volumeClaimTemplate");
    if !agent["volumeLimitSize"].is_null() && !is_hollow(template) {
        let limit = field.member("volumeLimitSize");
        let message = format!("cannot be set together with {limit}; valid: one of the two");
        verdict.reject_settled(claim_field, message);
    }
    claim::check(verdict, claim_field, template);
}

fn check_variables(verdict: &mut Verdict, list: Path<'_>, variables: &Value) {
    let mut names = Vec::new();
    for (index, variable) in variables.as_array().into_iter().flatten().enumerate() {
        let field = list.item(index);
        let (name, value) = (&variable["name"], &variable["value"]);
        let (Some(name), value) = (name.as_str(), value.as_str().unwrap_or_default()) else { continue };
        check_once(verdict, field.member("name"), name, &mut names);
        let Some(mode) = Mode::parse(variable["mode"].as_str()) else { continue };
        check_mode(verdict, field, name, mode, &variable["separator"]);
        if let Some(reference) = misspelt_mount_path(value) {
            let message = format!("refers to $({reference}), which is not replaced; set it to {MOUNT_PATH}");
            verdict.warn("mount-path-misspelt", field.member("value"), message);
        }
        if secret::is_credential(name, value) {
            let message = format!(
                "the value of {} looks like a credential, which everyone with read access to Instrumentations or pods \
                 can see; take it from a Secret by valueFrom of spec.env",
                text::quoted(name)
            );
            verdict.warn("plain-credential", field, message);
        }
    }
}

/// Returns a reference of a value that was probably meant as that to the mount path.
fn misspelt_mount_path(value: &str) -> Option<&str> {
    let meant = MOUNT_PATH.trim_matches(['$', '(', ')']);
    let references = value.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
    let mut names = references.map(|(name, _)| name);
    names.find(|name| *name != meant && nearest(name, [meant]).is_some())
}

fn check_mode(verdict: &mut Verdict, field: Path<'_>, name: &str, mode: Mode, separator: &Value) {
    let extends = mode != Mode::Set;
    if extends && separator.is_null() {
        let message = format!("is missing; mode {} requires it; valid: such as \":\"", mode.name());
        verdict.reject(Cause::Required, field.member("separator"), message);
    }
    if !extends && !separator.is_null() {
        let message = "has no effect with mode set; valid: with mode append or prepend";
        verdict.reject_settled(field.member("separator"), message);
    }
    if extends && name == ATTRIBUTES {
        let message = format!(
            "{} is extended by injection; valid: attributes in spec.resource.resourceAttributes",
            text::quoted(name)
        );
        verdict.reject(Cause::Invalid, field.member("name"), message);
    }
}
