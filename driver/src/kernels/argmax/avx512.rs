//! Positions of the largest bytes, 32 at a time.

use core::arch::x86_64::*;

use super::portable::{BLOCK, MAX_LEN};
use crate::kernels::simd::avx512::{load_block, load_i16s};

/// As [`portable::positions`](super::portable::positions).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn positions(rows: &[u8], len: usize, flip: u8, out: &mut [i32]) {
    assert!(len <= MAX_LEN, "positions of 8 bits");
    let flip = _mm512_set1_epi16(i16::from(flip));
    // What position 0 and those after it add to their values.
    let ranks: [i16; BLOCK] = {
        let mut next = 256;
        [(); BLOCK].map(|()| {
            next -= 1;
            next
        })
    };
    let ranks = load_i16s(&ranks);
    for (row, out) in rows.chunks_exact(len).zip(out) {
        let (mut best, mut ranks) = (_mm512_setzero_si512(), ranks);
        for values in row.chunks(BLOCK) {
            let (lanes, bytes) = load_block(values);
            let values = _mm512_xor_si512(_mm512_cvtepu8_epi16(bytes), flip);
            let keys = _mm512_or_si512(_mm512_slli_epi16::<8>(values), ranks);
            best = _mm512_mask_max_epu16(best, lanes.mask(), best, keys);
            ranks = _mm512_sub_epi16(ranks, _mm512_set1_epi16(32));
        }
        *out = 255 - (largest(best) & 0xFF);
    }
}

/// The largest of 32 unsigned numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn largest(values: __m512i) -> i32 {
    let upper = _mm512_extracti64x4_epi64::<1>(values);
    let values = _mm256_max_epu16(_mm512_castsi512_si256(values), upper);
    let upper = _mm256_extracti128_si256::<1>(values);
    let values = _mm_max_epu16(_mm256_castsi256_si128(values), upper);
    // There is an instruction for the smallest: that of the complements.
    let ones = _mm_set1_epi16(-1);
    let smallest = _mm_minpos_epu16(_mm_xor_si128(values, ones));
    _mm_extract_epi16::<0>(_mm_xor_si128(smallest, ones))
}
