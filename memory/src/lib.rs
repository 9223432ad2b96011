//! `memcpy`, `memmove` and `memcmp` of C, for programs that are linked with musl for
//! x86-64. musl's own copy by the instruction `rep movsq`, which takes dozens of
//! cycles to begin: on some processors a third of all that a review costs, which
//! makes some five hundred copies of a few bytes each. And they compare byte by byte.
//!
//! Whoever links this crate has them, and so have all libraries in the program,
//! since the linker looks into C's library last. Elsewhere the crate is empty but
//! for what its tests try: other C libraries, and musl for ARM, have fast ones.
//!
//! Up to 64 bytes are copied without a loop: both ends are read before either is
//! written, and they may overlap each other.

// The compiler knows a loop that copies, and would put a call of memcpy in its place.
#![no_builtins]
#![cfg_attr(not(test), no_std)]
#![cfg(target_arch = "x86_64")]
#![cfg_attr(not(any(test, target_env = "musl")), allow(dead_code, reason = "C's library has its own here"))]

use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
use core::cmp::Ordering;

/// As C has it, but for that the two may overlap.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: as the caller says.
    unsafe { copy(to, from, len) };
    to
}

/// As C has it.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: as the caller says.
    unsafe { copy(to, from, len) };
    to
}

/// As C has it.
///
/// # Safety
/// `len` bytes can be read from both.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { compare(left, right, len) as i32 }
}

/// Zero where both are the same: what the compiler calls for `==`.
///
/// # Safety
/// `len` bytes can be read from both.
#[cfg(target_env = "musl")]
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe { compare(left, right, len) as i32 }
}

/// Compares `len` bytes, eight at a time.
///
/// # Safety
/// `len` bytes can be read from both.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn compare(left: *const u8, right: *const u8, len: usize) -> Ordering {
    const EIGHT: usize = size_of::<u64>();
    let mut at = 0;
    // SAFETY: everything that is read begins and ends within `len` bytes.
    unsafe {
        if len >= EIGHT {
            while at < len - EIGHT {
                let order = compare_eight(left.add(at), right.add(at));
                if order.is_ne() {
                    return order;
                }
                at += EIGHT;
            }
            // What was looked at before is the same in both.
            return compare_eight(left.add(len - EIGHT), right.add(len - EIGHT));
        }
        while at < len {
            let order = left.add(at).read().cmp(&right.add(at).read());
            if order.is_ne() {
                return order;
            }
            at += 1;
        }
    }
    Ordering::Equal
}

/// # Safety
/// Eight bytes can be read from both.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
#[allow(clippy::cast_ptr_alignment, reason = "they are read unaligned")]
unsafe fn compare_eight(left: *const u8, right: *const u8) -> Ordering {
    // SAFETY: as the caller says.
    let (left, right) =
        unsafe { (left.cast::<u64>().read_unaligned(), right.cast::<u64>().read_unaligned()) };
    // The first byte counts most.
    u64::from_be(left).cmp(&u64::from_be(right))
}

/// 64 bytes, in four registers.
type Block = [__m128i; 4];

const BLOCK: usize = size_of::<Block>();

/// Copies `len` bytes, whether the two overlap or not.
///
/// # Safety
/// `len` bytes can be read from `from` and written to `to`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "a call in a call would cost as much as a short copy")]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: each of these reads and writes nothing but the first `len` bytes, for the lengths
    // that it is chosen for.
    unsafe {
        match len {
            0 => {}
            1..4 => few(to, from, len),
            4..8 => ends::<u32>(to, from, len),
            8..16 => ends::<u64>(to, from, len),
            16..=32 => sixteens(to, from, len),
            33..=BLOCK => halves(to, from, len),
            _ => blocks(to, from, len),
        }
    }
}

