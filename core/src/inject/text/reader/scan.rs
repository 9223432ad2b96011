//! Looking for the bytes that matter, eight at a time.

/// A one in each byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each byte.
const HIGHEST: u64 = ONES << 7;

/// What follows the string whose first quote is before `at`, and whether anything in it is escaped.
#[inline]
pub fn end_of_string(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    loop {
        at = special(bytes, at)?;
        if bytes[at] == b'"' {
            return Some((at + 1, escaped));
        }
        escaped = true;
        at += 2;
    }
}

/// From `at` on, where the first quote or backslash stands.
#[inline]
fn special(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = specials(u64::from_le_bytes(*eight));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).map(|offset| at + offset)
}

/// The highest bit of the first byte that is special; those above it tell nothing.
fn specials(eight: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let (quote, backslash) = (eight ^ (ONES * u64::from(b'"')), eight ^ (ONES * u64::from(b'\\')));
    (zero(quote) | zero(backslash)) & HIGHEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_special_byte_is_found_first_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            let is_special = byte == b'"' || byte == b'\\';
            for at in 0..20 {
                for filling in [b'a', 0x20, 0x7f, 0x80, 0xff, b'!', b'#', b'[', b']'] {
                    let mut bytes = [filling; 20];
                    bytes[at] = byte;
                    // What follows the first one must not hide it.
                    bytes[19] = b'"';
                    let expected = if is_special { at } else { 19 };
                    let found = if at == 19 {
                        special(&bytes[..19], 0).unwrap_or(19)
                    } else {
                        special(&bytes, 0).expect("a quote")
                    };
                    assert_eq!(found, expected, "{byte:#x} at {at} in {filling:#x}");
                }
            }
        }
        assert_eq!(special(b"", 0), None);
        assert_eq!(special(b"\"", 1), None);
        assert_eq!(special(b"\"", 7), None);
    }
}
