//! Where strings and values end, 64 bytes at a time.
//!
//! A block becomes words of one bit a byte: its quotes, and those of its brackets that stand outside of
//! strings. The reader goes through a text from its beginning to its end, so that each block is marked once,
//! for all that is looked for in it.

use otel_webhook_marks::{BLOCK, Marker, Marks};

/// The block of a text that is being read.
pub struct Blocks<'t> {
    bytes: &'t [u8],
    /// Where it begins.
    start: usize,
    marks: Marks,
    marker: Marker,
}

impl<'t> Blocks<'t> {
    /// At the first block of a text.
    pub fn new(bytes: &'t [u8]) -> Self {
        let mut blocks = Self { bytes, start: 0, marks: Marks::default(), marker: Marker::new() };
        blocks.mark();
        blocks
    }

    /// What follows the string whose first quote is before `at`, and whether anything in it is escaped.
    /// None where it does not end.
    #[inline]
    pub fn end_of_string(&mut self, at: usize) -> Option<(usize, bool)> {
        let mut looked_at = self.reach(at)?;
        let mut escaped = false;
        loop {
            let quotes = self.marks.quotes & looked_at;
            let before = quotes.wrapping_sub(1) & !quotes;
            escaped |= self.marks.backslashes & looked_at & before != 0;
            if quotes != 0 {
                return Some((self.start + quotes.trailing_zeros() as usize + 1, escaped));
            }
            self.next()?;
            looked_at = u64::MAX;
        }
    }

    /// What follows the object or the list whose bracket is at `at`. None where it does not end.
    pub fn end_of_nested(&mut self, at: usize) -> Option<usize> {
        let looked_at = self.reach(at)?;
        let mut depth = 0;
        let mut last =
            last_closing(self.marks.opening & looked_at, self.marks.closing & looked_at, &mut depth);
        while last.is_none() {
            self.next()?;
            let Marks { opening, closing, opened, closed, .. } = self.marks;
            if depth > closed {
                depth = depth + opened - closed;
            } else {
                last = last_closing(opening, closing, &mut depth);
            }
        }
        last.map(|last| self.start + last + 1)
    }

    /// Goes to the block of `at`, which is never before the present one. Gives ones from there on.
    #[inline]
    fn reach(&mut self, at: usize) -> Option<u64> {
        while at >= self.start + BLOCK {
            self.next()?;
        }
        Some(u64::MAX << (at - self.start))
    }

    /// Goes to the next block; none where the text is over.
    fn next(&mut self) -> Option<()> {
        self.start += BLOCK;
        (self.start < self.bytes.len()).then(|| self.mark())
    }

    fn mark(&mut self) {
        let rest = &self.bytes[self.start..];
        if let Some(block) = rest.first_chunk() {
            self.marker.next(block, &mut self.marks);
        } else {
            let mut block = [b' '; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            self.marker.next(&block, &mut self.marks);
        }
    }
}

/// The bracket that closes what the first one opened, if it is in the block.
fn last_closing(opening: u64, closing: u64, depth: &mut u32) -> Option<usize> {
    let mut brackets = opening | closing;
    while brackets != 0 {
        let lowest = brackets & brackets.wrapping_neg();
        if opening & lowest != 0 {
            *depth += 1;
        } else if *depth <= 1 {
            return Some(lowest.trailing_zeros() as usize);
        } else {
            *depth -= 1;
        }
        brackets ^= lowest;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The end of a string, and whether anything in it is escaped.
    fn string_by_byte(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
        let mut escaped = false;
        loop {
            match bytes.get(at)? {
                b'"' => return Some((at + 1, escaped)),
                b'\\' => (at, escaped) = (at + 2, true),
                _ => at += 1,
            }
        }
    }

    fn nested_by_byte(bytes: &[u8], mut at: usize) -> Option<usize> {
        let mut depth = 0;
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            match byte {
                b'"' => at = string_by_byte(bytes, at)?.0,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return Some(at),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_it_stands() {
        for before in 0..140 {
            for text in [r#"""#, r#"a""#, r#"\"""#, r#"\\""#, r#"\\\"x""#, "[", ""] {
                let text = [r#"""#, &"{".repeat(before), text, r#"}""#, r#"a" "b""#].concat();
                let found = Blocks::new(text.as_bytes()).end_of_string(1);
                assert_eq!(found, string_by_byte(text.as_bytes(), 1), "{text}");
            }
            let open = [r#"""#, &"a".repeat(before), r#"\""#].concat();
            assert_eq!(Blocks::new(open.as_bytes()).end_of_string(1), None);
        }
        assert_eq!(Blocks::new(b"").end_of_string(1), None);
        assert_eq!(Blocks::new(b"").end_of_nested(0), None);
    }

    proptest! {
        #[test]
        fn all_ends_are_where_they_are_byte_by_byte(
            text in "([\\[{]|a{0,9})([\\[\\]{}a]|\"([a{\\]]|\\\\.){0,30}\"|b{0,40}){0,60}[\\]}]{0,9}"
        ) {
            let bytes = text.as_bytes();
            let mut blocks = Blocks::new(bytes);
            let mut at = 0;
            // As a reader goes: into each object, and behind each string.
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        let end = blocks.end_of_string(at + 1);
                        prop_assert_eq!(end, string_by_byte(bytes, at + 1));
                        at = end.map_or(bytes.len(), |(end, _)| end);
                    }
                    b'{' | b'[' => {
                        let end = Blocks::new(&bytes[at..]).end_of_nested(0).map(|end| at + end);
                        prop_assert_eq!(end, nested_by_byte(bytes, at));
                        if *byte == b'[' {
                            prop_assert_eq!(blocks.end_of_nested(at), end);
                            at = end.unwrap_or(bytes.len());
                        } else {
                            at += 1;
                        }
                    }
                    _ => at += 1,
                }
            }
        }
    }
}
