//! Filters, sorting and copying.

use otel_webhook_server::page::page;

use crate::{browser::Browser, sample};

const SHOWN: &str = "#rows tbody tr:not([hidden])";

/// Returns what stands in a column of the rows that are shown; columns are counted from 1.
fn column(browser: &mut Browser, column: usize) -> Vec<String> {
    browser.texts(&format!("{SHOWN} > :nth-child({column})"))
}

fn count(browser: &mut Browser) -> String {
    browser.texts("#shown").concat()
}

#[test]
fn each_filter_shows_its_rows() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    assert_eq!(count(&mut browser), "9 of 9 rows shown");
    for (name, value, workloads) in [
        ("cluster", "staging", &["Deployment/cart", "Job/report"][..]),
        ("namespace", "billing", &["Job/report", "DaemonSet/audit", "Deployment/invoice"]),
        ("language", "nodejs", &["Deployment/order", "Deployment/web"]),
        ("state", "foreign", &["StatefulSet/ledger"]),
        ("state", "failing", &["Deployment/invoice"]),
        // Two of the four pods of order are injected, and two are stale.
        ("state", "injected", &["Deployment/order", "Deployment/order", "Deployment/invoice"]),
        (
            "state",
            "missed stale",
            &["Deployment/cart", "Deployment/cart", "Deployment/order", "Deployment/order", "Job/report"],
        ),
        ("text", "ConfigurationChanged java", &["Deployment/order"]),
        ("text", "DEFUALT", &["Deployment/web"]),
        ("text", "nowhere", &[]),
    ] {
        browser.set(name, value);
        assert_eq!(column(&mut browser, 3), workloads, "{name}: {value}");
        assert_eq!(count(&mut browser), format!("{} of 9 rows shown", workloads.len()));
        browser.set(name, "");
    }
    assert_eq!(count(&mut browser), "9 of 9 rows shown");
}

#[test]
fn filters_narrow_one_another_until_they_are_cleared() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    browser.set("namespace", "shop");
    browser.set("language", "java");
    browser.set("state", "missed");
    browser.set("text", "cart");
    assert_eq!(column(&mut browser, 1), ["production", "staging"]);
    browser.set("cluster", "staging");
    assert_eq!(column(&mut browser, 1), ["staging"]);
    browser.click("[type=reset]");
    browser.evaluate("new Promise((done) => setTimeout(done))");
    assert_eq!(count(&mut browser), "9 of 9 rows shown");
}

#[test]
fn the_address_keeps_the_filters() {
    let html = page(&sample::two_clusters());
    let mut browser = Browser::start();
    let url = browser.open_file(&html);
    browser.set("namespace", "billing");
    browser.set("text", "python b");
    let address = browser.evaluate("location.href");
    assert_eq!(address, format!("{url}#text=python+b&namespace=billing"));
    browser.visit("about:blank");
    browser.visit(address.as_str().expect("an address"));
    assert_eq!(count(&mut browser), "2 of 9 rows shown");
    // Names that are not those of a control, or values that it has not, are ignored.
    browser.visit("about:blank");
    browser.visit(&format!("{url}#length=1&constructor=2&workloads&state=nothing"));
    assert_eq!(count(&mut browser), "9 of 9 rows shown");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn two_thousand_workloads_are_filtered() {
    let mut browser = Browser::open(&page(&[sample::large(2000)]));
    let button = "document.querySelector('#show-all:not([hidden])')?.textContent ?? ''";
    for (name, value, rows, more) in [
        ("text", "", "200", "Show all 2,000"),
        ("text", "service-1999", "1", ""),
        ("text", "service-19", "111", ""),
        ("text", "", "200", "Show all 2,000"),
        ("state", "missed", "200", ""),
        ("state", "missed stale", "200", "Show all 400"),
        ("namespace", "team-0", "40", ""),
    ] {
        browser.set(name, value);
        assert_eq!(count(&mut browser), format!("{rows} of 2,000 rows shown"), "{name}: {value}");
        assert_eq!(browser.evaluate(button), more, "{name}: {value}");
    }
    // A key that changes nothing changes no element: the work is in proportion to what changes.
    let changes = browser.evaluate(
        "(() => {
            const observer = new MutationObserver(() => {});
            observer.observe(document.querySelector('#rows'), {attributes: true, childList: true, subtree: true});
            const text = document.querySelector('[name=text]');
            text.dispatchEvent(new Event('input', {bubbles: true}));
            return observer.takeRecords().length;
        })()",
    );
    assert_eq!(changes, 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn columns_are_sorted() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    let states = column(&mut browser, 5);
    let worst_first =
        ["missed", "missed", "stale", "stale", "stale", "unconfirmed", "foreign", "skipped", "injected"];
    assert_eq!(states, worst_first);
    let header = |column: usize| format!("#rows thead th:nth-child({column})");
    browser.click(&format!("{} button", header(5)));
    assert_eq!(column(&mut browser, 5)[..2], ["injected", "skipped"]);
    browser.click(&format!("{} button", header(3)));
    let names = column(&mut browser, 3);
    assert!(names.is_sorted() && names[0] == "DaemonSet/audit", "{names:?}");
    // By the number of pods.
    browser.click(&format!("{} button", header(6)));
    let pods = column(&mut browser, 6);
    assert_eq!(
        pods,
        [
            "1 missed",
            "1 skipped",
            "1 foreign",
            "2 stale",
            "3 missed",
            "4 injected2 failing",
            "2 stale, 2 injected",
            "2 stale, 2 injected",
            "5 unconfirmed",
        ]
    );
    let sorted = browser
        .list("Array.from(document.querySelectorAll('#rows th'), (th) => th.ariaSort).filter(Boolean)");
    assert_eq!(sorted, ["ascending"], "one column says that it is sorted");
}

#[test]
fn commands_are_copied() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    // What is written to the clipboard is kept, so that the test needs no right to read it.
    browser.evaluate(
        "globalThis.copied = [];
         Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => copied.push(text)}});",
    );
    browser.click(".copy");
    let cart = "kubectl rollout restart deployment/cart -n shop --context production";
    assert_eq!(browser.list("copied"), [cart]);
    assert_eq!(browser.texts("#said"), [format!("Copied: {cart}")]);
    // Both languages of an order have one command; other rows have none.
    let order = "kubectl rollout restart deployment/order -n shop --context production";
    browser.click("#copy-all");
    assert_eq!(browser.list("copied")[1], format!("{cart}\n{order}"));
    browser.set("text", "order");
    browser.click("#copy-all");
    assert_eq!(browser.list("copied")[2], order);
    browser.set("state", "foreign");
    browser.click("#copy-all");
    assert_eq!(browser.list("copied").len(), 3);
    assert_eq!(browser.texts("#said"), ["No row that is shown has a command."]);
}

#[test]
fn a_command_is_selected_where_copying_is_not_allowed() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    browser.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})");
    browser.click(".copy");
    let cart = "kubectl rollout restart deployment/cart -n shop --context production";
    assert_eq!(browser.texts("#said"), [format!("Copy the selected text: {cart}")]);
    assert_eq!(browser.evaluate("getSelection().toString()"), cart);
}
