//! An injected pod is the same whether its added containers come with the ServiceAccount's token or get it
//! from the API server afterwards (D31): tried on generated pods, with a model of its plugin. The end-to-end
//! tests compare the model with the real one.

use std::collections::BTreeMap;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    generated::{
        choices::{for_each, how_many},
        pods::NAMESPACE,
        tokens::with_tokens,
    },
    known::Known,
    models::service_account::{mounted, mounts_token, without_added_tokens},
    objects::{compare, items},
    surroundings::review,
};
use serde_json::Value;

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 2_000;

/// What comes after the first review of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It has no added container.
    NothingAdded,
    /// Its added containers have no token, and get none.
    WithoutToken,
    /// They have it, and nothing changes afterwards.
    OneReview,
    /// The plugin changes the pod, since all of its containers have their own mounts.
    TwoReviews,
}

fn try_pod(seed: u64) -> Result<Fate, String> {
    let generated = with_tokens(seed);
    let known = Known::of([&generated.instrumentation], &DefaultImages::default());
    // The plugin runs before the webhooks.
    let sent = mounted(&generated.pod, "first");
    let outcome = review(&known.catalogue, &known.owners, NAMESPACE, &sent);
    let mut after = sent.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).map_err(|error| error.to_string())?;

    let (one, two) = (mounted(&after, "again"), mounted(&without_added_tokens(&sent, &after), "again"));

    let differences = compare("", &one, &two);
    if !differences.is_empty() {
        return Err(differences.join("\n"));
    }
    let has_token = |pod: &Value| containers(pod).into_iter().all(mounts_token);
    Ok(match () {
        () if containers(&after).len() == containers(&sent).len() => Fate::NothingAdded,
        () if one != after && has_token(&generated.pod) => Fate::TwoReviews,
        () if one != after => return Err("the plugin changes it once more".to_owned()),
        () if has_token(&after) => Fate::OneReview,
        () => Fate::WithoutToken,
    })
}

fn containers(pod: &Value) -> Vec<&Value> {
    ["containers", "initContainers"].into_iter().flat_map(|list| items(&pod["spec"][list])).collect()
}

#[test]
fn the_pod_is_the_one_that_two_reviews_give() {
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    for (seed, result) in for_each(how_many(PODS), |seed| (seed, try_pod(seed))) {
        let fate =
            result.unwrap_or_else(|problem| panic!("pod {seed}: {problem}\n{}", with_tokens(seed).pod));
        *fates.entry(fate).or_default() += 1;
    }
    println!("{fates:?}");
    // A generator that makes nothing of interest proves nothing.
    for (fate, fewest) in [(Fate::OneReview, 500), (Fate::WithoutToken, 50), (Fate::TwoReviews, 10)] {
        assert!(fates.get(&fate).is_some_and(|count| *count >= fewest), "too few: {fates:?}");
    }
}
