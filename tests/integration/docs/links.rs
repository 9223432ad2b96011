//! Links to files and headings, and the table of contents of the site.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use super::markdown::{Page, pages, root};

/// Where files of the repository are, for pages that the site has.
const REPOSITORY: [&str; 2] = [
    "https://github.com/otel-webhook/otel-webhook/blob/main/",
    "https://github.com/otel-webhook/otel-webhook/tree/main/",
];

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages();
    let anchors: BTreeMap<_, _> = pages.iter().map(|page| (&*page.path, &page.anchors)).collect();
    let mut broken = Vec::new();
    for page in &pages {
        for link in &page.links {
            let Some((file, anchor)) = target(page, link) else { continue };
            if !root().join(&file).exists() {
                broken.push(format!("{}: {link}: there is no {}", page.path, file.display()));
                continue;
            }
            let known = anchors.get(file.to_str().unwrap_or_default());
            if !anchor.is_empty() && !known.is_some_and(|anchors| anchors.contains(&anchor)) {
                broken.push(format!("{}: {link}: {} has no heading {anchor}", page.path, file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pages_of_the_site_link_files_outside_of_docs_by_their_url() {
    for page in pages().iter().filter(|page| page.path.starts_with("docs/")) {
        for link in page.links.iter().filter(|link| !link.contains("://")) {
            let (file, _) = target(page, link).expect("a file");
            let is_inside = file.starts_with("docs");
            assert!(
                is_inside,
                "{}: {link}: the site does not have it; link {}{}",
                page.path,
                REPOSITORY[0],
                file.display()
            );
        }
    }
}

/// The file of the repository that a link leads to, with the anchor. None if it leads elsewhere.
fn target(page: &Page, link: &str) -> Option<(PathBuf, String)> {
    let (link, anchor) = link.split_once('#').unwrap_or((link, ""));
    if let Some(path) = REPOSITORY.iter().find_map(|start| link.strip_prefix(start)) {
        return Some((path.into(), anchor.to_owned()));
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    if link.is_empty() {
        return Some((page.path.clone().into(), anchor.to_owned()));
    }
    let folder = Path::new(&page.path).parent().expect("a folder");
    Some((plain(&folder.join(link)), anchor.to_owned()))
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

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
