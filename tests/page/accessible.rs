//! Keyboard, screen reader, contrast.

use std::fs;

use otel_webhook_server::page::page;
use serde_json::json;

use crate::{
    browser::{Browser, prepared},
    sample,
};

#[test]
fn axe_finds_no_fault_in_either_scheme() {
    let Ok(axe) = fs::read_to_string(prepared("axe.min.js")) else {
        println!("axe-core is not there, since tests/page/prepare found no npm: NOT CHECKED BY IT");
        return;
    };
    let mut browser = Browser::start();
    // It cannot judge what is half behind the end of a region that scrolls.
    browser.size(2500, 4000);
    // axe parses markup, which the policy does not allow.
    browser.send("Page.setBypassCSP", &json!({"enabled": true}));
    browser.open_file(&page(&sample::two_clusters()));
    browser.evaluate(&format!("{axe}; 0"));
    for name in ["light", "dark"] {
        browser.media("screen", name);
        let result = browser.evaluate(
            "axe.run({resultTypes: ['violations', 'passes', 'incomplete']}).then(({violations, passes, incomplete}) => ({
                faults: violations.map(({id, nodes}) => [id, nodes[0].html]),
                unsure: incomplete.map(({id, nodes}) => [id, nodes[0].html]),
                passed: passes.map(({id}) => id),
            }))",
        );
        assert_eq!(result["faults"], json!([]), "{name}");
        assert_eq!(result["unsure"], json!([]), "{name}");
        let passed = result["passed"].as_array().expect("a list");
        for rule in ["color-contrast", "label", "select-name", "button-name", "landmark-unique"] {
            assert!(passed.contains(&json!(rule)), "{rule} was not applied: {passed:?}");
        }
    }
}

#[test]
fn a_screen_reader_is_told_of_tables_controls_and_changes() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    let told = browser.accessible();
    let named = |role: &str| -> Vec<&str> {
        told.iter().filter(|node| node.0 == role).map(|node| node.1.as_str()).collect()
    };
    let tables = [
        "Number of workloads by the worst state of their pods",
        "One row for each language of a workload, the worst state first",
        "Number of running pods that have an agent, up to date or not",
        "Number of pods by state; a pod with several languages counts once, by the worst of their states",
    ];
    assert_eq!(named("table"), tables);
    assert_eq!(named("searchbox"), ["Text"]);
    assert_eq!(named("combobox"), ["Cluster", "Namespace", "Language", "State"]);
    assert!(
        named("button")
            .contains(&"Copy kubectl rollout restart deployment/cart -n shop --context production")
    );
    assert!(named("button").iter().all(|name| !name.is_empty()), "{told:?}");
    assert!(named("columnheader").contains(&"Namespace") && named("rowheader").contains(&"Deployment/web"));
    // The signs before states are not read out.
    assert!(named("StaticText").contains(&"missed"), "{told:?}");
    // The number of rows and what was copied are announced.
    assert_eq!(named("status").len(), 2);
}

#[test]
fn the_keyboard_reaches_everything_and_the_focus_is_visible() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    let mut reached = Vec::new();
    loop {
        browser.press("Tab");
        let focused = browser.list(
            "(({activeElement: e}) => [e.tagName, e.name || e.className || e.id || e.textContent,
                getComputedStyle(e).outlineStyle])(document)",
        );
        if focused[0] == "BODY" {
            break;
        }
        assert_eq!(focused[2], "solid", "{focused:?} shows that it has the focus");
        reached.push(focused[1].clone());
        assert!(reached.len() < 200, "{reached:?}");
    }
    assert_eq!(
        reached[..8],
        ["skip", "scroll", "text", "cluster", "namespace", "language", "state", "Clear"]
    );
    assert_eq!(reached.iter().filter(|name| *name == "copy").count(), 3);

    browser.evaluate("document.querySelector('#rows th:nth-child(3) button').focus()");
    browser.press("Enter");
    let header = "document.querySelector('#rows th:nth-child(3)').ariaSort";
    assert_eq!(browser.evaluate(header), "ascending");
}

#[test]
fn states_differ_by_more_than_a_colour() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    let mut signs = browser.list(
        "Array.from(document.querySelectorAll('dt .state'), (e) => getComputedStyle(e, '::before').content)",
    );
    assert_eq!(signs.len(), 6);
    signs.sort_unstable();
    signs.dedup();
    assert_eq!(signs.len(), 6, "{signs:?}");
}
