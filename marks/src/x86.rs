//! By what processors of x86-64 can do beyond what all of them can: wider vectors, and instructions that
//! count and multiply bits.

use core::arch::x86_64::{
    __m256i, __m512i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi8,
};

use super::{BLOCK, Before, FOLD, Found, Mark, Marks, finish};

/// By vectors of 32 bytes, if the processor has them; most have since 2013.
pub fn avx2() -> Option<Mark> {
    let has = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("pclmulqdq");
    // SAFETY: the processor has what the function needs.
    has.then_some(|before, block, marks| unsafe { mark_by_32(before, block, marks) })
}

/// By vectors of 64 bytes, which are compared to bits at once, if the processor has them; many servers do.
pub fn avx512() -> Option<Mark> {
    let has = is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("pclmulqdq");
    // SAFETY: the processor has what the function needs.
    has.then_some(|before, block, marks| unsafe { mark_by_64(before, block, marks) })
}

#[target_feature(enable = "avx2,popcnt,pclmulqdq")]
fn mark_by_32(before: &mut Before, block: &[u8; BLOCK], marks: &mut Marks) {
    let halves = block.as_chunks::<32>().0;
    let [low, high] = [load_32(&halves[0]), load_32(&halves[1])];
    let fold = splat_32(FOLD);
    let [low_folded, high_folded] = [_mm256_or_si256(low, fold), _mm256_or_si256(high, fold)];
    let found = Found {
        quotes: equal(low, high, b'"'),
        backslashes: equal(low, high, b'\\'),
        opening: equal(low_folded, high_folded, b'{'),
        closing: equal(low_folded, high_folded, b'}'),
    };
    finish(before, &found, |quotes| within_strings(quotes), marks);
}

#[target_feature(enable = "avx512bw,popcnt,pclmulqdq")]
fn mark_by_64(before: &mut Before, block: &[u8; BLOCK], marks: &mut Marks) {
    let bytes = load_64(block);
    let folded = _mm512_or_si512(bytes, splat_64(FOLD));
    let found = Found {
        quotes: _mm512_cmpeq_epi8_mask(bytes, splat_64(b'"')),
        backslashes: _mm512_cmpeq_epi8_mask(bytes, splat_64(b'\\')),
        opening: _mm512_cmpeq_epi8_mask(folded, splat_64(b'{')),
        closing: _mm512_cmpeq_epi8_mask(folded, splat_64(b'}')),
    };
    finish(before, &found, |quotes| within_strings(quotes), marks);
}

/// The sums of [`super::within_strings`], all at once: the product, without carries, with a factor of
/// nothing but ones.
#[target_feature(enable = "pclmulqdq")]
fn within_strings(quotes: u64) -> u64 {
    let quotes = _mm_set_epi64x(0, quotes.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(quotes, _mm_set1_epi8(-1))).cast_unsigned()
}

#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, byte: u8) -> u64 {
    let wanted = splat_32(byte);
    let bits = |half| u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, wanted)).cast_unsigned());
    bits(low) | bits(high) << 32
}

#[target_feature(enable = "avx2")]
fn splat_32(byte: u8) -> __m256i {
    _mm256_set1_epi8(byte.cast_signed())
}

#[target_feature(enable = "avx512bw")]
fn splat_64(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte.cast_signed())
}

#[target_feature(enable = "avx2")]
fn load_32(half: &[u8; 32]) -> __m256i {
    // SAFETY: there are 32 bytes, and the instruction does not ask for alignment.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

#[target_feature(enable = "avx512bw")]
fn load_64(block: &[u8; BLOCK]) -> __m512i {
    // SAFETY: there are 64 bytes, and the instruction does not ask for alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}
