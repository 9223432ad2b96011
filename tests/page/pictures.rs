//! Pictures of the page, in the light and the dark scheme and on paper.

use std::{env, fs, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use otel_webhook_server::page::page;
use serde_json::json;

use crate::{browser::Browser, sample};

fn decoded(data: &serde_json::Value) -> Vec<u8> {
    BASE64_STANDARD.decode(data.as_str().expect("base64")).expect("base64")
}

/// They are written to docs/images where `OTEL_WEBHOOK_PICTURES` is set (`make page-pictures`), and only made else.
#[test]
fn the_page_is_light_or_dark_as_the_reader_prefers() {
    let mut browser = Browser::open(&page(&sample::two_clusters()));
    browser.size(1500, 1050);
    let mut made = Vec::new();
    for scheme in ["light", "dark"] {
        browser.media("screen", scheme);
        let picture = decoded(&browser.send("Page.captureScreenshot", &json!({"format": "png"}))["data"]);
        if env::var_os("OTEL_WEBHOOK_PICTURES").is_some() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(format!("status-page-{scheme}.png")), &picture).expect("a file");
        }
        made.push((picture, browser.evaluate("getComputedStyle(document.body).backgroundColor")));
    }
    assert_eq!(made[0].1, "rgb(255, 255, 255)");
    assert_eq!(made[1].1, "rgb(20, 23, 27)");
    assert_ne!(made[0].0, made[1].0);
}

#[test]
fn paper_is_light_and_has_the_rows_without_controls() {
    let mut browser = Browser::open(&page(&[sample::large(200)]));
    browser.set("state", "missed");
    browser.media("print", "dark");
    assert_eq!(browser.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
    let visible = browser.evaluate(
        "Array.from(document.querySelectorAll('form, .copy'), (e) => e.checkVisibility()).some(Boolean)",
    );
    assert_eq!(visible, false, "controls are not printed");
    let cut = browser.evaluate(
        "Array.from(document.querySelectorAll('.scroll'), (e) => e.scrollHeight > e.clientHeight).some(Boolean)",
    );
    assert_eq!(cut, false, "no row is hidden by a region that scrolls");
    let printed = browser.send("Page.printToPDF", &json!({}));
    assert!(decoded(&printed["data"]).starts_with(b"%PDF"));
}
