//! Markdown files: their headings, links, blocks and names in code.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Markdown file.
pub struct Page {
    /// Path in the repository.
    pub path: String,
    /// Anchors of its headings.
    pub anchors: Vec<String>,
    /// Targets of its links and images.
    pub links: Vec<String>,
    /// Its fenced blocks.
    pub blocks: Vec<Block>,
    /// What is in backticks in its text.
    pub names: Vec<String>,
}

/// A fenced block.
pub struct Block {
    /// Path of the page and line, for messages.
    pub place: String,
    pub language: String,
    pub text: String,
    /// Why it is not tried, by the comment before it.
    pub not_tried: Option<String>,
}

/// All Markdown files of the repository, by path.
pub fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    found.sort();
    found.iter().map(|path| Page::read(path)).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_left_out = ["target", "dist", ".git", "certificates", "next"].iter().any(|one| name == *one);
        if path.is_dir() && !is_left_out {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

impl Page {
    /// Reads a file.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a page");
        let path = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let mut reader = Reader::new(&path, &text);
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            reader.take(event, range.start);
        }
        let Reader { anchors, links, blocks, names, .. } = reader;
        Self { path, anchors, links, blocks, names }
    }
}

struct Reader<'t> {
    path: &'t str,
    text: &'t str,
    anchors: Vec<String>,
    slugs: BTreeMap<String, usize>,
    links: Vec<String>,
    blocks: Vec<Block>,
    names: Vec<String>,
    /// The heading that is being read.
    heading: Option<String>,
    /// The comment before what is being read.
    comment: Option<String>,
    in_block: bool,
}

impl<'t> Reader<'t> {
    fn new(path: &'t str, text: &'t str) -> Self {
        Self {
            path,
            text,
            anchors: Vec::new(),
            slugs: BTreeMap::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            names: Vec::new(),
            heading: None,
            comment: None,
            in_block: false,
        }
    }

    fn take(&mut self, event: Event<'_>, start: usize) {
        match event {
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => self.end_heading(),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.links.push(dest_url.into_string());
            }
            Event::Start(Tag::CodeBlock(kind)) => self.start_block(&kind, start),
            Event::End(TagEnd::CodeBlock) => self.in_block = false,
            Event::Text(text) if self.in_block => {
                self.blocks.last_mut().expect("a block").text.push_str(&text);
            }
            Event::Text(text) => {
                self.heading.iter_mut().for_each(|heading| heading.push_str(&text));
                self.comment = None;
            }
            Event::Code(name) => {
                self.heading.iter_mut().for_each(|heading| heading.push_str(&name));
                self.names.push(name.into_string());
                self.comment = None;
            }
            Event::Html(html) => self.comment = Some(html.into_string()),
            _ => {}
        }
    }

    /// The anchor of a heading as GitHub and mdBook make it.
    fn end_heading(&mut self) {
        let heading = self.heading.take().unwrap_or_default().to_lowercase();
        let kept = |one: &char| one.is_alphanumeric() || [' ', '-', '_'].contains(one);
        let slug: String =
            heading.chars().filter(kept).map(|one| if one == ' ' { '-' } else { one }).collect();
        let count = self.slugs.entry(slug.clone()).or_default();
        self.anchors.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }

    fn start_block(&mut self, kind: &CodeBlockKind<'_>, start: usize) {
        let language = match kind {
            CodeBlockKind::Fenced(language) => language.to_string(),
            CodeBlockKind::Indented => String::new(),
        };
        let comment = self.comment.take().unwrap_or_default();
        let reason = comment.trim().strip_prefix("<!-- not tried:").and_then(|rest| rest.strip_suffix("-->"));
        let line = self.text[..start].lines().count() + 1;
        let place = format!("{}:{line}", self.path);
        let not_tried = reason.map(|reason| reason.trim().to_owned());
        self.blocks.push(Block { place, language, text: String::new(), not_tried });
        self.in_block = true;
    }
}

#[test]
fn every_block_that_is_not_tried_says_why() {
    for block in pages().iter().flat_map(|page| &page.blocks) {
        assert_ne!(block.not_tried.as_deref(), Some(""), "{}: say why it is not tried", block.place);
    }
}

#[test]
fn a_page_is_read_with_its_anchors_and_blocks() {
    let text = "# A `b`: c\n\n## x\n\n## x\n\n<!-- not tried: y -->\n```sh\nls\n```\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.md");
    fs::write(&path, text).expect("a page");
    let page = Page::read(&path);
    assert_eq!(page.anchors, ["a-b-c", "x", "x-1"]);
    let [block] = &page.blocks[..] else { panic!("one block") };
    assert_eq!((&*block.text, block.not_tried.as_deref()), ("ls\n", Some("y")));
}
