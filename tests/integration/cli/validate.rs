//! What `validate` says, and its exit codes.

use serde_json::json;

use super::{INSTRUMENTATION, RECORDED, pod, run, values, with_recorded};

/// A kind that is not checked.
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n";

/// One with a mistake and two things to be warned of.
const BAD: &str = "apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: bad, namespace: shop}
spec:
  propagators: [B3]
  exporter: {endpoint: \"https://c:4317\"}
";

fn validate(arguments: &[&str], documents: &[&str]) -> super::Run {
    run(&[&["validate", "-f", "-"], arguments].concat(), &documents.join("---\n"))
}

#[test]
fn a_verdict_for_each_instrumentation() {
    let good = INSTRUMENTATION.replace("spec:", "spec:\n  sampler: {type: always_on}");
    let run = validate(&[], &[BAD, SERVICE, &good]);
    let expected = "\
Instrumentation/bad in namespace shop: rejected
  error    spec.propagators[0]: \"B3\" is not a propagator (did you mean \"b3\"?); valid: tracecontext, baggage, b3, \
b3multi, jaeger, xray, ottrace, none
  warning  spec.exporter.endpoint: begins with https://, but spec.exporter.tls is not set; agents use the CA \
bundles of the application's images

Instrumentation/inst in namespace default: allowed
";
    assert_eq!((&*run.out, &*run.err, run.code), (expected, "", 1));
    let none = validate(&[], &[SERVICE]);
    assert_eq!((&*none.out, none.code), ("The input contains no Instrumentations and no workloads.\n", 0));
}

#[test]
fn what_cannot_be_read_of_a_limit_range_is_warned_of() {
    let range = |most: &str| {
        let items = format!("[{{type: Container, max: {{cpu: {most}, memory: 1Gi}}}}]");
        format!("apiVersion: v1\nkind: LimitRange\nmetadata: {{name: l}}\nspec: {{limits: {items}}}\n")
    };
    let run = validate(&["-n", "shop"], &[&range("one")]);
    let expected = "\
LimitRange/l in namespace shop: allowed
  warning  spec.limits[0].max.cpu: \"one\" is not a quantity of at least zero, such as 500m or 128Mi; it is ignored
";
    assert_eq!((&*run.out, &*run.err, run.code), (expected, "", 0));
    assert_eq!(validate(&["--strict"], &[&range("one")]).code, 1);
    assert_eq!(validate(&["-o", "json"], &[&range("1")]).out, "", "a good one is passed over");
}

#[test]
fn json_has_one_object_an_instrumentation_and_line() {
    let argument = INSTRUMENTATION.replace("spec:", "spec:\n  sampler: {argument: \"0.25\"}");
    let run = validate(&["-o", "json", "-n", "cart"], &[SERVICE, &argument, BAD]);
    let warning = json!({
        "kind": "sampler-type-not-set", "field": "spec.sampler.type",
        "message": "is not set; each agent uses its own default, and the argument is ignored",
    });
    let objects = values(&run);
    let expected = json!({
        "kind": "Instrumentation", "namespace": "cart", "name": "inst", "allowed": true, "errors": [],
        "warnings": [warning], "notes": [],
    });
    assert_eq!(objects[0], expected);
    assert_eq!(objects[1]["allowed"], false);
    assert_eq!(objects[1]["errors"][0]["field"], "spec.propagators[0]");
    assert_eq!((objects.len(), run.code), (2, 1));
    assert_eq!(validate(&["-o", "json"], &[SERVICE]).out, "");
}

#[test]
fn a_directory_is_read_with_its_subdirectories_if_that_is_asked() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("UTF-8");
    let none = run(&["validate", "-f", path], "");
    let expected = format!(
        "otel-webhook: {path}: the directory has no files *.yaml, *.yml or *.json; --recursive reads its subdirectories\n"
    );
    assert_eq!((&*none.err, none.code), (&*expected, 2));
    std::fs::create_dir(dir.path().join("team")).expect("a directory");
    std::fs::write(dir.path().join("b.yaml"), INSTRUMENTATION).expect("a file");
    std::fs::write(dir.path().join("team/a.yml"), BAD).expect("a file");
    let names = |arguments: &[&str]| {
        let found = values(&run(&[&["validate", "-f", path, "-o", "json"], arguments].concat(), ""));
        found.iter().map(|object| object["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["inst"]);
    assert_eq!(names(&["-R"]), ["inst", "bad"]);
}

#[test]
fn yaml_has_one_document_an_instrumentation() {
    let run = validate(&["-o", "yaml"], &[BAD, INSTRUMENTATION]);
    let begins: Vec<_> = run.out.split("---\n").skip(1).map(|one| one.lines().next()).collect();
    assert_eq!(begins, [Some("kind: Instrumentation"); 2], "{}", run.out);
    assert!(
        run.out.contains("allowed: false\n") && run.out.contains("- field: spec.propagators[0]\n"),
        "{}",
        run.out
    );
}

#[test]
fn a_workload_is_allowed_with_its_warnings() {
    let run = validate(&["-o", "json"], &[&pod("name: p")]);
    let warning = json!({
        "kind": "NoInstrumentation",
        "field": "metadata.annotations[instrumentation.opentelemetry.io/inject-java]",
        "message": "java: there is no Instrumentation in namespace \"default\" and no default is set; create \
            one, or name one as namespace/name",
    });
    let expected = json!({
        "kind": "Pod", "namespace": "default", "name": "p", "allowed": true, "errors": [], "warnings": [warning],
        "notes": [],
    });
    assert_eq!((values(&run), run.code), (vec![expected], 0));
    assert_eq!(validate(&["--strict"], &[&pod("name: p")]).code, 1);
}

#[test]
fn a_volume_that_is_smaller_than_its_agent_is_warned_of() {
    let limited = |limit: &str| {
        let java =
            format!("spec:\n  java: {{volumeLimitSize: {limit}, extensions: [{{image: e, dir: /e}}]}}");
        INSTRUMENTATION.replace("spec:", &java)
    };
    let expected = "  warning  spec.java.volumeLimitSize: 33Mi is less than the size of the agent (34Mi), so the kubelet may evict \
        its pods; valid: at least 34Mi, or volumeClaimTemplate\n";
    let small = validate(&[], &[&limited("33Mi")]);
    assert!(small.out.contains(expected), "{}", small.out);
    for (arguments, limit) in [(&[][..], "34Mi"), (&["--agent-size=extension=1Mi"], "25Mi")] {
        let fine = validate(arguments, &[&limited(limit)]);
        assert!(!fine.out.contains("less than the size of the agent"), "{}", fine.out);
    }
}

#[test]
fn one_that_is_too_large_is_warned_of_and_not_used() {
    let large = INSTRUMENTATION
        .replace("spec:", &format!("spec:\n  env: [{{name: A, value: {}}}]", "a".repeat(2_048)));
    let problem = "and the maximum is 2Ki (--max-instrumentation-size)";
    let run = validate(&["--max-instrumentation-size=2Ki"], &[&large]);
    let warning =
        run.out.lines().find(|line| line.starts_with("  warning  spec: its JSON has ")).unwrap_or_default();
    let expected = format!("Ki, {problem}; the webhook does not use this Instrumentation");
    assert!(warning.ends_with(&expected) && run.code == 0, "{}", run.out);
    assert!(!validate(&[], &[&large]).out.contains("its JSON has"));
    let explain = ["explain", "-f", "-", "--max-instrumentation-size=2Ki"];
    let explained = super::run(&explain, &[&large, &*pod("name: p")].join("---\n"));
    assert!(
        explained.out.contains("InstrumentationInvalid") && explained.out.contains(problem),
        "{}",
        explained.out
    );
    let wrong = validate(&["--max-instrumentation-size=2KB"], &[&large]);
    assert!(
        wrong.err.contains("\"2KB\" is not a size; valid: a quantity above zero, such as 128Ki"),
        "{}",
        wrong.err
    );
}

#[test]
fn the_exit_code_tells_what_was_found() {
    let good = INSTRUMENTATION.replace("spec:", "spec:\n  sampler: {type: always_on}");
    let argument = INSTRUMENTATION.replace("spec:", "spec:\n  sampler: {argument: \"0.25\"}");
    for (arguments, document, code) in [
        (&[][..], &*good, 0),
        (&["--strict"], &*good, 0),
        (&[], INSTRUMENTATION, 0),
        (&["--strict"], INSTRUMENTATION, 0),
        (&["--strict"], &*argument, 1),
        (&[], BAD, 1),
        (&[], "kind: [\n", 2),
        (&[], "kind: Instrumentation\n", 2),
        (&["--source", "/nowhere"], &*good, 2),
    ] {
        assert_eq!(validate(arguments, &[document]).code, code, "{arguments:?} {document}");
    }
}

#[test]
fn ties_are_seen_in_the_stream_and_in_the_source() {
    let other = INSTRUMENTATION.replace("name: inst", "name: other");
    let run = validate(&[], &[INSTRUMENTATION, &other]);
    assert!(run.out.contains("ties with \"other\"") && run.out.contains("ties with \"inst\""), "{}", run.out);
    let source = tempfile::tempdir().expect("a folder");
    std::fs::write(source.path().join("other.yaml"), other).expect("a file");
    let folder = source.path().to_str().expect("text");
    let run = validate(&["--source", folder], &[INSTRUMENTATION]);
    assert!(run.out.contains("ties with \"other\""), "{}", run.out);
}

#[test]
fn an_image_that_is_kept_or_replaced_is_noted() {
    for (index, (image, said)) in RECORDED.into_iter().enumerate() {
        let run = validate(&["--strict"], &[&with_recorded(image)]);
        let expected = format!(
            "Instrumentation/inst in namespace default: allowed\n  note     spec.java.image: {said}\n"
        );
        assert_eq!((&*run.out, run.code), (&*expected, 0));
        let kind = if index == 0 { "image-replaced:java" } else { "image-kept:java" };
        let note = json!({"kind": kind, "field": "spec.java.image", "message": said});
        assert_eq!(values(&validate(&["-o", "json"], &[&with_recorded(image)]))[0]["notes"], json!([note]));
    }
}

#[test]
fn an_image_that_is_not_upgraded_across_a_blocked_version_is_warned_of() {
    let image = "ghcr.io/open-telemetry/opentelemetry-operator/autoinstrumentation-java:1.33.6";
    let message = format!(
        "{image:?} is at a version that cannot be automatically upgraded: 2.0.0 has breaking changes of HTTP semantic conventions; set the \
         image to upgrade"
    );
    for object in [with_recorded(image), with_recorded(image).replacen(image, "own:1", 1)] {
        let run = validate(&["-o", "json"], &[&object]);
        let warning =
            json!({"kind": "image-not-upgradable:java", "field": "spec.java.image", "message": message});
        let found = &values(&run)[0];
        // Java 1.x sends by gRPC, and the endpoint has the port of HTTP.
        let warnings = found["warnings"].as_array().expect("a list").iter();
        let of_images: Vec<_> = warnings.filter(|one| one["field"] == "spec.java.image").collect();
        assert_eq!((of_images, &found["notes"], run.code), (vec![&warning], &json!([]), 0));
        assert_eq!(validate(&["--strict"], &[&object]).code, 1);
    }
}
