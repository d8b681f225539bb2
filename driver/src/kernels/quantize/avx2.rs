//! Floats as stored values, sixteen at a time.

use core::arch::x86_64::*;

use super::portable::{self, BELOW_HALF, FAR};
use crate::kernels::lut::Quant8;
use crate::kernels::simd::avx2::{LANES, load_floats, store_bytes};

/// See [`floats`](portable::floats).
#[target_feature(enable = "avx2")]
pub(crate) fn floats(values: &[f32], quant: Quant8, out: &mut [u8]) {
    let (low, high) = quant.range();
    let [low, high, zero_point] = [low, high, quant.zero_point].map(|n| _mm256_set1_epi32(n));
    let [scale, half, far] = [quant.scale, BELOW_HALF, FAR].map(|x| _mm256_set1_ps(x));
    let near = _mm256_sub_ps(_mm256_setzero_ps(), far);
    let sign = _mm256_set1_ps(-0.0);
    let stored = |values: &[f32; LANES]| {
        let steps = _mm256_div_ps(load_floats(values), scale);
        let is_number = _mm256_cmp_ps::<_CMP_ORD_Q>(steps, steps);
        // Not further than what becomes an integer; what is not a number is no step.
        let steps = _mm256_max_ps(_mm256_min_ps(steps, far), near);
        let steps = _mm256_and_ps(steps, is_number);
        let rounding = _mm256_or_ps(half, _mm256_and_ps(steps, sign));
        let steps = _mm256_cvttps_epi32(_mm256_add_ps(steps, rounding));
        let stored = _mm256_add_epi32(steps, zero_point);
        _mm256_min_epi32(_mm256_max_epi32(stored, low), high)
    };
    let (blocks, rest) = values.as_chunks::<{ 2 * LANES }>();
    let (out_blocks, out_rest) = out.as_chunks_mut::<{ 2 * LANES }>();
    for (block, out) in blocks.iter().zip(out_blocks) {
        let halves = block.as_chunks::<LANES>().0;
        // The lowest byte of each: packing would take those of one sign for too large.
        let byte = _mm256_set1_epi32(0xFF);
        let [left, right] =
            [&halves[0], &halves[1]].map(|half| _mm256_and_si256(stored(half), byte));
        // Packing takes four of one register and four of the other by turns.
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(left, right));
        let (first, second) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
        store_bytes(out, _mm_packus_epi16(first, second));
    }
    portable::floats(rest, quant, out_rest);
}
