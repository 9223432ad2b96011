//! The tools, and what they give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

/// Both have to make the same of the chart.
pub const HELMS: [&str; 2] = ["helm3", "helm4"];

/// Neither of these is where a default could hide a mistake.
pub const RELEASE: &str = "agents";
pub const NAMESPACE: &str = "observability";

/// One of the programs that `make chart` builds.
pub fn tool(name: &str) -> PathBuf {
    let folder = std::env::var_os("OTEL_WEBHOOK_CHART_TOOLS")
        .expect("OTEL_WEBHOOK_CHART_TOOLS names no folder of programs: run `make chart`");
    Path::new(&folder).join(name)
}

/// A path in this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn chart() -> PathBuf {
    repository("charts/otel-webhook")
}

/// The files of the matrix, in the order of their names.
pub fn matrix() -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(repository("tests/chart/values"))
        .expect("the matrix")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files
}

/// A file of the matrix by its name.
pub fn values(name: &str) -> PathBuf {
    repository(&format!("tests/chart/values/{name}.yaml"))
}

/// Runs a tool; gives what it prints, or its complaint.
pub fn run(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).expect("text"));
    if status.success() { Ok(stdout) } else { Err(stdout + &stderr) }
}

/// `helm template` of the chart with further arguments, as text.
pub fn template(helm: &str, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(tool(helm));
    run(command.args(["template", RELEASE, "--namespace", NAMESPACE]).arg(chart()).args(args))
}

/// What one file of the matrix gives, as text.
pub fn template_of(helm: &str, values: &Path) -> String {
    let values = values.to_str().expect("a path of letters");
    template(helm, &["--values", values])
        .unwrap_or_else(|complaint| panic!("{helm} with {values}: {complaint}"))
}

/// The matrix, rendered once for all tests.
static RENDERED: LazyLock<BTreeMap<PathBuf, Vec<Value>>> = LazyLock::new(|| {
    let render = |file: PathBuf| {
        let objects = objects(&template_of("helm3", &file));
        (file, objects)
    };
    matrix().into_iter().map(render).collect()
});

/// The objects of one file of the matrix, as helm 3 renders them.
pub fn objects_of(values: &Path) -> &'static [Value] {
    &RENDERED[values]
}

/// The objects that single values give.
pub fn objects_with(set: &[&str]) -> Vec<Value> {
    let args: Vec<_> = set.iter().flat_map(|value| ["--set", value]).collect();
    objects(&template("helm3", &args).unwrap_or_else(|complaint| panic!("{set:?}: {complaint}")))
}

/// The objects of a stream of YAML, without what helm says in comments alone.
pub fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// The objects of one kind.
pub fn of_kind<'o>(objects: &'o [Value], kind: &str) -> Vec<&'o Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The object of a kind that is there once.
pub fn the<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    let found = of_kind(objects, kind);
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

/// The label that tells components apart.
const COMPONENT: &str = "app.kubernetes.io/component";

/// The objects of a kind that select the pods of a component.
pub fn of_component<'o>(objects: &'o [Value], kind: &str, component: &str) -> Vec<&'o Value> {
    let selects = |object: &&Value| selector(object)[COMPONENT] == component;
    of_kind(objects, kind).into_iter().filter(selects).collect()
}

/// The labels by which an object selects pods.
pub fn selector(object: &Value) -> &Value {
    let places = ["/spec/selector/matchLabels", "/spec/podSelector/matchLabels", "/spec/selector"];
    places.iter().find_map(|place| object.pointer(place)).unwrap_or(&Value::Null)
}

/// The Deployment of a component.
pub fn deployment<'o>(objects: &'o [Value], component: &str) -> &'o Value {
    let found = of_component(objects, "Deployment", component);
    assert_eq!(found.len(), 1, "{component}");
    found[0]
}

/// The specification of the webhook's pods.
pub fn server(objects: &[Value]) -> &Value {
    &deployment(objects, "webhook")["spec"]["template"]["spec"]
}

/// The Service that the API server calls for reviews, and that of the webhook's metrics.
pub fn services(objects: &[Value]) -> [&Value; 2] {
    let mut services = of_component(objects, "Service", "webhook");
    // That of conversions.
    services.retain(|service| service["spec"]["publishNotReadyAddresses"] != true);
    let of = |component| {
        let has = |service: &&&Value| service["metadata"]["labels"][COMPONENT].as_str() == Some(component);
        *services.iter().find(has).expect(component)
    };
    assert_eq!(services.len(), 2);
    ["webhook", "metrics"].map(of)
}

/// The arguments of the server.
pub fn args(objects: &[Value]) -> Vec<String> {
    args_of(objects, "webhook")
}

/// The arguments of a component.
pub fn args_of(objects: &[Value], component: &str) -> Vec<String> {
    let args = &deployment(objects, component)["spec"]["template"]["spec"]["containers"][0]["args"];
    serde_json::from_value(args.clone()).expect("arguments")
}
