//! Decisions as rows: a pod, what is around it, and what comes of it (`tests/cases`, one file for each subject).
//!
//! A row of which `each` is a list stands for one row for each of its items, which are laid over it. With `for`, each
//! item is a map, and `<key>` becomes the value. In expected text `*` stands for any text, `@@257@@` for so many letters; `null` is what is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use otel_webhook_api::{
    ANNOTATION_PREFIX, Delivery, defaults::DefaultImages, quantity::Quantity, sizes::AgentSizes,
};
use otel_webhook_inject::{
    CrossNamespace, Finding, InitResources, Note, PrivilegedInit, STATUS, Warning, catalogue::Catalogue,
    helpers::Helpers, language::LanguageSet, reason::ObjectName,
};
use otel_webhook_testkit::{
    files,
    known::Known,
    models::{sanity, validity},
    objects::{self, asking, instrumentation, items},
    surroundings::{Injected, Surroundings},
    table,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Row {
    /// What it shows; `D` and a number first where the operator does something else.
    #[serde(rename = "what")]
    _what: String,

    /// The specification of the Instrumentation `inst`, if there are no others.
    #[serde(default = "nothing")]
    spec: Value,
    /// The specifications of all Instrumentations of the namespace by their names.
    instrumentations: Option<Map<String, Value>>,
    /// Laid over each Instrumentation.
    instrumentation: Option<Value>,
    /// The metadata of the pod's namespace; without it the namespace is unknown.
    namespace: Option<Value>,
    /// More objects.
    #[serde(default)]
    objects: Vec<Value>,
    #[serde(default)]
    settings: Given,

    /// The languages that the one container `app` opts in to.
    #[serde(default)]
    opt_in: Vec<String>,
    /// More fields of this container.
    #[serde(default = "nothing")]
    app: Value,
    /// Annotations under the prefix, in place of `optIn` or in addition to it.
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    /// Containers, in place of `app`; a text is a name.
    containers: Option<Vec<Value>>,
    /// Merged into the pod.
    #[serde(default = "nothing")]
    pod: Value,

    #[serde(flatten)]
    expected: Expected,
    /// Another review of the pod that comes out.
    again: Option<Again>,
}

/// Settings that differ from those of [`Surroundings::new`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools, reason = "rows name those that they set")]
struct Given {
    stamp: bool,
    safe_to_evict: bool,
    /// Resources of init containers as without the flag.
    neutral: bool,
    deny_privileged_init: bool,
    /// `--cross-namespace`, if not `allow`.
    cross_namespace: Option<String>,
    languages: Option<String>,
    delivery: Option<String>,
    /// The namespace of an Instrumentation `default` for all namespaces.
    default_in: Option<String>,
    /// The namespace of the release.
    release: Option<String>,
    /// Whether the Lease `leader` of the release has the annotation that pauses.
    paused_lease: bool,
    max_pod_size: Option<usize>,
    helpers: Vec<String>,
    registry: Option<String>,
    images: BTreeMap<String, String>,
    /// In mebibytes.
    sizes: BTreeMap<String, i128>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Expected {
    /// What came of each language, as `java/app: Injected`.
    codes: Option<Value>,
    /// All findings as sentences.
    findings: Option<Value>,
    /// All notes as sentences.
    notes: Option<Value>,
    warnings: Option<Value>,
    /// The codes of the warnings.
    warned: Option<Value>,
    /// The Instrumentations that were used.
    used: Option<Value>,
    /// What a finding or a note of it says.
    #[serde(default)]
    says: Vec<String>,
    /// The names in the lists of the pod's specification.
    #[serde(default)]
    names: BTreeMap<String, Value>,
    /// Variables of containers: a text is a value, an object where it comes from.
    #[serde(default)]
    env: BTreeMap<String, Map<String, Value>>,
    /// Resource attributes of containers.
    #[serde(default)]
    attributes: BTreeMap<String, Map<String, Value>>,
    /// Variables of containers in the order in which they stand.
    #[serde(default)]
    order: BTreeMap<String, Vec<String>>,
    /// JSON pointers that begin with a container, `spec`, `metadata` or `status`, the one of the stamp. An item of a
    /// list is its number or its name.
    #[serde(default)]
    at: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Again {
    /// Merged into the pod.
    #[serde(default = "nothing")]
    pod: Value,
    /// A container that is put before the others.
    first: Option<Value>,
    /// In place of the Instrumentation's.
    spec: Option<Value>,
    codes: Value,
    #[serde(default)]
    says: Vec<String>,
}

fn nothing() -> Value {
    json!({})
}

impl Row {
    fn around(&self, spec: &Value) -> Surroundings {
        let one = || Map::from_iter([("inst".to_owned(), spec.clone())]);
        let all = self.instrumentations.clone().unwrap_or_else(one);
        let own = all.into_iter().map(|(name, spec)| {
            let object = instrumentation(&name, spec);
            self.instrumentation.iter().fold(object, overlaid)
        });
        let namespace = self.namespace.iter().map(|metadata| {
            overlaid(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": objects::NAMESPACE}}),
                &json!({"metadata": metadata}),
            )
        });
        let mut around = Surroundings::new(own.chain(namespace).chain(self.objects.iter().cloned()));
        self.settings.set(&mut around);
        around
    }

    fn inject(&self, spec: &Value, pod: &Value) -> Injected {
        let around = self.around(spec);
        let known = Known::of(&around.objects, &around.images);
        let release = self.settings.release.as_deref();
        let lease = release.filter(|_| self.settings.paused_lease);
        let catalogue = Catalogue {
            release: release.map(Into::into),
            paused_lease: lease
                .map(|namespace| ObjectName { namespace: namespace.into(), name: "leader".into() }),
            ..known.catalogue
        };
        around.inject_knowing(pod, &catalogue, &known.owners)
    }

    fn pod(&self) -> Value {
        let languages: Vec<_> = self.opt_in.iter().map(String::as_str).collect();
        let mut pod = asking(&languages, self.app.clone());
        let annotations = pod["metadata"]["annotations"].as_object_mut().expect("annotations");
        if languages.is_empty() {
            annotations.clear();
        }
        annotations.extend(
            self.annotations.iter().map(|(key, value)| (format!("{ANNOTATION_PREFIX}{key}"), json!(value))),
        );
        if let Some(containers) = &self.containers {
            pod["spec"]["containers"] = containers.iter().map(container).collect();
        }
        json_patch::merge(&mut pod, &self.pod);
        pod
    }

    fn problems(&self) -> Vec<String> {
        let before = self.pod();
        let injected = self.inject(&self.spec, &before);
        let mut problems =
            [sanity::faults(&before, &injected.pod), validity::faults(&before, &injected.pod)].concat();
        let is_injected = injected.outcome.findings.iter().any(|finding| finding.reason.is_injected());
        if is_injected != (before["spec"] != injected.pod["spec"])
            || !is_injected && !self.settings.stamp && !injected.is_unchanged()
        {
            problems.push(format!("findings and patch disagree: {}", injected.outcome.patch));
        }
        if self.expected == Expected::default() && self.again.is_none() {
            problems.push("the row expects nothing".to_owned());
        }
        problems.extend(repeated_attributes(&injected.pod));
        problems.extend(self.expected.problems(&injected));
        if let Some(again) = &self.again {
            let mut pod = injected.pod;
            json_patch::merge(&mut pod, &again.pod);
            if let Some(first) = &again.first {
                pod["spec"]["containers"].as_array_mut().expect("containers").insert(0, first.clone());
            }
            let second = self.inject(again.spec.as_ref().unwrap_or(&self.spec), &pod);
            if !second.is_unchanged() {
                problems.push(format!("a second review changes the pod: {}", second.outcome.patch));
            }
            let expected = Expected {
                codes: Some(again.codes.clone()),
                says: again.says.clone(),
                ..Expected::default()
            };
            problems
                .extend(expected.problems(&second).into_iter().map(|problem| format!("again: {problem}")));
        }
        problems
    }
}

impl Given {
    fn set(&self, around: &mut Surroundings) {
        let settings = &mut around.settings;
        (settings.stamp, settings.safe_to_evict) = (self.stamp, self.safe_to_evict);
        if self.neutral {
            settings.init_resources = InitResources::Neutral;
        }
        if self.deny_privileged_init {
            settings.privileged_init = PrivilegedInit::Deny;
        }
        settings.cross_namespace = match self.cross_namespace.as_deref() {
            None | Some("allow") => CrossNamespace::Allow,
            Some("granted") => CrossNamespace::Granted,
            Some("deny") => CrossNamespace::Deny,
            Some(other) => panic!("{other} is not a mode"),
        };
        if let Some(list) = &self.languages {
            settings.languages = LanguageSet::parse(list).expect("languages");
        }
        if let Some(delivery) = &self.delivery {
            settings.delivery = Delivery::parse(delivery).expect("a delivery");
        }
        let default =
            |namespace: &String| ObjectName { namespace: namespace.as_str().into(), name: "default".into() };
        settings.default_instrumentation = self.default_in.as_ref().map(default);
        settings.max_pod_size = self.max_pod_size.unwrap_or(settings.max_pod_size);
        if !self.helpers.is_empty() {
            settings.helpers = Helpers::with(self.helpers.clone());
        }
        settings.sizes = AgentSizes::with(
            self.sizes.iter().map(|(name, size)| (name.clone(), Quantity::mebibytes(*size))),
        );
        around.images = DefaultImages { overrides: self.images.clone(), registry: self.registry.clone() };
    }
}

impl Expected {
    fn problems(&self, injected: &Injected) -> Vec<String> {
        let findings = || injected.outcome.findings.iter();
        let sentences: Vec<_> = findings().map(Finding::to_string).collect();
        let notes: Vec<_> = findings().flat_map(|finding| &finding.notes).map(Note::to_string).collect();
        let warned: Vec<_> = injected.outcome.all_warnings().iter().map(Warning::code).collect();
        let used = findings().filter_map(|finding| finding.instrumentation.as_ref());
        let used: Vec<_> = used.map(|used| used.name.to_string()).collect();
        let mut problems = Vec::new();
        for (what, found, expected) in [
            ("codes", json!(injected.codes()), &self.codes),
            ("findings", json!(sentences), &self.findings),
            ("notes", json!(notes), &self.notes),
            ("warnings", json!(injected.outcome.warnings()), &self.warnings),
            ("warned", json!(warned), &self.warned),
            ("used", json!(used), &self.used),
        ] {
            problems.extend(expected.iter().filter_map(|expected| difference(what, &found, expected)));
        }
        let is_said = |text: &&String| sentences.iter().chain(&notes).any(|said| is_like(said, text));
        let unsaid = self.says.iter().filter(|text| !is_said(text));
        problems.extend(unsaid.map(|text| format!("{text:?} is not in {sentences:?}, {notes:?}")));
        for (list, names) in &self.names {
            problems.extend(difference(list, &json!(injected.names(list)), names));
        }
        for (container, variables) in &self.env {
            for (name, expected) in variables {
                let variable = injected.env(container).into_iter().rfind(|one| one["name"] == *name);
                let member = if expected.is_object() { "valueFrom" } else { "value" };
                let found = variable.map_or(&Value::Null, |variable| &variable[member]);
                let is_absent = expected.is_null() && variable.is_none();
                let what = format!("{name} of {container}");
                problems.extend(difference(&what, found, expected).filter(|_| !is_absent));
            }
        }
        for (container, attributes) in &self.attributes {
            for (key, expected) in attributes {
                let found = json!(injected.attribute(container, key));
                problems.extend(difference(&format!("{key} of {container}"), &found, expected));
            }
        }
        for (container, names) in &self.order {
            let places: Vec<_> = names.iter().map(|name| injected.position(container, name)).collect();
            if places.contains(&None) || !places.is_sorted() {
                problems.push(format!("{names:?} stand at {places:?} in {container}"));
            }
        }
        problems
            .extend(self.at.iter().filter_map(|(path, value)| difference(path, &at(injected, path), value)));
        problems
    }
}

/// Resource attributes that a container has twice.
fn repeated_attributes(pod: &Value) -> Vec<String> {
    let lists = ["initContainers", "containers"];
    let variables =
        lists.iter().flat_map(|list| items(&pod["spec"][list])).flat_map(|one| items(&one["env"]));
    let values = variables
        .filter(|one| one["name"] == "OTEL_RESOURCE_ATTRIBUTES")
        .filter_map(|one| one["value"].as_str());
    let mut problems = Vec::new();
    for value in values {
        let mut keys = BTreeSet::new();
        let keys = value
            .split(',')
            .filter_map(|pair| Some(pair.split_once('=')?.0))
            .filter(|key| !keys.insert(*key));
        problems.extend(keys.map(|key| format!("{key} is there twice: {value}")));
    }
    problems
}

/// What is at a path of [`Expected::at`].
fn at(injected: &Injected, path: &str) -> Value {
    let (head, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    let stamp = || injected.pod["metadata"]["annotations"][STATUS].as_str().unwrap_or("null");
    let root = match head {
        "spec" | "metadata" => injected.pod[head].clone(),
        "status" => serde_json::from_str(stamp()).expect("JSON"),
        name => injected.container(name).cloned().unwrap_or_else(|| panic!("no container {name}")),
    };
    let named = |list: &Value, name: &str| items(list).find(|item| item["name"] == name).cloned();
    let step = |value: Value, segment: &str| {
        let found = value.pointer(&format!("/{segment}")).cloned();
        found.or_else(|| named(&value, segment)).unwrap_or_default()
    };
    rest.split('/').skip(1).fold(root, step)
}

/// A container by its name, or with its own fields.
fn container(given: &Value) -> Value {
    let given = if given.is_string() { json!({"name": given}) } else { given.clone() };
    let image = format!("{}:1", given["name"].as_str().unwrap_or_default());
    overlaid(json!({"image": image}), &given)
}

fn difference(what: &str, found: &Value, expected: &Value) -> Option<String> {
    (!agree(found, expected)).then(|| format!("{what}\n      found    {found}\n      expected {expected}"))
}

/// Whether a value is the expected one, with `*` in texts for any text.
fn agree(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::String(found), Value::String(expected)) => is_like(found, expected),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(one, other)| agree(one, other))
        }
        (Value::Object(found), Value::Object(expected)) => {
            found.len() == expected.len()
                && expected.iter().all(|(key, value)| found.get(key).is_some_and(|found| agree(found, value)))
        }
        _ => found == expected,
    }
}

