//! Log events and their fields.

use std::collections::BTreeSet;

use super::{
    beginning, code, prose,
    source::{self, Event},
    table,
};

/// The fields, and what they say.
const FIELDS: &[(&str, &str)] = &[
    ("address", "address and port that the server listens on"),
    ("ahead", "by how much the clock of the API server is ahead of this host's"),
    ("allowed", "names of clients that `--client-name` allows"),
    ("annotation", "annotation by which cert-manager is configured to set `caBundle`"),
    ("by", "field manager of the client that changed `caBundle`"),
    ("ca", "serial number of the CA of the managed certificate"),
    ("config", "hash of the configuration for which a workload was restarted"),
    ("configuration", "webhook configuration"),
    ("consequence", "what the missing decision means for the object"),
    ("delay", "time until the server stops to respond (`--shutdown-delay`)"),
    ("error", "error of the operation, with its causes"),
    ("faults", "what was invalid in the Secret of the managed certificate"),
    ("fields", "fields for which an Instrumentation was rejected"),
    ("file", "path of a file"),
    ("files", "number of files of the source directory"),
    ("findings", "reason code of each language and container, as in `java/order=Injected`"),
    ("grace", "time that requests in flight had to end"),
    ("injected", "whether anything was injected into the pod"),
    ("instrumentation", "`namespace/name` of an Instrumentation"),
    ("kind", "kind of the objects"),
    ("language", "language, such as `java`"),
    ("lease", "Lease by which one replica of the controller leads"),
    ("left", "number of connections that were closed with requests in flight"),
    ("location", "file and line of the code that panicked"),
    ("lookup", "what was looked up at the API server"),
    ("micros", "time that the decision took, in microseconds"),
    ("name", "name of an object"),
    ("names", "names of webhook configurations"),
    ("namespace", "namespace of the object"),
    ("not_after", "when the certificate expires"),
    ("object", "kind and name of an object"),
    ("owner", "controller of the pod, or its own name"),
    ("page", "number of objects of a page of a list"),
    ("panic", "message of the panic"),
    ("peer", "address of the client"),
    ("pod", "pod that was evicted, or cannot be evicted"),
    ("problem", "what is wrong with the object"),
    (
        "reason",
        "reason code and sentence of what was opted in to and not injected, or why something was stopped",
    ),
    ("signal", "signal that the process received"),
    ("source", "directory of `--source`"),
    ("timeout", "time after which the lookup was abandoned"),
    ("unread", "number of pods that were not read yet"),
    ("warned", "codes of the [warnings](reasons.md#warnings), as in `java/order=EndpointWithoutScheme`"),
    ("what", "what is watched"),
    ("workload", "kind, namespace and name of a workload"),
];

pub fn page() -> String {
    let purpose = "What the log has: a line for each event, on standard error. With `--log-format json` each line is an \
                   object with `timestamp`, `level`, `target`, `message`, and the fields below. Only the fields \
                   `reason` and `code` are a [stable interface](../versioning.md#what-is-the-interface).";
    let mut text = beginning("Log fields", purpose) + "\n## Fields\n\n";
    text += &table(
        ["field", "meaning"],
        FIELDS.iter().map(|(name, meaning)| [code(name), (*meaning).to_owned()]),
    );
    text += "\n## Events\n\nWords in braces stand for names and values.\n\n";
    let row = |event: Event| {
        let fields: Vec<_> = event.fields.iter().map(code).collect();
        [event.level, prose(&event.message), fields.join(", ")]
    };
    text += &table(["level", "message", "fields"], source::events().into_iter().map(row));
    text
}

#[test]
fn every_field_of_the_log_is_explained() {
    let used: BTreeSet<_> = source::events().into_iter().flat_map(|event| event.fields).collect();
    let known: BTreeSet<_> = FIELDS.iter().map(|field| field.0.to_owned()).collect();
    assert_eq!(known, used);
}
