//! The table of contents of the site.

use std::collections::BTreeSet;

use super::{links::target, markdown::pages};

#[test]
fn every_page_is_in_the_summary_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path == "docs/SUMMARY.md").expect("the summary");
    let targets = summary.links.iter().filter_map(|link| target(summary, link));
    let listed: Vec<_> = targets.map(|(file, _)| file.display().to_string()).collect();
    let all: BTreeSet<_> = pages.iter().map(|page| page.path.clone()).collect();
    let all: BTreeSet<_> =
        all.into_iter().filter(|path| path.starts_with("docs/") && path != "docs/SUMMARY.md").collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(listed.len(), all.len(), "a page is listed twice");
}
