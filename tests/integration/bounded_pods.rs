//! A pod that its namespace accepts without injection, it accepts with it (D32):
//! tried on generated pods in generated namespaces, by the second reckoning.

use std::{collections::BTreeMap, sync::Arc};

use otel_webhook::{
    api::defaults::DefaultImages,
    inject::{
        self, InitResources, Input, Note, Outcome, Settings,
        catalogue::Catalogue,
        language::LanguageSet,
        limits::{Limit, LimitKind},
        pod::Pod,
    },
    store::Writer,
};
use serde_json::{Value, json};

use crate::{
    bounded::{Namespace, PODS_OF_ONE, namespace, pod},
    generator::Choices,
    namespace_model::{Bounds, admitted, class, effective},
    review::how_many,
    sidecar_model,
};

/// How many pods are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 4_000;

const NAMESPACE: &str = "bounded";

/// What a pod asks for; most often one language.
pub const ASKED: [&[&str]; 7] =
    [&["java"], &["python"], &["apache-httpd"], &["go"], &["go"], &["java", "go"], &["dotnet", "nodejs"]];

/// What the core knows of a namespace.
fn catalogue(around: &Namespace) -> Catalogue {
    let mut writer = Writer::new(DefaultImages::default());
    writer.put(&json!({
        "apiVersion": "opentelemetry.io/v1alpha1", "kind": "Instrumentation",
        "metadata": {"name": "default", "namespace": NAMESPACE}, "spec": around.instrumentation,
    }));
    writer.publish();
    let mut catalogue = writer.store().snapshot().catalogue.clone();
    let known = Arc::make_mut(catalogue.namespaces.get_mut(NAMESPACE).expect("the Instrumentation's"));
    let mut problems = Vec::new();
    for (kind, objects) in [(LimitKind::Range, &around.ranges), (LimitKind::Quota, &around.quotas)] {
        for object in objects {
            known.limits.put(Limit::read(kind, object, &mut problems));
        }
    }
    assert!(problems.is_empty(), "{problems:?}");
    catalogue
}

/// The same pod, asking for languages.
pub fn asking(pod: &Value, languages: &[&str]) -> Value {
    let mut pod = pod.clone();
    let prefix = "instrumentation.opentelemetry.io";
    let mut annotations = json!({
        format!("{prefix}/container-names"): "app", format!("{prefix}/otel-go-auto-target-exe"): "/app",
    });
    for language in languages {
        annotations[format!("{prefix}/inject-{language}")] = "true".into();
    }
    pod["metadata"]["annotations"] = annotations;
    pod
}

fn review(catalogue: &Catalogue, pod: &Value, init_resources: InitResources) -> Outcome {
    let settings = Settings { languages: LanguageSet::all(), init_resources, ..Settings::default() };
    let text = pod.to_string();
    let pod = Pod::parse(&text).expect("a pod");
    let input = Input { pod: &pod, namespace: NAMESPACE, catalogue, settings: &settings };
    let owners = Writer::new(DefaultImages::default()).store().snapshot();
    inject::build(inject::decide(input), &owners.owners)
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

fn try_pod(number: u64, around: &Namespace, catalogue: &Catalogue) -> Result<Fate, String> {
    let bounds = Bounds { ranges: around.ranges.clone(), quotas: around.quotas.clone() };
    let mut choices = Choices::new(!number);
    let languages = ASKED[choices.below(ASKED.len())];
    let bare = pod(number, around);
    let Ok(without) = admitted(&bare, &bounds) else { return Ok(Fate::RejectedAnyway) };
    // The webhook gets the pod as LimitRanger leaves it, the command line as it is written.
    let sent = asking(if choices.chance(70) { &without } else { &bare }, languages);
    let way = if choices.chance(75) { InitResources::Neutral } else { InitResources::Exact };
    let outcome = review(catalogue, &sent, way);
    let mut after = sent.clone();
    json_patch::patch(&mut after, &outcome.operations()).map_err(|error| error.to_string())?;
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
        if let Some(found) = sidecar_model::acceptable(without, bounds, &said_of_go(&around.instrumentation))
        {
            return Err(format!(
                "Go is skipped, and would be accepted with {found}: {reasons:?}\n{}",
                resources_of(without)
            ));
        }
    }
    Ok(())
}

/// The resources of Go's sidecar, with the defaults of Instrumentations.
pub fn said_of_go(spec: &Value) -> Value {
    let mut said = spec["go"]["resourceRequirements"].clone();
    for (list, default) in [
        ("limits", json!({"cpu": "500m", "memory": "256Mi"})),
        ("requests", json!({"cpu": "50m", "memory": "64Mi"})),
    ] {
        if said[list].is_null() {
            said[list] = default;
        }
    }
    // A default gives way to what is said.
    for name in ["cpu", "memory"] {
        use crate::namespace_model::quantity;
        let (request, limit) = (said["requests"][name].clone(), said["limits"][name].clone());
        if !request.is_null() && !limit.is_null() && quantity(&request) > quantity(&limit) {
            let is_limit_said = !spec["go"]["resourceRequirements"]["limits"].is_null();
            if is_limit_said { said["requests"][name] = limit } else { said["limits"][name] = request }
        }
    }
    said
}

#[test]
fn an_accepted_pod_is_accepted_injected() {
    let mut fates: BTreeMap<Fate, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for number in 0..how_many(PODS).div_ceil(PODS_OF_ONE) {
        let around = namespace(number);
        let catalogue = catalogue(&around);
        for pod in number * PODS_OF_ONE..(number + 1) * PODS_OF_ONE {
            match try_pod(pod, &around, &catalogue) {
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
