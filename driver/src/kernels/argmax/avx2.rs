//! Positions of the largest bytes, 16 at a time.

use core::arch::x86_64::*;

use super::portable::MAX_LEN;
use crate::kernels::simd::avx2::{load_16_bytes, load_bytes};

/// Values that are compared together.
const BLOCK: usize = 16;

/// As [`portable::positions`](super::portable::positions).
#[target_feature(enable = "avx2")]
pub(crate) fn positions(rows: &[u8], len: usize, flip: u8, out: &mut [i32]) {
    assert!(len <= MAX_LEN, "positions of 8 bits");
    let flip = _mm_set1_epi8(flip.cast_signed());
    // What position 0 and those after it add to their values.
    let first = _mm256_sub_epi16(
        _mm256_set1_epi16(255),
        _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    );
    let keys = |bytes, ranks| {
        let values = _mm256_cvtepu8_epi16(_mm_xor_si128(bytes, flip));
        _mm256_or_si256(_mm256_slli_epi16::<8>(values), ranks)
    };
    // Both are below 256.
    let [few, before_last] = [len.min(BLOCK), len.saturating_sub(BLOCK)]
        .map(|count| i16::try_from(count).unwrap_or(i16::MAX));
    // Of a row that has no whole block the lanes that it lacks count as nothing: none is above what follows the last one.
    let present = _mm256_cmpgt_epi16(first, _mm256_set1_epi16(255 - few));
    let last = _mm256_sub_epi16(first, _mm256_set1_epi16(before_last));
    for (row, out) in rows.chunks_exact(len).zip(out) {
        let blocks = row.as_chunks::<BLOCK>().0;
        let (mut best, mut ranks) = (_mm256_setzero_si256(), first);
        for bytes in blocks {
            best = _mm256_max_epu16(best, keys(load_16_bytes(bytes), ranks));
            ranks = _mm256_sub_epi16(ranks, _mm256_set1_epi16(16));
        }
        match row.last_chunk() {
            // The end again, with what stands before it.
            Some(bytes) => best = _mm256_max_epu16(best, keys(load_16_bytes(bytes), last)),
            None => best = _mm256_and_si256(keys(load_bytes(row), first), present),
        }
        *out = 255 - (largest(best) & 0xFF);
    }
}

/// The largest of 16 unsigned numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn largest(values: __m256i) -> i32 {
    let upper = _mm256_extracti128_si256::<1>(values);
    let values = _mm_max_epu16(_mm256_castsi256_si128(values), upper);
    // There is an instruction for the smallest: that of the complements.
    let ones = _mm_set1_epi16(-1);
    let smallest = _mm_minpos_epu16(_mm_xor_si128(values, ones));
    _mm_extract_epi16::<0>(_mm_xor_si128(smallest, ones))
}
