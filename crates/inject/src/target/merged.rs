//! The resource attributes of an Instrumentation for a language, in a container that another language has injected
//! before (D13). The variable is there already, so that as a default it would be ignored.

use crate::{
    compiled::{Compiled, Prepared},
    env::{Entry, Env, ORIGINAL_PREFIX, Setting},
    reason::{Reason, Taken},
    resource::{Keys, RESOURCE_ATTRIBUTES},
};

/// The reference to the variable's original, if that is a reference itself.
pub const ORIGINAL: &str = "$(OTEL_INJECT_ORIGINAL_OTEL_RESOURCE_ATTRIBUTES)";

/// The variable of the Instrumentation for the language, else for every target, unless it is used as a default or the
/// container sets its own.
pub fn ignored<'p>(
    prepared: &'p Prepared,
    instrumentation: &'p Compiled,
    env: &Env<'_>,
) -> Option<&'p Setting> {
    let of_container = |name: &str| env.get(name).is_some_and(|entry| entry.origin.is_some());
    if !env.has(RESOURCE_ATTRIBUTES) || of_container(RESOURCE_ATTRIBUTES) || of_container(&original()) {
        return None;
    }
    let settings = prepared.env.iter().chain(&instrumentation.env);
    settings.into_iter().find(|setting| setting.name == RESOURCE_ATTRIBUTES)
}

/// Checks that a reference can be added.
///
/// # Errors
/// The reason why something would be lost.
pub fn check(env: &Env<'_>, ignored: &Setting) -> Result<(), Reason> {
    if ignored.from.is_none() || is_in(env, ignored) {
        return Ok(());
    }
    if Entry::from(ignored).is_optional() {
        return Err(Reason::OptionalReference { variable: RESOURCE_ATTRIBUTES.to_owned() });
    }
    if env.has(&original()) {
        return Err(Reason::taken(Taken::Variable, &original()));
    }
    Ok(())
}

/// Adds the attributes of the variable. Those whose keys are in `before`, which other languages got from their
/// Instrumentations, stay; derived ones are replaced. Returns the keys that were added.
pub fn add<'p>(env: &mut Env<'p>, ignored: &'p Setting, before: &Keys) -> Keys {
    if ignored.from.is_some() {
        if !is_in(env, ignored) {
            env.set_default(Entry { name: original().into(), ..ignored.into() });
            env.extend(RESOURCE_ATTRIBUTES, |present| {
                joined(present.unwrap_or_default().split(','), &[ORIGINAL])
            });
        }
        return Keys::default();
    }
    let pairs = ignored.value.split(',').map(str::trim);
    let added: Vec<_> = pairs.filter(|pair| key(pair).is_some_and(|key| !before.has(key))).collect();
    let text = added.join(",");
    let keys = Keys::of(Some(&text));
    if !added.is_empty() {
        env.extend(RESOURCE_ATTRIBUTES, |present| {
            let present = present.unwrap_or_default().split(',');
            let (last, others): (Vec<_>, Vec<_>) = present.partition(|pair| *pair == ORIGINAL);
            let kept = others.into_iter().filter(|pair| !key(pair).is_some_and(|key| keys.has(key)));
            joined(kept, &[&added[..], &last].concat())
        });
    }
    keys
}

/// Whether another language has added the same reference.
fn is_in(env: &Env<'_>, reference: &Setting) -> bool {
    env.get(&original()).is_some_and(|entry| entry.has_source_of(reference))
}

fn original() -> String {
    [ORIGINAL_PREFIX, RESOURCE_ATTRIBUTES].concat()
}

fn key(pair: &str) -> Option<&str> {
    pair.trim().split_once('=').map(|(key, _)| key.trim_end())
}

fn joined<'a>(first: impl Iterator<Item = &'a str>, then: &[&'a str]) -> String {
    first.filter(|pair| !pair.is_empty()).chain(then.iter().copied()).collect::<Vec<_>>().join(",")
}