fn is_like(text: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<_> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = text.split_once(part) else { return false };
        text = behind;
    }
    text.ends_with(tail)
}

/// An object with the members of another one over its own, `null` included.
fn overlaid(mut below: Value, over: &Value) -> Value {
    match (&mut below, over) {
        (Value::Object(below), Value::Object(over)) => {
            for (key, value) in over {
                let own = below.remove(key).unwrap_or_default();
                below.insert(key.clone(), overlaid(own, value));
            }
        }
        (below, over) => *below = over.clone(),
    }
    below
}

/// The rows that a row stands for.
fn expanded(mut row: Value) -> Vec<Value> {
    let mut take = |key: &str| row.as_object_mut().expect("a row").remove(key);
    if let Some(each) = take("each") {
        return items(&each).flat_map(|over| expanded(overlaid(row.clone(), over))).collect();
    }
    if let Some(all) = take("for") {
        return items(&all)
            .filter_map(Value::as_object)
            .flat_map(|values| expanded(filled_in(&row, values)))
            .collect();
    }
    vec![row]
}

/// A row with values for its placeholders.
fn filled_in(row: &Value, values: &Map<String, Value>) -> Value {
    let text = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.replace(&format!("<{key}>"), &value)
        })
    };
    match row {
        Value::String(own) => {
            let whole = values.iter().find(|(key, _)| *own == format!("<{key}>"));
            whole.map_or_else(|| json!(text(own)), |(_, value)| value.clone())
        }
        Value::Array(list) => list.iter().map(|item| filled_in(item, values)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (text(key), filled_in(value, values))).collect()
        }
        _ => row.clone(),
    }
}

