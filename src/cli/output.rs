//! What goes to standard output: documents, and reports.

use std::{
    io::{self, BufWriter, StdoutLock, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::failure::Failure;
use crate::manifest::{self, Document, Style, Syntax};

/// How a report is written.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ReportFlags {
    /// "text": for people; "json": one object a line, for programs
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    output: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    #[value(alias = "table")]
    Text,
    Json,
}

impl ReportFlags {
    /// Writes a report to standard output, by the writer of the form that is wanted.
    /// Whoever reads it may have seen enough before its end.
    ///
    /// # Errors
    /// When it cannot be written and somebody still wants it.
    pub fn write<I: IntoIterator<Item = Value>>(
        self,
        code: ExitCode,
        text: impl FnOnce() -> String,
        objects: impl FnOnce() -> I,
    ) -> Result<ExitCode, Failure> {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = match self.output {
            ReportFormat::Text => out.write_all(text().as_bytes()),
            ReportFormat::Json => objects().into_iter().try_for_each(|object| writeln!(out, "{object}")),
        };
        finish(written.and_then(|()| out.flush()), code)
    }
}

/// Lines of a table: the heads and the rows, each cell as wide as the widest of its column.
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

/// Writes documents; those that were not changed as they came.
pub struct Output<W> {
    /// Where they go.
    pub out: W,
    /// What the last document ended with, once there was one.
    last: Option<char>,
}

impl Output<BufWriter<StdoutLock<'static>>> {
    /// To standard output.
    pub fn standard() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), last: None }
    }
}

impl<W: Write> Output<W> {
    /// Writes a document as one of a YAML stream.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn yaml(&mut self, document: &Document<'_>, is_changed: bool) -> io::Result<()> {
        let is_parted = document.head.lines().any(|line| line.starts_with("---"));
        if let Some(last) = self.last {
            let separator = [if last == '\n' { "" } else { "\n" }, if is_parted { "" } else { "---\n" }];
            self.out.write_all(separator.concat().as_bytes())?;
        }
        let text = if is_changed {
            let text = manifest::write(&document.value, Style::of(document.text));
            // A block of YAML cannot begin in the line of its `---`.
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
    /// When it cannot be written.
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

/// The exit code once everything was written, or not.
///
/// # Errors
/// When it could not be written and somebody still wanted it.
pub fn finish(written: io::Result<()>, code: ExitCode) -> Result<ExitCode, Failure> {
    match written {
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(code),
    }
}
