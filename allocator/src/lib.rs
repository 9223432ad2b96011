//! mimalloc as the allocator of a Rust program.
//!
//! The crate `mimalloc` does the same, but asks for an alignment each time. mimalloc has to look
//! then whether the next free block happens to have it, and for blocks of more than a kilobyte it
//! takes a larger one: twice the instructions of an ordinary allocation, which is aligned well
//! enough for nearly everything.

use core::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys as mimalloc;

/// mimalloc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mimalloc;

/// mimalloc aligns blocks of 16 bytes and more to this (`MI_MAX_ALIGN_SIZE`), and smaller ones to 8,
/// as C wants it of `malloc`.
const USUAL: usize = 16;

/// Whether each block of a size is aligned as is wanted. The standard library's own allocator asks
/// the same of C's library.
const fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= USUAL && align <= size
}

// SAFETY: mimalloc's blocks are of the size that was asked for or larger, and nobody else's until
// they are freed; those that it does not align by itself are asked for with their alignment. All
// of its functions take what any other of them returned.
unsafe impl GlobalAlloc for Mimalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size may be asked for, and a layout's alignment is a power of two.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mimalloc::mi_malloc(size)
            } else {
                mimalloc::mi_malloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as of alloc.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mimalloc::mi_zalloc(size)
            } else {
                mimalloc::mi_zalloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller got it from this allocator.
        unsafe { mimalloc::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller got it from this allocator; otherwise as of alloc.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mimalloc::mi_realloc(block.cast(), size)
            } else {
                mimalloc::mi_realloc_aligned(block.cast(), size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIGNMENTS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 512, 4096];

    fn sizes() -> impl Iterator<Item = usize> {
        (1..300).chain([1000, 1023, 1024, 1025, 1500, 4096, 6144, 9000, 70_000, 1_000_000])
    }

    fn block(start: *mut u8, layout: Layout) -> &'static mut [u8] {
        assert!(!start.is_null(), "{layout:?}");
        assert_eq!(start.align_offset(layout.align()), 0, "{layout:?}");
        // SAFETY: it was asked for with this size, and is freed by the caller, later.
        unsafe { core::slice::from_raw_parts_mut(start, layout.size()) }
    }

    /// Blocks of all sizes at once, so that none is aligned only since it is the first of its page.
    #[test]
    fn every_block_is_aligned_and_nobody_elses() {
        for align in ALIGNMENTS {
            let layouts =
                sizes().flat_map(|size| [Layout::from_size_align(size, align).expect("a layout"); 3]);
            let mut blocks = Vec::new();
            for (index, layout) in layouts.enumerate() {
                let number = u8::try_from(index % 251).expect("a byte");
                // SAFETY: no layout is empty.
                let start = unsafe { Mimalloc.alloc(layout) };
                block(start, layout).fill(number);
                blocks.push((start, layout, number));
            }
            for (start, layout, number) in blocks {
                assert!(block(start, layout).iter().all(|byte| *byte == number), "{layout:?}");
                // SAFETY: it came from here.
                unsafe { Mimalloc.dealloc(start, layout) };
            }
        }
    }

    #[test]
    fn zeroed_blocks_are_zero_where_others_were_before() {
        for align in ALIGNMENTS {
            for size in sizes() {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                for _ in 0..2 {
                    // SAFETY: no layout is empty.
                    let start = unsafe { Mimalloc.alloc_zeroed(layout) };
                    let bytes = block(start, layout);
                    assert!(bytes.iter().all(|byte| *byte == 0), "{layout:?}");
                    bytes.fill(0xff);
                    // SAFETY: it came from here.
                    unsafe { Mimalloc.dealloc(start, layout) };
                }
            }
        }
    }

    #[test]
    fn a_block_keeps_its_bytes_and_its_alignment_while_it_grows_and_shrinks() {
        for align in ALIGNMENTS {
            let mut layout = Layout::from_size_align(1, align).expect("a layout");
            // SAFETY: the layout is not empty.
            let mut start = unsafe { Mimalloc.alloc(layout) };
            block(start, layout).fill(7);
            for size in [3, 8, 15, 40, 700, 1100, 5000, 80_000, 3000, 17, 2] {
                // SAFETY: it came from here with this layout, and the size is not zero.
                start = unsafe { Mimalloc.realloc(start, layout, size) };
                let kept = layout.size().min(size);
                layout = Layout::from_size_align(size, align).expect("a layout");
                let bytes = block(start, layout);
                assert!(bytes[..kept].iter().all(|byte| *byte == 7), "{layout:?}");
                bytes.fill(7);
            }
            // SAFETY: it came from here.
            unsafe { Mimalloc.dealloc(start, layout) };
        }
    }
}
