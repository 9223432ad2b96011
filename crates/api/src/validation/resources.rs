//! Requests, limits and claims of injected containers: what the API server
//! rejects in a pod and the schema cannot express.

use serde_json::Value;

use super::{
    text,
    text::Path,
    verdict::{Cause, Verdict},
};
use crate::{
    defaults::{LIMITS, Requests},
    quantity::Quantity,
};

/// The resources of a container without a domain in their name, except for huge pages.
const PLAIN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const HUGE_PAGES: &str = "hugepages-";

/// Checks resources. Defaults, such as these requests, are treated as set.
pub fn check(verdict: &mut Verdict, usual: &Requests, field: Path<'_>, resources: &Value) {
    if !(resources.is_null() || resources.is_object()) {
        return;
    }
    let limits = Amounts::new(&resources["limits"], &LIMITS);
    let requests = Amounts::new(&resources["requests"], usual);
    for (list, amounts) in [("limits", &limits), ("requests", &requests)] {
        let list = field.member(list);
        for amount in amounts.given() {
            check_one(verdict, list.member(amount.resource), amount);
        }
    }
    let list = field.member("requests");
    for request in requests.all() {
        let field = list.member(request.resource);
        match limits.get(request.resource) {
            Some(limit) => check_pair(verdict, field, request, limit),
            None if is_whole(request.resource) => {
                let message = format!("has no limit; valid: {0} and a limit of {0}", request.shown());
                verdict.reject(Cause::Invalid, field, message);
            }
            None => {}
        }
    }
    check_huge_pages(verdict, field, &limits, &requests);
    check_claims(verdict, field, &resources["claims"]);
}

fn check_one(verdict: &mut Verdict, field: Path<'_>, amount: Amount<'_>) {
    if !is_resource(amount.resource) {
        let shown = text::quoted(amount.resource);
        let valid = text::list(PLAIN);
        let message =
            format!("{shown} is not a container resource; valid: {valid}, hugepages-2Mi, example.com/gpu");
        return verdict.reject(Cause::Invalid, field, message);
    }
    let Some(quantity) = amount.quantity() else { return };
    let unit = match amount.resource.strip_prefix(HUGE_PAGES) {
        Some(page) => page,
        None if is_whole(amount.resource) => "1",
        None => return,
    };
    if !Quantity::parse(unit).is_some_and(|unit| quantity.is_multiple_of(unit)) {
        let message = format!("{} is not a multiple of {unit}", amount.shown());
        verdict.reject(Cause::Invalid, field, message);
    }
}

/// The request of a resource that cannot be overcommitted has to equal its limit.
fn check_pair(verdict: &mut Verdict, field: Path<'_>, request: Amount<'_>, limit: Amount<'_>) {
    let (Some(asked), Some(most)) = (request.quantity(), limit.quantity()) else { return };
    if is_whole(request.resource) && asked != most {
        let message =
            format!("{} differs from the limit {}; valid: the limit", request.shown(), limit.shown());
        verdict.reject(Cause::Invalid, field, message);
    } else if asked > most {
        let message =
            format!("{} is more than the limit {}; valid: at most the limit", request.shown(), limit.shown());
        verdict.reject_settled(field, message);
    }
}

/// Huge pages require CPU or memory.
fn check_huge_pages(verdict: &mut Verdict, field: Path<'_>, limits: &Amounts<'_>, requests: &Amounts<'_>) {
    let all = || limits.all().chain(requests.all());
    let huge = all().find(|amount| amount.resource.starts_with(HUGE_PAGES));
    if let Some(huge) = huge
        && !all().any(|amount| ["cpu", "memory"].contains(&amount.resource))
    {
        let message = format!("has {} without cpu or memory; valid: with one of them", huge.resource);
        verdict.reject(Cause::Invalid, field, message);
    }
}

/// A claim, or a request of it, can be used once; the whole claim uses each of its requests.
fn check_claims(verdict: &mut Verdict, field: Path<'_>, claims: &Value) {
    let names = |claim: &Value| {
        let text = |member: &str| claim[member].as_str().unwrap_or_default().to_owned();
        (text("name"), text("request"))
    };
    let mut seen: Vec<(String, String)> = Vec::new();
    for (index, claim) in claims.as_array().into_iter().flatten().enumerate() {
        let (name, request) = names(claim);
        let is_same = |(known, part): &(String, String)| {
            *known == name && (*part == request || part.is_empty() || request.is_empty())
        };
        if seen.iter().any(is_same) {
            let message = format!("{} is listed more than once; valid: each claim once", text::quoted(&name));
            verdict.reject(Cause::Invalid, format!("{field}.claims[{index}].name"), message);
        }
        seen.push((name, request));
    }
}

/// Whether the API server accepts a resource of this name in a container.
fn is_resource(name: &str) -> bool {
    match name.split_once('/') {
        None => {
            let page = name.strip_prefix(HUGE_PAGES).and_then(Quantity::parse);
            PLAIN.contains(&name)
                || page.is_some_and(|page| !page.is_zero() && page.is_multiple_of(Quantity::ONE))
        }
        Some((domain, _)) if domain.ends_with("kubernetes.io") => text::is_qualified(name),
        // Quotas add the prefix `requests.`, and the result has to be a valid name, too.
        Some(_) => !name.starts_with("requests.") && text::is_qualified(&format!("requests.{name}")),
    }
}

/// Whether a resource has whole units that two containers cannot share.
fn is_whole(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
        || name.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

/// Limits or requests: the given ones, or else the defaults.
struct Amounts<'r> {
    given: &'r Value,
    usual: &'r [(&'static str, &'static str)],
}

/// An amount of a resource.
#[derive(Clone, Copy)]
struct Amount<'r> {
    resource: &'r str,
    value: Result<&'r Value, &'r str>,
    /// Messages mark numbers that the author may not have written. After defaulting
    /// this is unknown, so the mark depends on the number.
    is_usual: bool,
}

impl<'r> Amounts<'r> {
    fn new(given: &'r Value, usual: &'r [(&'static str, &'static str)]) -> Self {
        Self { given, usual }
    }

    fn given(&self) -> impl Iterator<Item = Amount<'r>> {
        let usual = self.usual;
        let given = self.given.as_object().into_iter().flatten();
        given.map(move |(resource, value)| Amount {
            resource,
            value: Ok(value),
            is_usual: usual.iter().any(|(known, default)| known == resource && value == default),
        })
    }

    fn all(&self) -> impl Iterator<Item = Amount<'r>> {
        let defaults = self.usual.iter().filter(|_| self.given.is_null());
        let defaults =
            defaults.map(|(resource, value)| Amount { resource, value: Err(value), is_usual: true });
        self.given().chain(defaults)
    }

    fn get(&self, resource: &str) -> Option<Amount<'r>> {
        self.all().find(|amount| amount.resource == resource)
    }
}

impl Amount<'_> {
    fn quantity(self) -> Option<Quantity> {
        self.value.map_or_else(Quantity::parse, Quantity::of)
    }

    fn shown(self) -> String {
        let shown = self.value.map_or_else(text::quoted, text::shown);
        if self.is_usual { shown + " (the default)" } else { shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resources_of_containers_are_valid() {
        for name in ["cpu", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu", "kubernetes.io/batch-cpu"]
        {
            assert!(is_resource(name), "{name}");
        }
        for name in
            ["", "CPU", "storage", "pods", "hugepages-", "hugepages-0", "requests.example.com/gpu", "a b/c"]
        {
            assert!(!is_resource(name), "{name}");
        }
    }
}
