//! Mistakes that users make, one row each: found in the terminal, and later without it.

use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use otel_webhook_review::LONGEST_WARNING;
use otel_webhook_testkit::{
    cluster::manifests::instrumentation,
    objects::items,
    until::{poll, until},
};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::controller::{Controller, deployment};
use crate::program::{check, program, run};
use crate::registration;

const ROWS: &str = include_str!("../mistakes.yaml");

/// The namespace of the objects.
const NAMESPACE: &str = "mistakes";

/// One mistake.
struct Row {
    /// What is wrong, for messages of the test.
    what: String,
    /// The object.
    object: Value,
    /// The field that everything names.
    field: String,
    /// A part of what is reported as wrong.
    fault: String,
    /// A part of the remedy.
    remedy: String,
    /// Whether it is found without a decision; the others are skipped pods.
    is_in_metadata: bool,
}

impl Row {
    fn of(number: usize, row: &Value, objects: &Value) -> Self {
        let text = |field: &str| row[field].as_str().expect(field).to_owned();
        let (kind, name) = (text("kind"), format!("mistake-{number}"));
        let path = match (&*text("at"), &*kind) {
            ("own", _) | (_, "Pod") => "/metadata",
            ("jobs", _) => "/spec/jobTemplate/metadata",
            (_, "CronJob") => "/spec/jobTemplate/spec/template/metadata",
            _ => "/spec/template/metadata",
        };
        let list = if row["labels"].is_object() { "labels" } else { "annotations" };
        let entries = row[list].as_object().expect("annotations or labels");
        let object = objects[&kind].to_string().replace("NAME", &name);
        let mut object: Value = serde_json::from_str(&object).expect("JSON");
        let metadata = object.pointer_mut(path).and_then(Value::as_object_mut).expect("metadata");
        let all = metadata.entry(list).or_insert_with(|| json!({}));
        all.as_object_mut().expect("an object").extend(entries.clone());
        let dotted = path.trim_start_matches('/').replace('/', ".");
        let field = format!("{dotted}.{list}[{}]", entries.keys().next().expect("one at least"));
        let is_in_metadata = row["decided"] != true;
        if !is_in_metadata {
            object["spec"]["replicas"] = json!(1);
        }
        let (fault, remedy) = (text("fault"), text("remedy"));
        Self { what: text("what"), object, field, fault, remedy, is_in_metadata }
    }

    fn kind(&self) -> &str {
        self.object["kind"].as_str().expect("a kind")
    }

    /// Whether the controller reads the object, or its metadata is that of a pod.
    fn is_watched(&self) -> bool {
        self.is_in_metadata && !["Job", "ReplicaSet"].contains(&self.kind())
    }

    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().expect("a name")
    }
}

/// An Instrumentation that opts pods in by a label.
fn selecting() -> Value {
    let spec = json!({"inject": ["java"], "selector": {"matchLabels": {"runtime": "jvm"}}});
    instrumentation(NAMESPACE, "jvm", &spec)
}

