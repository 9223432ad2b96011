//! A reader of JSON that is made for requests: most of a pod is skipped, and
//! skipping takes no notice of anything but quotes and brackets.
//!
//! It gives up on whatever is unusual, and then `serde_json` reads the text from
//! its start. So nothing is refused, and no message written, but by `serde_json`.
//! What differs is that a value that nobody reads may be no JSON inside, and
//! that strings may have control characters in them.

mod blocks;
mod visit;

use std::fmt;

use blocks::Blocks;
use serde::{Deserialize, de};

/// Reads a text.
///
/// # Errors
/// As `serde_json` has them.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    read(text).or_else(|GivenUp| serde_json::from_str(text))
}

/// Reads bytes.
///
/// # Errors
/// As `serde_json` has them.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> serde_json::Result<T> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| serde_json::from_slice(bytes), from_str)
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, GivenUp> {
    let mut reader = Reader { text, blocks: Blocks::new(text.as_bytes()), at: 0, depth: 0 };
    let value = T::deserialize(&mut reader)?;
    reader.peek().is_none().then_some(value).ok_or(GivenUp)
}

/// Something unusual, or wrong.
#[derive(Debug)]
struct GivenUp;

/// Objects and lists in each other, as many as `serde_json` takes or fewer.
const DEEPEST: usize = 100;

struct Reader<'de> {
    text: &'de str,
    blocks: Blocks<'de>,
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn expect(&mut self, wanted: u8) -> Result<(), GivenUp> {
        let found = self.peek() == Some(wanted);
        self.at += 1;
        found.then_some(()).ok_or(GivenUp)
    }

    fn literal(&mut self, word: &str) -> Result<(), GivenUp> {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        self.at += word.len();
        found.then_some(()).ok_or(GivenUp)
    }

    /// Goes into an object or a list.
    fn enter(&mut self) -> Result<(), GivenUp> {
        self.at += 1;
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(()).ok_or(GivenUp)
    }

    /// Goes to the next item of an object or a list, or out of it. False where
    /// there is no further one.
    fn advance(&mut self, end: u8, first: bool) -> Result<bool, GivenUp> {
        if self.peek().ok_or(GivenUp)? == end {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        if !first {
            self.expect(b',')?;
            // A comma has to be followed by something.
            self.peek().filter(|byte| *byte != end).ok_or(GivenUp)?;
        }
        Ok(true)
    }

    /// The text between two quotes, of which the first was seen. The second
    /// value tells whether anything in it is escaped.
    fn string(&mut self) -> Result<(&'de str, bool), GivenUp> {
        let start = self.at + 1;
        let escaped = self.skip_string()?;
        let text = self.text.get(start..self.at - 1).ok_or(GivenUp)?;
        Ok((text, escaped))
    }

    /// A whole number of a usual size.
    fn number(&mut self) -> Result<i64, GivenUp> {
        const MOST_DIGITS: usize = 18;
        let start = self.at;
        while matches!(self.byte(), Some(b'-' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let is_whole = !matches!(self.byte(), Some(b'.' | b'e' | b'E' | b'+'));
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_usual = digits == "0" || !digits.starts_with('0') && digits.len() <= MOST_DIGITS;
        text.parse().ok().filter(|_| is_whole && is_usual && text != "-0").ok_or(GivenUp)
    }

    /// The text of a value, which is not looked into.
    fn skip(&mut self) -> Result<&'de str, GivenUp> {
        let first = self.peek().ok_or(GivenUp)?;
        let start = self.at;
        match first {
            b'"' => drop(self.skip_string()?),
            b'{' | b'[' => self.at = self.blocks.end_of_nested(start).ok_or(GivenUp)?,
            b'}' | b']' => return Err(GivenUp),
            _ => {
                let word = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E');
                while self.byte().is_some_and(word) {
                    self.at += 1;
                }
            }
        }
        self.text.get(start..self.at).filter(|text| !text.is_empty()).ok_or(GivenUp)
    }

    /// Goes behind a string. True when anything in it is escaped.
    fn skip_string(&mut self) -> Result<bool, GivenUp> {
        let (end, escaped) = self.blocks.end_of_string(self.at + 1).ok_or(GivenUp)?;
        self.at = end;
        Ok(escaped)
    }
}

impl de::Error for GivenUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("left to serde_json")
    }
}

impl std::error::Error for GivenUp {}

#[cfg(test)]
mod tests;
