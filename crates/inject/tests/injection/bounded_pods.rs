//! A pod that its namespace accepts without injection, it accepts with it (D32):
//! tried on generated pods in generated namespaces, by the models of testkit.

use std::collections::BTreeMap;

use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_inject as inject;
use otel_webhook_inject::{InitResources, Input, Note, Outcome, Settings, language::LanguageSet, pod::Pod};
use otel_webhook_testkit::{
    generated::{
        bounded_pods::{ASKED, asking, pod, said_of_go},
        choices::{Choices, how_many},
        namespaces::{Namespace, PODS_OF_ONE, namespace},
    },
    known::Known,
    models::{
        amounts::{class, effective},
        namespace::{Bounds, admitted},
        sidecar,
    },
};
use serde_json::{Value, json};

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 2_000;

const NAMESPACE: &str = "bounded";

/// What is known of a namespace.
fn surroundings(around: &Namespace) -> Known {
    let mut instrumentation = json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation", "spec": around.instrumentation,
    });
    instrumentation["metadata"]["name"] = "default".into();
    let mut objects = [&around.ranges[..], &around.quotas, &[instrumentation]].concat();
    for object in &mut objects {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    Known::of(&objects, &DefaultImages::default())
}

fn review(known: &Known, pod: &Value, init_resources: InitResources) -> Outcome {
    let settings = Settings { languages: LanguageSet::all(), init_resources, ..Settings::default() };
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue: &known.catalogue, settings: &settings };
    inject::build(inject::decide(input), &known.owners)
}

/// What came of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    RejectedAnyway,
    Injected,
    Fitted,
    GoFitted,
    GoSkipped,
}

fn try_pod(number: u64, around: &Namespace, known: &Known) -> Result<Fate, String> {
    let bounds = Bounds { ranges: around.ranges.clone(), quotas: around.quotas.clone() };
    let mut choices = Choices::new(!number);
    let languages = ASKED[choices.below(ASKED.len())];
    let bare = pod(number, around);
    let Ok(without) = admitted(&bare, &bounds) else { return Ok(Fate::RejectedAnyway) };
    // The webhook gets the pod as LimitRanger leaves it, the command line as it is written.
    let sent = asking(if choices.chance(70) { &without } else { &bare }, languages);
    let way = if choices.chance(75) { InitResources::Neutral } else { InitResources::Exact };
    let outcome = review(known, &sent, way);
    let mut after = sent.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).map_err(|error| error.to_string())?;
    let with = admitted(&after, &bounds).map_err(|complaints| {
        format!("{languages:?} {way:?}: rejected with injection: {complaints:?}\n{}", resources_of(&after))
    })?;
    check_skipped(&outcome, languages, &without, &bounds, around)?;
    let go = outcome.findings.iter().any(|one| one.language == "go" && one.reason.is_injected());
    if way == InitResources::Neutral && !go {
        if effective(&without) != effective(&with) {
            let (old, new) = (effective(&without), effective(&with));
            return Err(format!("{old:?} became {new:?}\n{}", resources_of(&after)));
        }
        if class(&without) != class(&with) {
            return Err(format!("{} became {}\n{}", class(&without), class(&with), resources_of(&after)));
        }
    }
    let notes = || outcome.findings.iter().flat_map(|one| &one.notes);
    let due = |note: &Note| matches!(note, Note::ResourcesLowered { due_to, .. } if !due_to.is_empty());
    let skipped = outcome.findings.iter().any(|one| one.reason.code() == "ResourcesRefused");
    Ok(match () {
        () if skipped => Fate::GoSkipped,
        () if notes().any(|note| matches!(note, Note::SidecarFitted { .. })) => Fate::GoFitted,
        () if notes().any(due) => Fate::Fitted,
        () => Fate::Injected,
    })
}

/// What there is to know of a pod that was a problem.
fn resources_of(pod: &Value) -> String {
    let spec = &pod["spec"];
    let all = ["initContainers", "containers"].into_iter().filter_map(|list| spec[list].as_array());
    let shown =
        all.flatten().map(|one| json!([one["name"], one["restartPolicy"], one["resources"]]).to_string());
    format!("  whole {}\n  {}", spec["resources"], shown.collect::<Vec<_>>().join("\n  "))
}

/// Nothing is skipped but Go, and that only where nothing would be accepted.
fn check_skipped(
    outcome: &Outcome,
    languages: &[&str],
    without: &Value,
    bounds: &Bounds,
    around: &Namespace,
) -> Result<(), String> {
    for language in languages {
        let of_language = || outcome.findings.iter().filter(|one| one.language == *language);
        if of_language().any(|one| one.reason.is_injected()) {
            continue;
        }
        let reasons: Vec<_> = of_language().map(|one| one.reason.to_string()).collect();
        if *language != "go" || of_language().any(|one| one.reason.code() != "ResourcesRefused") {
            return Err(format!("{language} is skipped: {reasons:?}"));
        }
        if let Some(found) = sidecar::acceptable(without, bounds, &said_of_go(&around.instrumentation)) {
            return Err(format!(
                "Go is skipped, and would be accepted with {found}: {reasons:?}\n{}",
                resources_of(without)
            ));
        }
    }
    Ok(())
}

#[test]
fn an_accepted_pod_is_accepted_injected() {
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for number in 0..how_many(PODS).div_ceil(PODS_OF_ONE) {
        let around = namespace(number);
        let known = surroundings(&around);
        for pod in number * PODS_OF_ONE..(number + 1) * PODS_OF_ONE {
            match try_pod(pod, &around, &known) {
                Ok(fate) => *fates.entry(fate).or_default() += 1,
                Err(problem) => problems.push(format!(
                    "pod {pod}: {problem}\n  bounds {}\n  {}",
                    json!([around.ranges, around.quotas]),
                    around.instrumentation
                )),
            }
        }
    }
    println!("{fates:?}");
    let told = problems.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    assert!(problems.is_empty(), "{} of them: {told}", problems.len());
    // A generator that makes nothing of interest proves nothing.
    let all: usize = fates.values().sum();
    let share = |fate: Fate| fates.get(&fate).copied().unwrap_or_default() * 100 / all;
    assert!(share(Fate::RejectedAnyway) < 65, "too few are accepted: {fates:?}");
    assert!(share(Fate::Fitted) >= 5 && share(Fate::GoFitted) >= 5, "too few are fitted: {fates:?}");
    assert!(fates.contains_key(&Fate::GoSkipped), "none is skipped: {fates:?}");
}
