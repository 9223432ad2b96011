use super::*;

/// Copies within one text, and holds every byte of it against the standard library's copy.
fn check(from: usize, to: usize, len: usize) {
    let before: Vec<u8> = (0..1200_u32).map(|at| ((at * 7 + at / 251) % 256).to_le_bytes()[0]).collect();
    let (mut text, mut expected) = (before.clone(), before);
    expected.copy_within(from..from + len, to);
    assert!(from.max(to) + len <= text.len(), "within the text");
    let start = text.as_mut_ptr();
    // SAFETY: both lie within the text.
    unsafe { copy(start.add(to), start.add(from), len) };
    assert!(text == expected, "{len} bytes from {from} to {to}");
}

#[test]
fn every_length_is_copied_and_nothing_beside_it() {
    for len in 0..500 {
        check(3, 600, len);
        check(601, 2, len);
    }
}

#[test]
fn what_overlaps_is_copied_as_it_was() {
    for len in 0..330 {
        for shift in (0..140).chain([190, 256, 300]) {
            check(400, 400 + shift, len);
            check(400, 400 - shift, len);
        }
    }
}

#[test]
fn bytes_are_compared_as_the_standard_library_does() {
    for len in 0..70 {
        let left: Vec<u8> = (0..len).map(|at: u8| at.wrapping_mul(37)).collect();
        for at in 0..usize::from(len) {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut right = left.clone();
                right[at] = byte;
                if let Some(last) = right.last_mut().filter(|_| at + 1 < usize::from(len)) {
                    // A later difference must not count.
                    *last = last.wrapping_add(128);
                }
                // SAFETY: both have this length.
                let found = unsafe { compare(left.as_ptr(), right.as_ptr(), left.len()) };
                assert_eq!(found, left.cmp(&right), "{left:?} {right:?}");
            }
        }
        // SAFETY: it has this length.
        assert_eq!(unsafe { compare(left.as_ptr(), left.clone().as_ptr(), left.len()) }, Ordering::Equal);
    }
}
