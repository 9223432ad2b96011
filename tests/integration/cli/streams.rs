//! How streams of documents come in and go out.

use std::process::{Command, Stdio};

use super::{INSTRUMENTATION, inject, pod, run, succeed, values};

#[test]
fn what_is_not_injected_comes_out_byte_for_byte() {
    for stream in [
        "# a comment\n\n---\n# another\napiVersion: v1 # why\nkind:   ConfigMap\ndata: {a: 'yes', b: 0777, c: 1.0}\n",
        "{\"kind\": \"A\",\n \"apiVersion\": \"v1\", \"n\": 1e3, \"n\": null}\n---\nkind: B\napiVersion: v1\n",
        "kind: A\napiVersion: v1\nbig: 9007199254740993\nhuge: 123456789012345678901234567890",
        "",
    ] {
        assert_eq!(inject(&[], &[stream]).out, stream);
    }
}

#[test]
fn the_documents_around_an_injected_one_come_out_byte_for_byte() {
    let before = "# head\nkind: ConfigMap   # odd\napiVersion: v1\n---\n# the pod\n\n";
    let after = "---\n# tail\nkind: ConfigMap\napiVersion: v1\ndata: {}\n--- # last\n";
    let stream = format!("{INSTRUMENTATION}---\n{before}{}{after}", pod("name: p"));
    let out = inject(&[], &[&stream]).out;
    assert!(out.starts_with(&format!("{INSTRUMENTATION}---\n{before}apiVersion: v1\nkind: Pod\n")), "{out}");
    assert!(out.ends_with(after), "{out}");
    assert!(out.contains("JAVA_TOOL_OPTIONS"));
}

#[test]
fn an_injected_document_keeps_the_meaning_of_its_text() {
    let pod = "--- {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\", \"annotations\": {\
        \"instrumentation.opentelemetry.io/inject-java\": \"true\", \"a\": \"yes\", \"b\": \"0777\", \"c\": \"1e3\", \
        \"d\": \"x\\n y\\n\"}}, \"spec\": {\"containers\": [{\"name\": \"app\", \"image\": \"app:1\"}], \"x\": null}}\n";
    let stream = [INSTRUMENTATION, pod].concat();
    let yaml = inject(&[], &[&stream]).out;
    let again = inject(&["-o", "json"], &[&yaml]);
    assert_eq!(again.out, inject(&["-o", "json"], &[&stream]).out);
    let after = &values(&again)[1];
    assert_eq!(after["metadata"]["annotations"]["b"], "0777");
    assert_eq!(after["metadata"]["annotations"]["d"], "x\n y\n");
    assert!(after["spec"].as_object().unwrap().contains_key("x"));
}

#[test]
fn an_injected_json_pod_keeps_order_nulls_duplicates_and_integers() {
    let pod = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","spec":{"z":null,"containers":[{"tty":null,"name":"app","args":["a","a"],"#,
        r#""image":"app:1","n":9007199254740993}],"big":18446744073709551615},"metadata":{"annotations":"#,
        r#"{"instrumentation.opentelemetry.io/inject-sdk":"true"},"name":"p"}}"#
    );
    let run = inject(&["-o", "json"], &[INSTRUMENTATION, pod]);
    let line = run.out.lines().last().expect("the pod");
    let kept = line.split_once(",\"env\":[").expect("variables").0;
    assert_eq!(kept, &pod[..kept.len()]);
    assert!(line.ends_with(&pod[pod.find("}],\"big\"").expect("there")..]), "{line}");
}

#[test]
fn json_and_yaml_go_out_as_one_stream() {
    let json = r#"{"apiVersion":"v1","kind":"A"}"#;
    let run = inject(&[], &[&format!("{json}{json}\n---\nkind: B\napiVersion: v1")]);
    assert_eq!(run.out, format!("{json}\n---\n{json}\n---\nkind: B\napiVersion: v1"));
    let dir = tempfile::tempdir().unwrap();
    let files = [("a.yaml", "kind: A\napiVersion: v1"), ("b.yaml", "kind: B\napiVersion: v1\n"), ("c", json)];
    let paths = files.map(|(name, text)| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().expect("UTF-8").to_owned()
    });
    let run = succeed(&["inject", "-f", &paths[0], "-f", &paths[1], "-f", &paths[2]], "");
    assert_eq!(run.out, format!("kind: A\napiVersion: v1\n---\nkind: B\napiVersion: v1\n---\n{json}"));
}

#[test]
fn input_that_cannot_be_read_is_refused_with_its_place() {
    let good = "apiVersion: v1\nkind: A\n";
    for (stream, expected) in
        [(format!("{good}---\na: [1\n"), "document 2, line 4: invalid YAML: unclosed bracket")]
    {
        for arguments in [&["inject", "-f", "-"], &["explain", "-f", "-"]] {
            let run = run(arguments, &stream);
            assert_eq!(run.code, 2, "{}", run.err);
            assert_eq!(run.out, "", "nothing is written before everything is read");
            assert!(run.err.starts_with(&format!("otel-webhook: standard input: {expected}")), "{}", run.err);
        }
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(path("latin.yaml"), b"apiVersion: v1\nkind: A\na: \xe9\n").unwrap();
    std::fs::write(path("bad.yaml"), "kind: A\n").unwrap();
    for (arguments, expected) in [
        (vec!["inject", "-f", &path("none.yaml")], format!("{}: No such file", path("none.yaml"))),
        (
            vec!["inject", "-f", &path("latin.yaml")],
            format!("{}: line 3: not valid UTF-8", path("latin.yaml")),
        ),
        (
            vec!["inject", "-f", "-", "--source", &path("")],
            format!("{}bad.yaml: document 1, line 1: the document has no \"apiVersion\"", path("")),
        ),
        (vec!["explain", "-f", "-", "--source", &path("none")], format!("{}: No such file", path("none"))),
    ] {
        let run = run(&arguments, "");
        assert_eq!(run.code, 2, "{}", run.err);
        assert!(run.err.starts_with(&format!("otel-webhook: {expected}")), "{}\n{expected}", run.err);
    }
}

#[test]
fn an_empty_stream_is_no_failure() {
    for format in ["yaml", "json", "diff"] {
        let run = inject(&["-o", format], &[""]);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    }
}

#[test]
fn the_servers_other_source_is_no_directory_by_accident() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("kubernetes")).unwrap();
    let refused = run(&["explain", "-f", "-", "--source", "kubernetes"], "");
    assert_eq!(refused.code, 2);
    let named =
        ["invalid value 'kubernetes' for '--source <DIR>'", "valid for `serve` only", "\"./kubernetes\""];
    assert!(named.iter().all(|part| refused.err.contains(part)), "{}", refused.err);
    let path = dir.path().join("kubernetes");
    succeed(&["explain", "-f", "-", "--source", path.to_str().unwrap()], "");
}

/// As with `| head -1`, whose pipe is closed while the program still writes.
#[test]
fn a_closed_pipe_ends_every_subcommand_quietly() {
    for arguments in [&["demo"][..], &["completions", "bash"], &["crd"], &["rbac"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_otel-webhook"));
        let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        drop(running.stdout.take());
        let output = running.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{arguments:?}");
    }
}
