//! Floats as stored values, sixteen at a time.

use core::arch::x86_64::*;

use super::portable::{BELOW_HALF, FAR};
use crate::kernels::lut::Quant8;
use crate::kernels::simd::avx512::{LANES, Lanes16, load_floats, store_16_bytes};

/// See [`floats`](super::portable::floats).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn floats(values: &[f32], quant: Quant8, out: &mut [u8]) {
    let (low, high) = quant.range();
    let [low, high, zero_point] = [low, high, quant.zero_point].map(|n| _mm512_set1_epi32(n));
    let [scale, half, far] = [quant.scale, BELOW_HALF, FAR].map(|x| _mm512_set1_ps(x));
    let near = _mm512_sub_ps(_mm512_setzero_ps(), far);
    let sign = _mm512_set1_ps(-0.0);
    let len = values.len().min(out.len());
    for first in (0..len).step_by(LANES) {
        let lanes = Lanes16::holding(first, len);
        let steps = _mm512_div_ps(load_floats(values, first, lanes), scale);
        let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(steps, steps);
        // Not further than what becomes an integer; what is not a number is no step.
        let steps = _mm512_maskz_max_ps(is_number, _mm512_min_ps(steps, far), near);
        let rounding = _mm512_or_ps(half, _mm512_and_ps(steps, sign));
        let steps = _mm512_cvttps_epi32(_mm512_add_ps(steps, rounding));
        let stored = _mm512_add_epi32(steps, zero_point);
        let stored = _mm512_min_epi32(_mm512_max_epi32(stored, low), high);
        store_16_bytes(&mut out[first..], lanes, _mm512_cvtepi32_epi8(stored));
    }
}
