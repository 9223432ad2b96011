//! Instrumentations that nobody judged: what is wrong in them reaches no pod,
//! and what is right still does.

use std::{collections::BTreeMap, sync::Arc};

use otel_webhook::store::{Snapshot, Writer};
use otel_webhook_api::defaults::DefaultImages;
use otel_webhook_testkit::{
    generated::{
        choices::{Choices, for_each, how_many},
        mistakes::break_some,
        pods::{self, Generated, generate},
    },
    models::{invariants, sanity, validity},
    objects::{asking, instrumentation},
    surroundings::{Injected, Surroundings, review, with},
};
use serde_json::{Value, json};

/// How many are tried unless `OTEL_WEBHOOK_GENERATED_PODS` says more.
const PODS: u64 = 10_000;

/// What the store makes of objects.
fn stored<'o>(objects: impl IntoIterator<Item = &'o Value>) -> Arc<Snapshot> {
    let mut writer = Writer::new(DefaultImages::default());
    for object in objects {
        writer.put(object);
    }
    writer.publish();
    writer.store().snapshot()
}

fn inject(around: &Surroundings, pod: &Value) -> Injected {
    let snapshot = stored(&around.objects);
    around.inject_knowing(pod, &snapshot.catalogue, &snapshot.owners)
}

fn try_pod(seed: u64, generated: &Generated) -> Result<Vec<&'static str>, String> {
    let snapshot = stored([&generated.instrumentation]);
    let outcome = review(&snapshot.catalogue, &snapshot.owners, pods::NAMESPACE, &generated.pod);
    let mut after = generated.pod.clone();
    json_patch::patch(&mut after, &outcome.patch.operations()).map_err(|error| format!("{seed}: {error}"))?;
    let mut faults = sanity::faults(&generated.pod, &after);
    faults.extend(validity::faults(&generated.pod, &after));
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    invariants::unrelated(&generated.pod, &after, &generated.instrumentation)?;
    Ok(outcome.findings.iter().map(|finding| finding.reason.code()).collect())
}

#[test]
fn no_mistake_reaches_a_pod() {
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let results = for_each(how_many(PODS), |seed| {
        let mut generated = generate(seed);
        let mistakes = break_some(&mut Choices::new(!seed), &mut generated.instrumentation);
        try_pod(seed, &generated).map_err(|problem| {
            format!("pod {seed} with {mistakes:?}: {problem}\n{}", generated.instrumentation)
        })
    });
    for result in results {
        for code in result.unwrap_or_else(|problem| panic!("{problem}")) {
            *codes.entry(code).or_default() += 1;
        }
    }
    println!("{codes:#?}");
    for code in ["Injected", "InstrumentationInvalid"] {
        let count = codes.get(code).copied().unwrap_or_default();
        assert!(count > 100, "too few pods came out as {code}: {codes:?}");
    }
}

/// Each mistake of a language, and what is said of it.
#[test]
fn a_language_that_is_wrong_is_left_out_alone() {
    for (java, sentence) in [
        (json!({"image": " "}), r#"spec.java.image: " " is not an image; "#),
        (json!({"volumeLimitSize": "abc"}), r#"spec.java.volumeLimitSize: "abc" is not a quantity; "#),
        (json!({"image": 5}), "spec.java.image: 5 is a number; valid: text; put it in quotes"),
        (json!(["a"]), "spec.java: is a list; valid: an object"),
        (json!({"env": [{"name": "A=B"}]}), r#"spec.java.env[0].name: "A=B" is not a variable name; "#),
        (
            json!({"resources": {"requests": {"example.com/gpu": 1}}}),
            "spec.java.resources.requests[example.com/gpu]: has no limit; ",
        ),
        (
            json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}),
            "spec.java.volumeClaimTemplate.spec.resources.requests.storage: is not set; ",
        ),
    ] {
        let around = with(json!({"java": java}));
        let injected = inject(&around, &asking(&["java", "python"], json!({})));
        assert_eq!(injected.codes(), ["java: InstrumentationInvalid", "python/app: Injected"], "{java}");
        let said = injected.outcome.warnings().join("\n");
        let start = format!("java: Instrumentation \"shop/inst\" cannot be used: {sentence}");
        assert!(said.contains(&start), "{said}");
    }
}

#[test]
fn what_is_wrong_for_every_pod_leaves_out_all_languages() {
    for (spec, sentence) in [
        (json!({"env": [{"name": ""}]}), "spec.env[0].name: is empty"),
        (
            json!({"imagePullPolicy": "Sometimes"}),
            r#"spec.imagePullPolicy: "Sometimes" is not a pull policy"#,
        ),
        (
            json!({"exporter": {"tls": {"secretName": "a/b"}}}),
            r#"spec.exporter.tls.secretName: "a/b" is not an object name"#,
        ),
        (
            json!({"initContainerSecurityContext": {"runAsUser": -1}}),
            "spec.initContainerSecurityContext.runAsUser: -1 is out of range",
        ),
        (json!(["a"]), "spec: is a list; valid: an object"),
    ] {
        let injected = inject(&with(spec.clone()), &asking(&["java", "sdk"], json!({})));
        assert_eq!(
            injected.codes(),
            ["java: InstrumentationInvalid", "sdk: InstrumentationInvalid"],
            "{spec}"
        );
        assert!(injected.is_unchanged());
        let said = injected.outcome.warnings().join("\n");
        assert!(said.contains(&format!("cannot be used: {sentence}")), "{said}");
    }
}

/// What makes no pod invalid, or is settled by a rule of injection.
#[test]
fn what_no_pod_sees_keeps_none_from_its_agent() {
    let claim =
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for spec in [
        json!({"sampler": {"type": "sometimes", "argument": "often"}}),
        json!({"propagators": ["pigeons"]}),
        json!({"java": {"volumeLimitSize": "1Gi", "volumeClaimTemplate": claim}}),
        json!({"java": {"resources": {"limits": {"cpu": "1m"}, "requests": {"cpu": "5"}}}}),
        json!({"nginx": {"volumeLimitSize": "abc"}, "go": {"volumeClaimTemplate": {"spec": {"volumeMode": "x"}}}}),
    ] {
        let pod = asking(&["java", "go", "nginx"], json!({}));
        let injected = inject(&with(spec.clone()), &pod);
        assert_eq!(
            injected.codes(),
            ["java/app: Injected", "go/app: Injected", "nginx/app: Injected"],
            "{spec}"
        );
        assert_eq!(validity::faults(&pod, &injected.pod), [""; 0], "{spec}");
    }
}

/// One that cannot be used for a language is, for it, as if it were not there.
#[test]
fn another_instrumentation_is_used_where_one_cannot_be() {
    let around = Surroundings::new([
        instrumentation("bad", json!({"java": {"image": " "}})),
        instrumentation("good", json!({"java": {"image": "own:1"}, "selector": {}})),
    ]);
    let injected = inject(&around, &asking(&["java"], json!({})));
    let image = |injected: &Value| injected["spec"]["initContainers"][0]["image"].clone();
    assert_eq!(image(&injected.pod), "own:1");
    let injected = inject(&around, &asking(&["python"], json!({})));
    assert_eq!(injected.codes(), ["python: AmbiguousInstrumentation"]);
}
