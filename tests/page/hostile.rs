//! Names and reasons come from users of the clusters: they are text and nothing else.

use otel_webhook_fleet::state::State;
use otel_webhook_server::page::page;

use crate::{browser::Browser, sample};

const HOSTILE: [&str; 8] = [
    "</script><img src=x onerror=\"document.title='changed'\">",
    "<script>document.title='changed'</script>",
    "\"><svg onload=document.title='changed'>",
    "' onmouseover='document.title=`changed`",
    "{{ 7 * 7 }}${7*7}<!--",
    "]]></style></td></table><b>",
    "javascript:document.title='changed'",
    "&lt;b&gt; &amp;",
];

#[test]
fn hostile_names_are_shown_as_they_are() {
    let rows = HOSTILE.map(|name| {
        let told = (name, State::Skipped, 1, name, name);
        sample::workload(name, name, name, &[told], 0)
    });
    let mut report = sample::cluster(HOSTILE[0], rows.into());
    report.incomplete = HOSTILE.map(str::to_owned).into();
    let mut browser = Browser::open(&page(&[report.clone(), sample::cluster("b", Vec::new())]));

    // Apart from the choices, the page has the elements and attributes of one with harmless names.
    let harmless = sample::workload("Deployment", "shop", "a", &[("java", State::Skipped, 1, "A", "b")], 0);
    report.report.workloads = vec![harmless; HOSTILE.len()];
    let mut other = Browser::open(&page(&[report, sample::cluster("b", Vec::new())]));
    let structure = "Array.from(document.querySelectorAll('body :not(option)'), (found) =>
                     found.tagName + Array.from(found.attributes, ({name}) => name)).join()";
    assert_eq!(browser.evaluate(structure), other.evaluate(structure));
    assert_eq!(browser.complaints(), [""; 0]);

    let namespaces = browser.texts("#rows tbody td:nth-child(2)");
    assert_eq!(namespaces, HOSTILE);
    let messages = browser.texts(".incomplete li");
    assert_eq!(messages, HOSTILE.map(|name| format!("{}: {name}", HOSTILE[0])));
    assert_eq!(browser.evaluate("document.title"), "otel-webhook: running pods and their agents");
}

#[test]
fn hostile_names_are_filtered_by() {
    let rows = HOSTILE.map(|name| {
        sample::workload("Deployment", name, "order", &[("java", State::Missed, 1, "Unknown", name)], 0)
    });
    let mut browser = Browser::open(&page(&[sample::cluster("a", rows.into())]));
    let mut shown = Vec::new();
    for namespace in HOSTILE {
        browser.set("namespace", namespace);
        shown.extend(browser.texts("#rows tbody tr:not([hidden]) td:first-child"));
    }
    assert_eq!(shown, HOSTILE);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn characters_that_are_not_seen_are_shown_as_escapes() {
    let name = "user\u{202e}nimda\u{2028}\n";
    let row = sample::workload("Deployment", name, name, &[("java", State::Missed, 1, "Unknown", name)], 0);
    let mut browser = Browser::open(&page(&[sample::cluster(name, vec![row])]));
    let text = browser.evaluate("document.documentElement.textContent");
    let text = text.as_str().expect("text");
    assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text}");
    assert_eq!(
        browser.evaluate("document.querySelector('#rows th[scope=row]').textContent"),
        r"Deployment/user\u{202e}nimda\u{2028}\n"
    );
    assert_eq!(browser.complaints(), [""; 0]);
}
