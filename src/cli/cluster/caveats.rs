//! What all results about a cluster depend on, and is not known or not working.

use super::{
    facts::{Facts, ServiceFacts},
    known::Known,
    reader::NotTold,
};

/// Returns a sentence for each; `own_flags` is the flag of this name.
pub fn caveats(facts: &Facts, known: &Known, own_flags: bool) -> Vec<String> {
    let assumed = facts.why_assumed().filter(|_| !own_flags);
    let assumed = assumed.map(|why| format!("{why}; the results are based on the flags of this command"));
    let request = facts.not_told.first().filter(|_| !facts.is_registration_told);
    let registration = request.map(|NotTold { question, .. }| {
        format!("whether API servers send pods to the webhook is not readable by you ({question})")
    });
    let outages = facts.services.iter().filter_map(ServiceFacts::outage);
    assumed
        .into_iter()
        .chain(registration)
        .chain(outages)
        .chain(known.not_told.iter().map(not_readable))
        .collect()
}

/// Returns the sentence for a request that failed.
pub fn not_readable(NotTold { question, problem }: &NotTold) -> String {
    format!("not readable by you ({question}): {problem}")
}
