//! Unified diffs.

use similar::{
    ChangeTag, DiffOp,
    algorithms::{Capture, Compact, Replace, myers},
    udiff::UnifiedHunkHeader,
};

/// Lines of context around a change.
const CONTEXT: usize = 3;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

/// Returns the unified diff of two texts; empty if they are equal.
///
/// `name` is the name of both in the header.
pub fn unified(before: &str, after: &str, name: &str, colour: bool) -> String {
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let mut out = String::new();
    let mut line = |style: &str, text: &str| {
        if colour && !style.is_empty() {
            out.extend([style, text, RESET, "\n"]);
        } else {
            out.extend([text, "\n"]);
        }
    };
    for (index, hunk) in hunks(&before, &after).iter().enumerate() {
        if index == 0 {
            line(BOLD, &format!("--- {name}"));
            line(BOLD, &format!("+++ {name} (injected)"));
        }
        line(CYAN, &UnifiedHunkHeader::new(hunk).to_string());
        for change in hunk.iter().flat_map(|operation| operation.iter_changes(&*before, &*after)) {
            let (style, sign) = match change.tag() {
                ChangeTag::Equal => ("", ' '),
                ChangeTag::Delete => (RED, '-'),
                ChangeTag::Insert => (GREEN, '+'),
            };
            line(style, &format!("{sign}{}", change.value()));
        }
    }
    out
}

/// Returns the changes with their context. Calls one algorithm directly: with `TextDiff`, the program would
/// contain all of them, which is half a megabyte.
fn hunks(before: &[&str], after: &[&str]) -> Vec<Vec<DiffOp>> {
    let mut found = Compact::new(Replace::new(Capture::new()), before, after);
    let (whole_before, whole_after) = (0..before.len(), 0..after.len());
    match myers::diff_deadline_raw(&mut found, before, whole_before, after, whole_after, None) {
        Ok(()) => found.into_inner().into_inner().into_grouped_ops(CONTEXT),
        Err(never) => match never {},
    }
}

/// Returns whether to colour standard output: on a terminal, unless `NO_COLOR` is set.
pub fn colour_wanted() -> bool {
    use std::io::IsTerminal;
    let is_disabled = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !is_disabled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_context() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nc\nd\nE\nnew\nf\ng\nh\n";
        let expected =
            "--- Pod/x\n+++ Pod/x (injected)\n@@ -2,7 +2,8 @@\n b\n c\n d\n-e\n+E\n+new\n f\n g\n h\n";
        assert_eq!(unified(before, after, "Pod/x", false), expected);
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a\n", "a\n", "x", true), "");
    }

    #[test]
    fn coloured_and_plain_diffs_have_the_same_text() {
        let coloured = unified("a\n", "b\n", "x", true);
        assert!(coloured.contains("\u{1b}[31m-a\u{1b}[0m\n"), "{coloured:?}");
        let plain =
            [RED, GREEN, CYAN, BOLD, RESET].iter().fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(plain, unified("a\n", "b\n", "x", false));
    }
}
