//! The end of an object or a list that nobody looks into, 64 bytes at a time.
//!
//! A block becomes four words of one bit a byte. All that stands between quotes
//! is struck out by one prefix sum; what is left of the brackets is counted, not
//! visited, but for the block in which they may come to an end.

use wide::u8x16;

use super::scan::end_of_string;

const BLOCK: usize = 64;

/// Which bytes of a block matter: the lowest bit stands for the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

/// What follows the object or the list that begins at `at`.
pub fn end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    // All ones within a string; and whether the last byte of a block was the backslash of an escape.
    let (mut string, mut escaping) = (0, false);
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let marks = Marks::of(block);
        let quotes = marks.quotes & !escaped(marks.backslashes, &mut escaping);
        let within = within_strings(quotes) ^ string;
        let (opening, closing) = (marks.opening & !within, marks.closing & !within);
        if depth > closing.count_ones() {
            depth = depth + opening.count_ones() - closing.count_ones();
        } else if let Some(last) = last_closing(opening, closing, &mut depth) {
            return Some(at + last + 1);
        }
        string = if within >> (BLOCK - 1) == 1 { u64::MAX } else { 0 };
        at += BLOCK;
    }
    by_byte(bytes, at + usize::from(escaping), depth, string != 0)
}

/// The bytes that a backslash stands before; `escaping` is whether one stands before the block,
/// and then before the next.
fn escaped(mut backslashes: u64, escaping: &mut bool) -> u64 {
    let mut escaped = u64::from(*escaping);
    backslashes &= !escaped;
    *escaping = false;
    while backslashes != 0 {
        let lowest = backslashes & backslashes.wrapping_neg();
        *escaping = lowest >> (BLOCK - 1) == 1;
        escaped |= lowest << 1;
        // One that is escaped escapes nothing.
        backslashes &= !(lowest | lowest << 1);
    }
    escaped
}

/// One for each byte from an opening quote up to its closing one.
fn within_strings(quotes: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(quotes, |sum, by| sum ^ (sum << by))
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

/// The same byte by byte, for what is less than a block.
fn by_byte(bytes: &[u8], mut at: usize, mut depth: u32, in_string: bool) -> Option<usize> {
    if in_string {
        at = end_of_string(bytes, at)?.0;
    }
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at)?.0,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self::default();
        for (index, sixteen) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*sixteen);
            // The square brackets differ from the curly ones in this bit alone.
            let folded = bytes | u8x16::splat(0x20);
            let bits = |bytes: u8x16, is: u8| {
                u64::from(bytes.simd_eq(u8x16::splat(is)).to_bitmask()) << (index * 16)
            };
            marks.quotes |= bits(bytes, b'"');
            marks.backslashes |= bits(bytes, b'\\');
            marks.opening |= bits(folded, b'{');
            marks.closing |= bits(folded, b'}');
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn byte_by_byte(block: &[u8; BLOCK]) -> Marks {
        let marked =
            |is: fn(u8) -> bool| block.iter().rev().fold(0, |marks, byte| marks << 1 | u64::from(is(*byte)));
        Marks {
            quotes: marked(|byte| byte == b'"'),
            backslashes: marked(|byte| byte == b'\\'),
            opening: marked(|byte| b"{[".contains(&byte)),
            closing: marked(|byte| b"}]".contains(&byte)),
        }
    }

    #[test]
    fn every_byte_is_marked_for_what_it_is() {
        for byte in 0..=u8::MAX {
            for at in [0, 7, 8, 15, 16, 63] {
                let mut block = [b' '; BLOCK];
                block[at] = byte;
                assert_eq!(Marks::of(&block), byte_by_byte(&block), "{byte:#x} at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_end_is_where_it_is_byte_by_byte(
            text in "[\\[{]([\\[\\]{}a]|\"([a{\\]]|\\\\.){0,30}\"|b{0,40}){0,60}[\\]}]{0,9}"
        ) {
            prop_assert_eq!(end(text.as_bytes(), 0), by_byte(text.as_bytes(), 0, 0, false));
        }
    }
}