/// A kind that brings its own controller; here it has none.
fn rollouts() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.argoproj.io"},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "names": {"plural": "rollouts", "singular": "rollout", "kind": "Rollout"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// Each is in the terminal of a client that shows warnings, and is found by all three subcommands in what a client
/// stored that drops them.
pub fn found_everywhere(cluster: &Cluster) {
    cluster.instrumented_namespace(NAMESPACE);
    cluster.apply(&selecting());
    cluster.apply(&rollouts());
    until("rollouts are served", || cluster.plane.kubectl(&["get", "rollouts.argoproj.io"]).ok.then_some(()));
    let registered = registration::register_workloads(&cluster.plane, &cluster.webhook, NAMESPACE);
    let table: Value = serde_saphyr::from_str(ROWS).expect("YAML");
    let rows = items(&table["rows"]).enumerate();
    let rows: Vec<_> = rows.map(|(number, row)| Row::of(number, row, &table["objects"])).collect();
    until("the registration is in effect", || shown(cluster, &rows[0]).contains("Warning").then_some(()));

    for row in &rows {
        let terminal = shown(cluster, row);
        let lines: Vec<_> =
            terminal.lines().filter(|line| line.starts_with("Warning: otel-webhook: ")).collect();
        let is_told = |line: &&&str| line.contains(&row.fault) && line.contains(&row.remedy);
        let line = lines.iter().find(is_told).unwrap_or_else(|| panic!("{}: {lines:?}", row.what));
        // A pod is created alone, and its warnings name no object. A long warning leaves it to kubectl's output.
        let about = format!("{} {}: ", row.kind(), row.name());
        let has_room = line.len() - "Warning: ".len() + about.len() <= LONGEST_WARNING;
        assert!(row.kind() == "Pod" || line.contains(&about) || !has_room, "{line}");
    }
    // Nobody sees the warnings of these.
    for row in &rows {
        cluster.apply(&row.object);
    }
    drop(registered);

    let mut missing = Vec::new();
    let found = poll(|| {
        let checked = check(&cluster.plane, &["--own-flags"]);
        missing = not_found(&rows, |row| is_checked(&checked.found, row));
        missing.is_empty().then_some(checked)
    });
    let found = found.unwrap_or_else(|| panic!("check does not find {missing:?}"));
    assert!(!found.codes().contains(&"RequestsMet"), "{:?}", found.codes());
    for row in &rows {
        let validated = report("validate", row);
        let warning = validated.iter().filter(|one| is_of(one, row)).flat_map(|one| items(&one["warnings"]));
        assert!(any(warning, row, &["message"]), "validate: {}: {validated:?}", row.what);
        let explained = report("explain", row);
        let own = || explained.iter().filter(|one| is_of(one, row));
        let mistakes = own().flat_map(|one| items(&one["mistakes"]));
        let findings = own().flat_map(|one| items(&one["findings"]));
        let is_explained = any(mistakes, row, &["message", "remedy"]) || any(findings, row, &["reason"]);
        assert!(is_explained, "explain: {}: {explained:?}", row.what);
    }
    seen_in_the_cluster(cluster, &rows);
    cluster.run(&["delete", "crd", "rollouts.argoproj.io"]);
    println!("{} mistakes, each in the terminal, in check, in explain and in validate", rows.len());
}

