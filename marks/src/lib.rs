//! Which bytes of a text are quotes, backslashes and brackets, 64 at a time.
//!
//! Two thirds of a review are never read, and only gone through to find where they end. Vectors of 32
//! or 64 bytes and instructions that count and multiply bits halve the time of that, but a program may use
//! them only after it has asked the processor, and in unsafe code: so this is a crate of its own.

use wide::u8x16;

/// As many bytes are marked at once.
pub const BLOCK: usize = 64;

/// Which bytes of a block matter for JSON: the lowest bit stands for the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Quotes that begin or end a string.
    pub quotes: u64,
    /// Backslashes.
    pub backslashes: u64,
    /// Opening brackets, curly and square, outside of strings.
    pub opening: u64,
    /// Closing ones.
    pub closing: u64,
    /// How many opening ones there are.
    pub opened: u32,
    /// How many closing ones there are.
    pub closed: u32,
}

/// Marks the blocks of one text, from its first to its last.
#[derive(Clone, Debug)]
pub struct Marker {
    mark: Mark,
    before: Before,
}

/// Writes the marks where they stay: what is written number by number and read again as vectors at once,
/// as a value on its way would be, takes longer than the marking.
type Mark = fn(&mut Before, &[u8; BLOCK], &mut Marks);

/// What a block has to know of the one before it.
#[derive(Clone, Debug, Default)]
struct Before {
    /// All ones where it ended within a string.
    string: u64,
    /// Whether its last byte is the backslash of an escape.
    escaping: bool,
}

impl Marker {
    /// For a text that begins outside of a string.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(mark) = x86::avx512().or_else(x86::avx2) {
            return Self::by(mark);
        }
        Self::by(portable)
    }

    fn by(mark: Mark) -> Self {
        Self { mark, before: Before::default() }
    }

    /// Marks the next block.
    #[inline]
    pub fn next(&mut self, block: &[u8; BLOCK], marks: &mut Marks) {
        (self.mark)(&mut self.before, block, marks);
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the bytes are, whatever they mean there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

/// The square brackets differ from the curly ones in this bit alone.
const FOLD: u8 = 0x20;

/// By vectors that every processor has.
fn portable(before: &mut Before, block: &[u8; BLOCK], marks: &mut Marks) {
    let mut found = Found::default();
    for (index, sixteen) in block.as_chunks::<16>().0.iter().enumerate() {
        let bytes = u8x16::new(*sixteen);
        let folded = bytes | u8x16::splat(FOLD);
        let bits =
            |bytes: u8x16, is: u8| u64::from(bytes.simd_eq(u8x16::splat(is)).to_bitmask()) << (index * 16);
        found.quotes |= bits(bytes, b'"');
        found.backslashes |= bits(bytes, b'\\');
        found.opening |= bits(folded, b'{');
        found.closing |= bits(folded, b'}');
    }
    finish(before, &found, within_strings, marks);
}

/// Tells what the bytes mean; `within_strings` gives one for each byte from an opening quote up to its
/// closing one.
#[inline(always)]
#[allow(clippy::inline_always, reason = "compiled once for each kind of processor")]
fn finish(before: &mut Before, found: &Found, within_strings: impl Fn(u64) -> u64, marks: &mut Marks) {
    let quotes = found.quotes & !escaped(found.backslashes, &mut before.escaping);
    let within = within_strings(quotes) ^ before.string;
    before.string = if within >> (BLOCK - 1) == 1 { u64::MAX } else { 0 };
    let (opening, closing) = (found.opening & !within, found.closing & !within);
    marks.quotes = quotes;
    marks.backslashes = found.backslashes;
    marks.opening = opening;
    marks.closing = closing;
    marks.opened = opening.count_ones();
    marks.closed = closing.count_ones();
}

/// The bytes that a backslash stands before; `escaping` is whether one stands before the block,
/// and then before the next.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of finish")]
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

/// For [`finish`]: each bit is the sum, without carries, of those up to it.
fn within_strings(quotes: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(quotes, |sum, by| sum ^ (sum << by))
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    use super::*;

    /// The same byte by byte, for a whole text.
    fn byte_by_byte(text: &[u8]) -> Vec<Marks> {
        let (mut in_string, mut escaping) = (false, false);
        let mark = |block: &[u8; BLOCK]| {
            let mut marks = Marks::default();
            for (index, byte) in block.iter().enumerate() {
                let bit = 1 << index;
                let is_escaped = std::mem::take(&mut escaping);
                match byte {
                    b'"' if !is_escaped => {
                        marks.quotes |= bit;
                        in_string = !in_string;
                    }
                    b'\\' => {
                        marks.backslashes |= bit;
                        escaping = !is_escaped;
                    }
                    b'{' | b'[' if !in_string => marks.opening |= bit,
                    b'}' | b']' if !in_string => marks.closing |= bit,
                    _ => {}
                }
            }
            (marks.opened, marks.closed) = (marks.opening.count_ones(), marks.closing.count_ones());
            marks
        };
        text.as_chunks().0.iter().map(mark).collect()
    }

    /// All ways to mark that the processor has.
    fn ways() -> Vec<Mark> {
        let mut ways: Vec<Mark> = vec![portable];
        #[cfg(target_arch = "x86_64")]
        ways.extend(x86::avx2().into_iter().chain(x86::avx512()));
        ways
    }

    fn check(text: &[u8]) {
        let expected = byte_by_byte(text);
        for mut marker in ways().into_iter().map(Marker::by) {
            let mut marks = Marks::default();
            for (block, expected) in text.as_chunks().0.iter().zip(&expected) {
                marker.next(block, &mut marks);
                assert_eq!(marks, *expected, "{}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn every_byte_is_marked_for_what_it_is_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK {
                let mut block = [b' '; BLOCK];
                block[at] = byte;
                check(&block);
            }
        }
    }

    #[test]
    fn what_stands_in_strings_and_behind_backslashes_does_not_count() {
        // Texts of these bytes in an order that does not repeat itself soon.
        let bytes = b"\"\\{}[]a \"\\\\\"";
        let mut state = 1_u32;
        for _ in 0..300 {
            let text: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes[(state >> 16) as usize % bytes.len()]
            })
            .take(4 * BLOCK)
            .collect();
            check(&text);
        }
    }
}
