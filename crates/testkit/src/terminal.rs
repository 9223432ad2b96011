//! Recordings of a terminal as SVG: text, a light background, and no font of another place.

use std::fmt::Write;

/// The number of characters of a line; longer lines are continued on the next one.
const COLUMNS: usize = 116;

/// The size of a character cell, in pixels. Fonts differ, so each line is stretched to it.
const CELL: (f64, usize) = (7.8, 18);

/// The distance of the text from the edges, in pixels.
const EDGE: usize = 16;

/// How long a command stays alone before the next one, in seconds.
const PAUSE: usize = 3;

/// A command, and what it printed.
pub struct Step {
    /// The command as it was typed.
    pub command: String,
    /// Its output.
    pub output: String,
}

impl Step {
    /// A command with its output.
    pub fn new(command: &str, output: &str) -> Self {
        Self { command: command.to_owned(), output: output.to_owned() }
    }
}

/// Draws the steps below each other. They appear one after another, unless the reader prefers no motion.
///
/// `title` is what a screen reader reads first, then the text of the terminal.
pub fn recording(title: &str, steps: &[Step]) -> String {
    let mut body = String::new();
    let mut row = 0;
    for (index, step) in steps.iter().enumerate() {
        let _ = writeln!(body, "<g class=\"step\" style=\"animation-delay: {}s\">", index * PAUSE);
        let command = format!("$ {}", step.command);
        let lines = step.output.trim_end().lines().map(|line| (line, "output"));
        for (line, class) in [(&*command, "command")].into_iter().chain(lines) {
            for part in parts(line) {
                row += 1;
                text(&mut body, row, class, &part);
            }
        }
        body.push_str("</g>\n");
        row += 1;
    }
    frame(title, row.saturating_sub(1), &body)
}

fn frame(title: &str, rows: usize, body: &str) -> String {
    let (width, height) = (f64::from(u16::try_from(COLUMNS).unwrap_or(u16::MAX)) * CELL.0, rows * CELL.1);
    let (width, height) = (width.ceil() + 32.0, height + 2 * EDGE);
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{title}</title>\n\
         <desc>Recording of a terminal, made by make docs-pictures.</desc>\n\
         <style>\n\
         text {{ font: 13px ui-monospace, Menlo, Consolas, \"DejaVu Sans Mono\", monospace; white-space: pre; }}\n\
         .command {{ fill: #0550ae; font-weight: bold; }} .output {{ fill: #1f2328; }}\n\
         .page {{ fill: #f6f8fa; stroke: #d0d7de; }}\n\
         .step {{ animation: shown 0.4s ease-in backwards; }}\n\
         @keyframes shown {{ from {{ opacity: 0; }} }}\n\
         @media (prefers-reduced-motion: reduce) {{ .step {{ animation: none; }} }}\n\
         </style>\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n{body}</svg>\n",
        width - 1.0,
        height - 1,
    )
}

/// The line in parts that fit.
fn parts(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

fn text(body: &mut String, row: usize, class: &str, line: &str) {
    let length = line.chars().count();
    if length == 0 {
        return;
    }
    let width = f64::from(u16::try_from(length).unwrap_or(u16::MAX)) * CELL.0;
    let y = EDGE + row * CELL.1 - 5;
    let line = escaped(line);
    let _ = writeln!(
        body,
        "<text class=\"{class}\" x=\"{EDGE}\" y=\"{y}\" textLength=\"{width:.1}\" xml:space=\"preserve\">{line}</text>"
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_has_every_line_and_no_markup_of_the_output() {
        let long = "x".repeat(COLUMNS + 1);
        let svg = recording("A & B", &[Step::new("ls", "a <b>\n\nc"), Step::new("cat", &long)]);
        assert!(svg.contains("<title id=\"title\">A &amp; B</title>"), "{svg}");
        assert!(svg.contains(">a &lt;b&gt;</text>") && svg.contains(">c</text>"), "{svg}");
        assert_eq!(svg.matches("class=\"step\"").count(), 2);
        assert!(
            svg.contains(&format!(">{}</text>", "x".repeat(COLUMNS))) && svg.contains(">x</text>"),
            "{svg}"
        );
    }
}