/// Each is in an Event of its object, in the report of the controller, in the output of `status`, and no longer once it
/// is mended.
fn seen_in_the_cluster(cluster: &Cluster, rows: &[Row]) {
    let controller = Controller::new(cluster);
    let started = Instant::now();
    controller.start();
    let is_seen = |found: &[Value], row: &Row| {
        found.iter().any(|one| is_of(one, row) && one["field"] == *row.field && is_told(one, row))
    };
    let mistakes =
        || -> Vec<Value> { items(&controller.report().unwrap_or_default()["mistakes"]).cloned().collect() };
    let mut missing = Vec::new();
    let reported = poll(|| {
        let found = mistakes();
        missing = not_found(rows, |row| !row.is_watched() || is_seen(&found, row));
        missing.is_empty().then_some(())
    });
    assert!(reported.is_some(), "the report of the controller lacks {missing:?}");
    println!("in the report {:?} after the controller's start", started.elapsed());
    let status = run(&cluster.plane, "status", &["--own-flags"]).found.remove(0);
    let status: Vec<_> = items(&status["mistakes"]).cloned().collect();
    for row in rows.iter().filter(|row| row.is_watched()) {
        assert!(is_seen(&status, row), "status: {}: {status:?}", row.what);
    }
    let told = poll(|| {
        let events =
            cluster.plane.kubectl(&["get", "events.events.k8s.io", "--all-namespaces", "-o", "json"]);
        let events: Value = serde_json::from_str(&events.stdout).expect("JSON");
        let has_event = |row: &Row| {
            items(&events["items"]).any(|event| {
                let note = event["note"].as_str().unwrap_or_default();
                is_of(&event["regarding"], row) && note.contains(&row.fault) && note.contains(&row.remedy)
            })
        };
        missing = not_found(rows, |row| !row.is_watched() || has_event(row));
        missing.is_empty().then_some(())
    });
    assert!(told.is_some(), "no Event for {missing:?}");
    println!("each in an Event {:?} after the controller's start", started.elapsed());
    assert!(controller.page().contains("<h2 id=\"mistakes\">"), "the page has no mistakes");
    let metric = || controller.metric("otel_webhook_mistakes{code=\"unknown-annotation\"}");
    assert!(metric().is_some_and(|count| count > 0), "{:?}", metric());
    let stored = cluster.get(NAMESPACE, &["otelinst", "default"]);
    assert_eq!(items(&stored["status"]["mistakes"]).count(), 5, "{}", stored["status"]);

    let place = ["deployment/late", "--namespace", NAMESPACE];
    cluster.apply(&deployment(NAMESPACE, "late", 0));
    let key = "instrumentation.opentelemetry.io/inject-pyton";
    cluster.annotate(&[&place[..], &[&format!("{key}=true")]].concat());
    let annotated = Instant::now();
    let note = cluster.events(NAMESPACE, "late", "Mistake").remove(0);
    assert!(note.contains("did you mean \"inject-python\"?"), "{note}");
    println!("a mistake of a running controller's cluster is in an Event after {:?}", annotated.elapsed());
    let is_late = |one: &Value| one["name"] == "late";
    until("it is reported", || mistakes().iter().any(is_late).then_some(()));
    cluster.annotate(&[&place[..], &[&format!("{key}-")]].concat());
    until("it is mended", || (!mistakes().iter().any(is_late)).then_some(()));
    controller.stop();
}

/// Returns the rows for which something does not hold.
fn not_found(rows: &[Row], holds: impl Fn(&Row) -> bool) -> Vec<String> {
    rows.iter().filter(|row| !holds(row)).map(|row| format!("{} ({})", row.what, row.name())).collect()
}

fn is_told(one: &Value, row: &Row) -> bool {
    let text: String =
        ["message", "remedy"].iter().map(|name| one[*name].as_str().unwrap_or_default()).collect();
    text.contains(&row.fault) && text.contains(&row.remedy)
}

/// What kubectl prints in addition to its output when the object is created.
fn shown(cluster: &Cluster, row: &Row) -> String {
    let ran = cluster.plane.kubectl_in(&["create", "--dry-run=server", "-f", "-"], &row.object.to_string());
    assert!(ran.ok, "{}: {}", row.what, ran.stderr);
    ran.stderr
}

/// Whether `check` names the object, the field, the fault and the remedy.
fn is_checked(found: &[Value], row: &Row) -> bool {
    let own = found.iter().filter(|one| is_of(&one["object"], row));
    any(own, row, &["message", "advice"])
}

/// Whether one of these has the field, and the fault and the remedy in these texts.
fn any<'v>(mut all: impl Iterator<Item = &'v Value>, row: &Row, texts: &[&str]) -> bool {
    all.any(|one| {
        let text: String = texts.iter().map(|name| one[*name].as_str().unwrap_or_default()).collect();
        one["field"] == *row.field && text.contains(&row.fault) && text.contains(&row.remedy)
    })
}

fn is_of(object: &Value, row: &Row) -> bool {
    object["kind"] == row.kind() && object["name"] == row.name()
}

/// Runs a subcommand on the manifest and the Instrumentations of the namespace.
fn report(subcommand: &str, row: &Row) -> Vec<Value> {
    let instrumentation = instrumentation(NAMESPACE, "default", &json!({}));
    let mut running = program()
        .args([subcommand, "-f", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = running.stdin.take().expect("a pipe");
    write!(input, "{instrumentation}\n---\n{}\n---\n{}\n", selecting(), row.object).expect("it reads");
    drop(input);
    let output = running.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}
