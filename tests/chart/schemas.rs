//! JSON schemas for kubeconform, made of what API servers publish: their
//! OpenAPI, and the CRDs of other projects. Strict: a field that is not in the
//! schema is a mistake.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::fs;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::helm::{repository, tool};

/// The schemas of some kinds of one Kubernetes version, as files.
pub struct Schemas(TempDir);

impl Schemas {
    /// The versions of Kubernetes whose OpenAPI is there.
    pub fn versions() -> Vec<String> {
        let files = fs::read_dir(tool("schemas")).expect("the schemas").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let versions = names.filter_map(|name| {
            let version = name.strip_prefix("kubernetes-")?.strip_suffix(".json")?;
            Some(version.to_owned())
        });
        let versions: Vec<_> = versions.collect();
        assert_eq!(versions.len(), 2, "{versions:?}");
        versions
    }

    /// Panics where a kind is served by nobody.
    pub fn of(version: &str, kinds: &BTreeSet<(String, String)>) -> Self {
        let schemas = Self(tempfile::tempdir().expect("a folder"));
        let api = api(version);
        let definitions = api["definitions"].as_object().expect("definitions");
        let custom = custom_kinds();
        for (api_version, kind) in kinds {
            let schema = built_in(definitions, api_version, kind)
                .or_else(|| custom.get(&(api_version.clone(), kind.clone())).cloned())
                .unwrap_or_else(|| panic!("{version} has no {kind} of {api_version}"));
            fs::write(schemas.0.path().join(file_name(api_version, kind)), schema.to_string())
                .expect("written");
        }
        schemas
    }

    /// For kubeconform's `-schema-location`.
    pub fn location(&self) -> String {
        format!("{}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", self.0.path().display())
    }
}

/// The names of the fields of a definition of one Kubernetes version.
pub fn fields(version: &str, definition: &str) -> Vec<String> {
    let properties = &api(version)["definitions"][definition]["properties"];
    properties.as_object().expect(definition).keys().cloned().collect()
}

fn api(version: &str) -> Value {
    let path = tool("schemas").join(format!("kubernetes-{version}.json"));
    serde_json::from_slice(&fs::read(path).expect("OpenAPI")).expect("JSON")
}

/// Kind, first part of the group, and version, as kubeconform asks for it.
fn file_name(api_version: &str, kind: &str) -> String {
    let suffix = match api_version.split_once('/') {
        Some((group, version)) => format!("{}-{version}", group.split('.').next().unwrap_or(group)),
        None => api_version.to_owned(),
    };
    format!("{}-{suffix}.json", kind.to_lowercase())
}

/// The schema of a kind with all that it refers to.
fn built_in(definitions: &Map<String, Value>, api_version: &str, kind: &str) -> Option<Value> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let served = json!({"group": group, "kind": kind, "version": version});
    let (name, _) = definitions.iter().find(|(_, definition)| {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&served))
    })?;
    let mut needed = BTreeMap::new();
    let mut open = vec![name.clone()];
    while let Some(name) = open.pop() {
        let mut definition = definitions[&name].clone();
        if name.ends_with(".api.resource.Quantity") {
            // `cpu: 1` is one, too.
            definition["type"] = json!(["number", "string"]);
        }
        if let Entry::Vacant(entry) = needed.entry(name) {
            tighten(&mut definition, &mut open);
            entry.insert(definition);
        }
    }
    Some(json!({"$ref": format!("#/definitions/{name}"), "definitions": needed}))
}

/// The kinds of the CRDs of other projects, and our own.
fn custom_kinds() -> BTreeMap<(String, String), Value> {
    let files = fs::read_dir(tool("schemas").join("crds")).expect("CRDs").flatten();
    let own = repository("charts/otel-webhook/files/crd.yaml");
    let mut kinds = BTreeMap::new();
    for path in files.map(|file| file.path()).chain([own]) {
        let text = fs::read_to_string(&path).expect("a CRD");
        let crd: Value = serde_saphyr::from_str(&text).expect("YAML");
        let text = |value: &Value| value.as_str().expect("a name").to_owned();
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            let properties = schema["properties"].as_object_mut().expect("properties");
            properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
            properties.insert("kind".to_owned(), json!({"type": "string"}));
            properties.insert("metadata".to_owned(), json!({"type": "object"}));
            tighten(&mut schema, &mut Vec::new());
            let api_version = format!("{}/{}", text(&crd["spec"]["group"]), text(&version["name"]));
            kinds.insert((api_version, text(&crd["spec"]["names"]["kind"])), schema);
        }
    }
    kinds
}

/// Makes what Kubernetes publishes a strict JSON schema, and notes the definitions that it refers to.
fn tighten(schema: &mut Value, references: &mut Vec<String>) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        references.extend(reference.strip_prefix("#/definitions/").map(str::to_owned));
        return;
    }
    let format = object.get("format").and_then(Value::as_str).unwrap_or_default();
    let int_or_string = format == "int-or-string" || object.contains_key("x-kubernetes-int-or-string");
    if int_or_string {
        object.insert("type".to_owned(), json!(["integer", "string"]));
    }
    // The formats are Go's, such as "int32" and "quantity".
    object.remove("format");
    let keeps_unknown = object.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    if object.contains_key("properties") && !keeps_unknown {
        object.entry("additionalProperties").or_insert(json!(false));
    }
    if object.get("nullable") == Some(&json!(true)) {
        match object.get_mut("type") {
            Some(Value::Array(kinds)) => kinds.push(json!("null")),
            Some(kind) => *kind = json!([kind.clone(), "null"]),
            None => {}
        }
    }
    // Keywords that hold schemas; a property may have the name of a keyword.
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = object.get_mut(keyword) {
            tighten(inner, references);
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for inner in object.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            // They narrow what their parent has, and list no properties themselves.
            tighten_part(inner, references);
        }
    }
    for inner in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        tighten(inner.1, references);
    }
}

fn tighten_part(part: &mut Value, references: &mut Vec<String>) {
    tighten(part, references);
    if let Some(part) = part.as_object_mut()
        && part.get("additionalProperties") == Some(&json!(false))
    {
        part.remove("additionalProperties");
    }
}
