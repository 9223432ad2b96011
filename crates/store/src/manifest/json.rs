//! JSON documents: one or more values in a part.

use serde_json::{Value, value::RawValue};

use super::{
    document::{Document, Syntax},
    error::{Failure, Problem},
    split::Part,
};

/// Reads the values of a part, with or without white space between them.
pub fn documents<'t>(
    part: &Part<'t>,
    first: usize,
    documents: &mut Vec<Document<'t>>,
) -> Result<(), Failure> {
    let body = part.body;
    let fail = |error: &serde_json::Error, number: usize| Failure {
        document: number,
        line: part.line + error.line() - 1,
        problem: Problem::of(error),
    };
    // Comments and `...` are permitted after JSON, too.
    let mut stream = serde_json::Deserializer::from_str(part.trimmed()).into_iter::<&RawValue>();
    let mut starts = Vec::new();
    while let Some(raw) = stream.next() {
        let number = first + starts.len();
        let raw = raw.map_err(|error| fail(&error, number))?;
        let start = stream.byte_offset() - raw.get().len();
        let line = part.line + body[..start].matches('\n').count();
        let value: Value = serde_json::from_str(raw.get()).map_err(|error| Failure {
            document: number,
            line: line + error.line() - 1,
            problem: Problem::of(&error),
        })?;
        starts.push((start, line, value));
    }
    let ends: Vec<usize> = starts.iter().skip(1).map(|start| start.0).chain([body.len()]).collect();
    for (index, ((start, line, value), end)) in starts.into_iter().zip(ends).enumerate() {
        documents.push(Document {
            number: first + index,
            line,
            syntax: Syntax::Json,
            head: if index == 0 { part.head } else { "" },
            text: &body[start..end],
            value,
        });
    }
    Ok(())
}

impl Problem {
    fn of(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self::NotJson { message, column: error.column() }
    }
}

/// Removes the white space of JSON, and keeps the text of every value.
///
/// Parsing and writing it would change `1e3` to `1000.0`, and drop the first of two equal keys.
pub fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in json.chars() {
        if in_string || !matches!(character, ' ' | '\t' | '\r' | '\n') {
            out.push(character);
        }
        if in_string && !escaped && character == '\\' {
            escaped = true;
            continue;
        }
        if character == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = false;
    }
    out
}
