//! Standard output, with documents and reports, and the failures of subcommands.

use std::{
    io::{self, BufWriter, StdoutLock, Write},
    process::ExitCode,
};

use anstream::AutoStream;
use anstyle::AnsiColor;
use clap::{Args, ValueEnum};
use serde_json::Value;

use otel_webhook_review::one_line_of_json;
use otel_webhook_store::manifest::{self, Document, Style, Syntax};

/// Flags of reports.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ReportFlags {
    /// "text": for reading; "json": one JSON object per line; "yaml": one document for each
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    output: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    #[value(alias = "table")]
    Text,
    Json,
    Yaml,
}

impl ReportFlags {
    /// Writes a report to standard output in the format of the flags. A closed pipe is no error.
    ///
    /// # Errors
    /// If it cannot be written, except to a closed pipe.
    pub fn write<I: IntoIterator<Item = Value>>(
        self,
        code: ExitCode,
        text: impl FnOnce() -> String,
        objects: impl FnOnce() -> I,
    ) -> Result<ExitCode, Failure> {
        let out = io::stdout().lock();
        let written = match self.output {
            ReportFormat::Text => {
                let lines: String = text().split_inclusive('\n').map(coloured).collect();
                // It drops the colours where they are not shown.
                AutoStream::auto(out).write_all(lines.as_bytes())
            }
            ReportFormat::Json => {
                write_each(out, objects(), |object| format!("{}\n", one_line_of_json(&object.to_string())))
            }
            ReportFormat::Yaml => write_each(out, objects(), |object| {
                format!("---\n{}", manifest::write(object, Style { indented_lists: false }))
            }),
        };
        finish(written.and_then(|()| io::stdout().flush()), code)
    }
}

fn write_each(
    out: StdoutLock<'_>,
    objects: impl IntoIterator<Item = Value>,
    text: impl Fn(&Value) -> String,
) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    objects.into_iter().try_for_each(|object| out.write_all(text(&object).as_bytes()))?;
    out.flush()
}

/// The colour of a cell that says how good something is.
fn colour(cell: &str) -> Option<AnsiColor> {
    match cell {
        "ok" | "allowed" | "injected" | "heard" | "✓" => Some(AnsiColor::Green),
        "warning" | "skipped" | "foreign" | "unconfirmed" | "stale" | "silent" => Some(AnsiColor::Yellow),
        "failure" | "error" | "rejected" | "missed" | "failing" | "✗" => Some(AnsiColor::Red),
        _ => None,
    }
}

/// Colours the cells of a line, which two spaces separate.
fn coloured(line: &str) -> String {
    let cell = |cell: &str| {
        let word = match cell.trim_start().chars().next() {
            Some('✓') => "✓",
            Some('✗') => "✗",
            _ => cell.trim(),
        };
        match colour(word).map(AnsiColor::on_default) {
            Some(style) => cell.replacen(word, &format!("{style}{word}{style:#}"), 1),
            None => cell.to_owned(),
        }
    };
    line.split("  ").map(cell).collect::<Vec<_>>().join("  ")
}

/// Returns the lines of a table with padded columns.
pub fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Vec<String> {
    let rows: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let padded = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(padded).collect()
}

/// Writes documents. Unchanged documents keep their text.
pub struct Output<W> {
    /// The destination.
    pub out: W,
    /// The last character that was written.
    last: Option<char>,
}

impl Output<BufWriter<StdoutLock<'static>>> {
    /// Writes to standard output.
    pub fn standard() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), last: None }
    }
}

impl<W: Write> Output<W> {
    /// Writes a document of a YAML stream.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn yaml(&mut self, document: &Document<'_>, is_changed: bool) -> io::Result<()> {
        let has_separator = document.head.lines().any(|line| line.starts_with("---"));
        if let Some(last) = self.last {
            let separator = [if last == '\n' { "" } else { "\n" }, if has_separator { "" } else { "---\n" }];
            self.out.write_all(separator.concat().as_bytes())?;
        }
        let text = if is_changed {
            let text = manifest::write(&document.value, Style::of(document.text));
            // A block mapping cannot begin on the line of its `---`.
            let needs_break = !document.head.is_empty() && !document.head.ends_with('\n');
            [document.head.trim_end_matches(' '), if needs_break { "\n" } else { "" }, &text].concat()
        } else {
            [document.head, document.text].concat()
        };
        self.last = text.chars().last().or(self.last);
        self.out.write_all(text.as_bytes())
    }

    /// Writes a document as a line of JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn json(&mut self, document: &Document<'_>, is_changed: bool) -> io::Result<()> {
        if document.is_blank() {
            return Ok(());
        }
        let line = match document.syntax {
            Syntax::Json if !is_changed => manifest::compact(document.text),
            _ => document.value.to_string(),
        };
        writeln!(self.out, "{line}")
    }
}

/// Returns the exit status after writing the output.
///
/// # Errors
/// If it could not be written, except to a closed pipe.
pub fn finish(written: io::Result<()>, code: ExitCode) -> Result<ExitCode, Failure> {
    match written {
        // A closed pipe, as with `| head`, is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(code),
    }
}

/// The failure of a subcommand: a message, and the exit status.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What went wrong, where, and what is expected.
    pub message: String,
    /// 1 if the operation failed, 2 if the input cannot be read.
    pub code: u8,
}

impl Failure {
    /// The operation failed.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 1 }
    }

    /// The input cannot be read.
    pub fn unreadable(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), code: 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use otel_webhook_fleet::state::State;

    #[test]
    fn each_state_has_a_colour_and_only_cells_are_coloured() {
        for state in State::ALL {
            assert!(colour(state.name()).is_some(), "{}", state.name());
        }
        let line = "shop  deployment/injected  java  missed  1 injected\n";
        let expected = "shop  deployment/injected  java  \u{1b}[31mmissed\u{1b}[0m  1 injected\n";
        assert_eq!(coloured(line), expected);
        assert_eq!(coloured("  ✓ started: ok\n"), "  \u{1b}[32m✓\u{1b}[0m started: ok\n");
        assert_eq!(anstream::adapter::strip_str(&coloured(line)).to_string(), line);
    }
}