/// All rows, as they are written, with the name of their file.
fn written() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let rows = |path: PathBuf| {
        let name = path.file_name().expect("a name").display().to_string();
        let mut rows: Vec<Value> = files::yaml(&path);
        rows.iter_mut().for_each(table::lengthen);
        rows.into_iter().map(move |row| (name.clone(), row))
    };
    files.flat_map(rows).collect()
}

/// What the rows show.
pub fn names() -> Vec<String> {
    let rows = written().into_iter().flat_map(|(_, row)| expanded(row));
    rows.filter_map(|row| row["what"].as_str().map(str::to_owned)).collect()
}

#[test]
fn every_row_has_its_outcome() {
    let mut failures = Vec::new();
    for (file, row) in written() {
        let rows = expanded(row);
        assert!(!rows.is_empty(), "{file}: a row stands for none");
        for (at, row) in rows.into_iter().enumerate() {
            let name = format!("{file}: {} (row {at} of it)", row["what"].as_str().unwrap_or_default());
            let row: Result<Row, _> = serde_json::from_value(row);
            let problems = match row {
                Ok(row) => catch_unwind(|| row.problems())
                    .unwrap_or_else(|_| vec!["it panics, see above".to_owned()]),
                Err(error) => vec![error.to_string()],
            };
            if !problems.is_empty() {
                failures.push(format!("{name}\n    {}", problems.join("\n    ")));
            }
        }
    }
    assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
}
