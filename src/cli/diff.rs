//! Unified diffs for people.

use similar::{
    ChangeTag, DiffOp,
    algorithms::{Capture, Compact, Replace, myers},
    udiff::UnifiedHunkHeader,
};

/// Lines around a change.
const CONTEXT: usize = 3;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

/// The unified diff of two texts; empty where they are equal.
///
/// `name` is what both are called in the heading.
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

/// What differs, with the lines around it. The one algorithm is called by its
/// name: by `TextDiff` all of them would be in the program, half a megabyte.
fn hunks(before: &[&str], after: &[&str]) -> Vec<Vec<DiffOp>> {
    let mut found = Compact::new(Replace::new(Capture::new()), before, after);
    let (whole_before, whole_after) = (0..before.len(), 0..after.len());
    match myers::diff_deadline_raw(&mut found, before, whole_before, after, whole_after, None) {
        Ok(()) => found.into_inner().into_inner().into_grouped_ops(CONTEXT),
        Err(never) => match never {},
    }
}

/// Whether what is written to standard output should be coloured: on a
/// terminal, unless `NO_COLOR` is set.
pub fn colour_wanted() -> bool {
    use std::io::IsTerminal;
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown_with_the_lines_around_it() {
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
    fn colour_is_all_that_it_adds() {
        let coloured = unified("a\n", "b\n", "x", true);
        assert!(coloured.contains("\u{1b}[31m-a\u{1b}[0m\n"), "{coloured:?}");
        let plain =
            [RED, GREEN, CYAN, BOLD, RESET].iter().fold(coloured, |text, code| text.replace(code, ""));
        assert_eq!(plain, unified("a\n", "b\n", "x", false));
    }
}
