//! Looking for the bytes that matter, sixteen at a time.

use wide::u8x16;

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
    while let Some(sixteen) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let sixteen = u8x16::new(*sixteen);
        let special = sixteen.simd_eq(u8x16::splat(b'"')) | sixteen.simd_eq(u8x16::splat(b'\\'));
        let found = special.to_bitmask();
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += 16;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).map(|offset| at + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_special_byte_is_found_first_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            let is_special = byte == b'"' || byte == b'\\';
            for at in 0..40 {
                for filling in [b'a', 0x20, 0x7f, 0x80, 0xff, b'!', b'#', b'[', b']'] {
                    let mut bytes = [filling; 40];
                    bytes[at] = byte;
                    // What follows the first one must not hide it.
                    bytes[39] = b'"';
                    let expected = if is_special { at } else { 39 };
                    let found = if at == 39 {
                        special(&bytes[..39], 0).unwrap_or(39)
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
