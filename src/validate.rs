//! `validate`: validates the Instrumentations of a stream, and reports the warnings for its workloads.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{
    flags::InjectionFlags,
    output::{Failure, ReportFlags},
    stream::{Inputs, StreamFlags},
    workload::{self, is_instrumentation},
};
use otel_webhook_api as api;
use otel_webhook_api::validation::{self, Verdict, Warning};
use otel_webhook_inject::limits::{Limit, LimitKind};
use otel_webhook_review::one_line;
use otel_webhook_server::admission;
use otel_webhook_store::manifest::TypeMeta;

/// Flags of `validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    #[command(flatten)]
    input: StreamFlags,

    #[command(flatten)]
    report: ReportFlags,

    /// Exit with status 1 on warnings as well
    #[arg(long, help_heading = "Output")]
    strict: bool,

    #[command(flatten)]
    injection: InjectionFlags,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Validate an Instrumentation:
    otel-webhook validate -f instrumentation.yaml
  In a pipeline, with the Instrumentations of a directory:
    helm template shop ./chart | otel-webhook validate -f - -n shop --source instrumentations/ --strict -o json

Exit status: 0; 1 on errors, and with --strict on warnings; 2 if the input cannot be read or a document has no
apiVersion or kind.";

/// The result for one object.
struct Checked {
    kind: String,
    namespace: String,
    name: String,
    verdict: Verdict,
}

/// Runs the subcommand.
///
/// # Errors
/// If the input cannot be read, or the output cannot be written.
pub fn run(args: &ValidateArgs) -> Result<ExitCode, Failure> {
    let streams = args.input.files.read()?;
    let mut documents = streams.documents()?;
    let inputs = Inputs::new(&args.input, &args.injection, &documents)?;
    let mut checked = Vec::new();
    for document in &mut documents {
        workload::each_object(&mut document.value, &mut |object, object_type| {
            if is_instrumentation(object_type) {
                checked.push(check(object, &object_type.kind, args, &inputs));
            } else {
                checked.extend(advise(object, object_type, args, &inputs));
                checked.extend(read_limit(object, object_type, args));
            }
        });
    }
    let is_bad =
        |one: &Checked| !one.verdict.is_allowed() || (args.strict && !one.verdict.warnings.is_empty());
    let code = ExitCode::from(u8::from(checked.iter().any(is_bad)));
    args.report.write(code, || table_of_all(&checked), || checked.iter().map(Checked::object))
}

/// Defaults and validates an Instrumentation, as a cluster does.
fn check(object: &mut Value, kind: &str, args: &ValidateArgs, inputs: &Inputs) -> Checked {
    let images = args.injection.images();
    let (namespace, name) = identity(object, args);
    // Before defaulting, which replaces images.
    let mut before = Verdict::default();
    validation::check_images(&mut before, object, &images);
    let patch = api::defaulting(object, &images);
    json_patch::patch(object, &patch).expect("the operations are made for this object");
    let mut verdict =
        admission::validate(object, None, &namespace, inputs.catalogue(), &images, inputs.settings());
    let replaced: Vec<_> = before.notes.into_iter().filter(|note| !verdict.notes.contains(note)).collect();
    verdict.notes.extend(replaced);
    Checked { kind: kind.to_owned(), namespace, name, verdict }
}

/// Returns the warnings of a cluster when the object is applied; none if it is neither a workload nor a namespace
/// with a mistake.
fn advise(object: &mut Value, of: &TypeMeta, args: &ValidateArgs, inputs: &Inputs) -> Option<Checked> {
    let (namespace, name) = identity(object, args);
    let verdict = admission::advise(object, &of.api_version, &of.kind, &inputs.around(&namespace), false)?;
    if of.kind == "Namespace" {
        let is_said = !verdict.warnings.is_empty();
        return is_said.then(|| Checked { kind: of.kind.clone(), namespace: String::new(), name, verdict });
    }
    Some(Checked { kind: of.kind.clone(), namespace, name, verdict })
}

/// Returns the parts of a LimitRange or ResourceQuota that cannot be read and are ignored, if there are any.
fn read_limit(object: &Value, of: &TypeMeta, args: &ValidateArgs) -> Option<Checked> {
    let is_kind = |kind: &LimitKind| of.api_version == "v1" && of.kind == kind.name();
    let mut problems = Vec::new();
    Limit::read(LimitKind::ALL.into_iter().find(is_kind)?, object, &mut problems);
    let warning = |problem: String| {
        let (field, message) = problem.split_once(": ").unwrap_or(("", &problem));
        Warning { kind: "limit-unreadable".into(), field: field.to_owned(), message: message.to_owned() }
    };
    let (namespace, name) = identity(object, args);
    let warnings: Vec<_> = problems.into_iter().map(warning).collect();
    let is_said = !warnings.is_empty();
    let verdict = Verdict { errors: Vec::new(), warnings, notes: Vec::new() };
    is_said.then_some(Checked { kind: of.kind.clone(), namespace, name, verdict })
}

/// Returns the namespace and name of an object.
fn identity(object: &Value, args: &ValidateArgs) -> (String, String) {
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let namespace = text("namespace").unwrap_or(args.input.namespace());
    let name = text("name").or_else(|| text("generateName")).unwrap_or_default();
    (namespace.to_owned(), name.to_owned())
}

fn table_of_all(checked: &[Checked]) -> String {
    if checked.is_empty() {
        return "The input contains no Instrumentations and no workloads.\n".to_owned();
    }
    checked.iter().map(Checked::table).collect::<Vec<_>>().join("\n")
}

impl Checked {
    fn table(&self) -> String {
        let Self { kind, namespace, name, verdict } = self;
        let outcome = if verdict.is_allowed() { "allowed" } else { "rejected" };
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        let mut lines = vec![format!("{kind}/{name}{place}: {outcome}")];
        lines.extend(verdict.errors.iter().map(|error| format!("  error    {error}")));
        lines.extend(verdict.warnings.iter().map(|warning| format!("  warning  {warning}")));
        lines.extend(verdict.notes.iter().map(|note| format!("  note     {note}")));
        lines.iter().map(|line| one_line(line) + "\n").collect()
    }

    fn object(&self) -> Value {
        let Self { kind, namespace, name, verdict } = self;
        let errors =
            verdict.errors.iter().map(|error| json!({"field": error.field, "message": error.message}));
        let objects = |list: &[Warning]| -> Vec<Value> {
            let object =
                |one: &Warning| json!({"kind": one.kind, "field": one.field, "message": one.message});
            list.iter().map(object).collect()
        };
        json!({
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "allowed": verdict.is_allowed(),
            "errors": errors.collect::<Vec<_>>(),
            "warnings": objects(&verdict.warnings),
            "notes": objects(&verdict.notes),
        })
    }
}
