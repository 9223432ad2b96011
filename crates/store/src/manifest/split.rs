//! Splits a stream at its `---` lines.
//!
//! A `---` line always ends a YAML document, even in a block scalar, so that a stream can be split by lines.

/// The text between two `---` lines.
#[derive(Clone, Copy, Debug)]
pub struct Part<'t> {
    /// Whether it begins with a `---` line.
    pub is_marked: bool,
    /// The `---` line with the directives and comments before and after it.
    pub head: &'t str,
    /// The text after it.
    pub body: &'t str,
    /// The line of the stream on which the body begins, from 1.
    pub line: usize,
}

impl<'t> Part<'t> {
    /// Returns whether it has no content.
    pub fn is_blank(&self) -> bool {
        self.body.lines().all(is_filler)
    }

    /// Returns whether the content is JSON: it begins with `{` or `[`, after comments.
    pub fn starts_as_json(&self) -> bool {
        self.body.trim_start().starts_with(['{', '['])
    }

    /// Returns the content without trailing comments and without a `...` line.
    pub fn trimmed(&self) -> &'t str {
        let tail = |line: &&str| is_filler(line) || is_marker(line, "...");
        let length: usize = self.body.split_inclusive('\n').rev().take_while(tail).map(str::len).sum();
        &self.body[..self.body.len() - length]
    }

    /// Returns the text for the YAML parser, including directives.
    pub fn yaml(&self, stream_line: usize) -> (std::borrow::Cow<'t, str>, usize) {
        if self.head.lines().any(|line| line.starts_with('%')) {
            let above = self.head.matches('\n').count();
            (format!("{}{}", self.head, self.body).into(), stream_line - above)
        } else {
            (self.body.into(), stream_line)
        }
    }
}

/// Splits a stream into its parts, in order. Together they are the whole stream.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    // A byte order mark is not content, and would be invalid between two documents.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut scan = Scan { text, parts: Vec::new(), open: Open::at(0, 1) };
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line, "---") {
            scan.begin(offset, index + 1);
        }
        offset += line.len();
        if is_marker(line, "...") {
            scan.end(offset);
            scan.open = Open::at(offset, index + 2);
        }
    }
    scan.end(text.len());
    scan.parts
}

/// A part without its end.
struct Open {
    start: usize,
    content: usize,
    line: usize,
    is_marked: bool,
}

impl Open {
    fn at(offset: usize, line: usize) -> Self {
        Self { start: offset, content: offset, line, is_marked: false }
    }
}

struct Scan<'t> {
    text: &'t str,
    parts: Vec<Part<'t>>,
    open: Open,
}

impl Scan<'_> {
    /// A `---` line at an offset.
    fn begin(&mut self, offset: usize, line: usize) {
        let before = &self.text[self.open.content..offset];
        let is_prefix =
            !self.open.is_marked && before.lines().all(|line| is_filler(line) || line.starts_with('%'));
        // Comments and directives before the line belong to the document after it.
        if !is_prefix {
            self.end(offset);
            self.open = Open::at(offset, line);
        }
        self.open = Open { content: offset + 3, line, is_marked: true, ..self.open };
    }

    fn end(&mut self, offset: usize) {
        let Open { start, content, line, is_marked } = self.open;
        if start == offset {
            return;
        }
        let body = &self.text[content..offset];
        let fillers = body.split_inclusive('\n').take_while(|line| is_filler(line));
        let (mut skipped, mut lines) = (0, 0);
        for filler in fillers {
            skipped += filler.len();
            lines += filler.matches('\n').count();
        }
        self.parts.push(Part {
            is_marked,
            head: &self.text[start..content + skipped],
            body: &body[skipped..],
            line: line + lines,
        });
    }
}

/// Returns whether a line is `---` or `...`, also with text after a space.
fn is_marker(line: &str, marker: &str) -> bool {
    let rest = line.strip_prefix(marker);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Returns whether a line only has white space or a comment.
fn is_filler(line: &str) -> bool {
    let content = line.trim_start();
    content.is_empty() || content.starts_with('#')
}
