//! The site that `make docs` has built.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use super::markdown::root;
use crate::reference::source::files;

#[test]
#[ignore = "needs the site: run `make docs` first"]
fn no_link_of_the_built_site_is_broken() {
    let site = root().join("dist/docs");
    let link = Regex::new(r#"(?:href|src)="([^"]*)""#).expect("an expression");
    let (mut broken, mut count) = (Vec::new(), 0);
    for page in files(&site, "html") {
        // Of any address.
        if page.ends_with("404.html") {
            continue;
        }
        let text = fs::read_to_string(&page).expect("a page");
        for found in link.captures_iter(&text) {
            count += 1;
            if leads_nowhere(&page, &found[1]) {
                broken.push(format!("{}: {}", page.display(), &found[1]));
            }
        }
    }
    assert!(count > 1000, "{} has only {count} links", site.display());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
#[ignore = "needs the site: run `make docs` first"]
fn the_built_site_loads_nothing_from_elsewhere() {
    let loaded = Regex::new(r#"<(?:script|img|iframe)[^>]* src="(https?:)?//|<link[^>]* href="(https?:)?//"#);
    let loaded = loaded.expect("an expression");
    for page in files(&root().join("dist/docs"), "html") {
        let text = fs::read_to_string(&page).expect("a page");
        let found = loaded.find(&text).map(|found| found.as_str());
        assert_eq!(found, None, "{}", page.display());
    }
}

fn leads_nowhere(page: &Path, link: &str) -> bool {
    if ["http:", "https:", "mailto:", "data:", "javascript:"].iter().any(|start| link.starts_with(start)) {
        return false;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target: PathBuf =
        if file.is_empty() { page.to_owned() } else { page.parent().expect("a folder").join(file) };
    if !target.is_file() {
        return true;
    }
    !anchor.is_empty() && !ids(&target).contains(anchor)
}

fn ids(page: &Path) -> BTreeSet<String> {
    let id = Regex::new(r#" id="([^"]*)""#).expect("an expression");
    let text = fs::read_to_string(page).expect("a page");
    id.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}
