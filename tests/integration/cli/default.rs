//! What `default` fills in.

use super::{INSTRUMENTATION, RECORDED, pod, run, succeed, values, with_recorded};

fn default(arguments: &[&str], stream: &str) -> super::Run {
    succeed(&[&["default", "-f", "-"], arguments].concat(), stream)
}

#[test]
fn the_rest_of_the_stream_comes_out_byte_for_byte() {
    let before = "# head\nkind: ConfigMap   # odd\napiVersion: v1\n---\n";
    let after = format!("---\n# tail\n{}", pod("name: p"));
    let out = default(&[], &[before, INSTRUMENTATION, &after].concat()).out;
    assert!(out.starts_with(&format!("{before}apiVersion: opentelemetry.io/v1alpha1\n")), "{out}");
    assert!(out.ends_with(&after), "{out}");
    assert!(out.contains("    endpoint: http://collector:4318\n"), "{out}");
    assert_eq!(default(&[], &out).out, out);
    for stream in ["", &after, "{\"kind\": \"A\",\n \"apiVersion\": \"v1\"}\n"] {
        assert_eq!(default(&[], stream).out, stream);
    }
}

#[test]
fn items_of_lists_are_completed_with_the_images_of_the_installation() {
    let list = r#"{"apiVersion":"opentelemetry.io/v1alpha1","kind":"InstrumentationList","items":[{"metadata":{"name":"a"}}]}"#;
    let flags = ["-o", "json", "--image-registry", "mirror.example.com/otel", "--default-image", "go=own:1"];
    let object = &values(&default(&flags, list))[0]["items"][0];
    let image =
        "mirror.example.com/otel/open-telemetry/opentelemetry-operator/autoinstrumentation-java:2.30.0";
    assert_eq!(object["spec"]["java"]["image"], image);
    assert_eq!(object["spec"]["go"]["image"], "own:1");
}

#[test]
fn what_is_wrong_is_not_its_business_but_what_is_unreadable_is() {
    let odd = "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: [x]\nspec: text\n";
    assert_eq!(default(&[], odd).out, odd);
    let bad = run(&["default", "-f", "-"], "kind: [\n");
    assert_eq!((bad.code, &*bad.out), (2, ""));
}

#[test]
fn an_image_that_is_kept_or_replaced_is_said_and_stays_what_it_is() {
    let record = "instrumentation.opentelemetry.io/default-auto-instrumentation-java-image";
    for (index, (image, said)) in RECORDED.into_iter().enumerate() {
        let once = default(&["-o", "json"], &with_recorded(image));
        let object = &values(&once)[0];
        let used = if index == 0 { image.replace("2.29.0", "2.30.0") } else { image.to_owned() };
        assert_eq!(object["spec"]["java"]["image"], used);
        assert_eq!(object["metadata"]["annotations"][record], used, "neither chosen nor another default");
        assert_eq!(once.err, format!("Instrumentation inst: spec.java.image: {said}\n"));
        assert_eq!(default(&["-o", "json"], &once.out).out, once.out);
    }
    assert_eq!(default(&[], INSTRUMENTATION).err, "");
}