/// One to three bytes: the first, the middle and the last, some of them twice.
///
/// # Safety
/// As of [`copy`].
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn few(to: *mut u8, from: *const u8, len: usize) {
    let (middle, last) = (len / 2, len - 1);
    // SAFETY: all three are less than `len`.
    unsafe {
        let bytes = (from.read(), from.add(middle).read(), from.add(last).read());
        to.write(bytes.0);
        to.add(middle).write(bytes.1);
        to.add(last).write(bytes.2);
    }
}

/// As much as two numbers hold.
///
/// # Safety
/// As of [`copy`]; `len` is not less than the size of a number, nor more than that of two.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn ends<Number: Copy>(to: *mut u8, from: *const u8, len: usize) {
    let last = len - size_of::<Number>();
    // SAFETY: both numbers lie within `len` bytes, and need not be aligned.
    unsafe {
        let numbers =
            (from.cast::<Number>().read_unaligned(), from.add(last).cast::<Number>().read_unaligned());
        to.cast::<Number>().write_unaligned(numbers.0);
        to.add(last).cast::<Number>().write_unaligned(numbers.1);
    }
}

/// 16 to 32 bytes.
///
/// # Safety
/// As of [`copy`].
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn sixteens(to: *mut u8, from: *const u8, len: usize) {
    let last = len - 16;
    // SAFETY: both lie within `len` bytes.
    unsafe {
        let (head, tail) = (load(from), load(from.add(last)));
        store(to, head);
        store(to.add(last), tail);
    }
}

/// 32 to 64 bytes.
///
/// # Safety
/// As of [`copy`].
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn halves(to: *mut u8, from: *const u8, len: usize) {
    let last = len - 32;
    // SAFETY: all four lie within `len` bytes.
    unsafe {
        let head = (load(from), load(from.add(16)));
        let tail = (load(from.add(last)), load(from.add(last + 16)));
        store(to, head.0);
        store(to.add(16), head.1);
        store(to.add(last), tail.0);
        store(to.add(last + 16), tail.1);
    }
}

/// More than 64 bytes, from the end that no write reaches before it is read.
///
/// # Safety
/// As of [`copy`].
unsafe fn blocks(to: *mut u8, from: *const u8, len: usize) {
    let last = len - BLOCK;
    // SAFETY: every block begins at `last` or before it.
    unsafe {
        // Where `to` lies within what is read, the end of that comes first.
        if to.addr().wrapping_sub(from.addr()) >= len {
            let tail = load_block(from.add(last));
            let mut at = 0;
            while at < last {
                store_block(to.add(at), load_block(from.add(at)));
                at += BLOCK;
            }
            store_block(to.add(last), tail);
        } else {
            let head = load_block(from);
            let mut at = last;
            while at > 0 {
                store_block(to.add(at), load_block(from.add(at)));
                at = at.saturating_sub(BLOCK);
            }
            store_block(to, head);
        }
    }
}

/// # Safety
/// 16 bytes can be read.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
#[allow(clippy::cast_ptr_alignment, reason = "the instruction does not ask for alignment")]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: as the caller says.
    unsafe { _mm_loadu_si128(from.cast()) }
}

/// # Safety
/// 16 bytes can be written.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
#[allow(clippy::cast_ptr_alignment, reason = "the instruction does not ask for alignment")]
unsafe fn store(to: *mut u8, bytes: __m128i) {
    // SAFETY: as the caller says.
    unsafe { _mm_storeu_si128(to.cast(), bytes) }
}

/// # Safety
/// 64 bytes can be read.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn load_block(from: *const u8) -> Block {
    // SAFETY: as the caller says.
    unsafe { [load(from), load(from.add(16)), load(from.add(32)), load(from.add(48))] }
}

/// # Safety
/// 64 bytes can be written.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as of copy")]
unsafe fn store_block(to: *mut u8, block: Block) {
    // SAFETY: as the caller says.
    unsafe {
        store(to, block[0]);
        store(to.add(16), block[1]);
        store(to.add(32), block[2]);
        store(to.add(48), block[3]);
    }
}

#[cfg(test)]
mod tests;
