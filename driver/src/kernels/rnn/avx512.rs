//! Bodies for AVX-512.

use core::arch::x86_64::*;

use super::{LANES, Rnn, step_with};
use crate::kernels::simd::avx512::{Lanes16, load_16_floats, load_floats};

/// As [`dot`](super::dot), to the bit: a product is rounded before it is added.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::kernels) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = _mm512_setzero_ps();
    for (a, b) in a.iter().zip(b) {
        sums = _mm512_add_ps(sums, _mm512_mul_ps(load_16_floats(a), load_16_floats(b)));
    }
    let rest = a_rest.len().min(b_rest.len());
    if rest > 0 {
        // What is missing is 0 on both sides, and changes no sum: none is -0.
        let lanes = Lanes16::holding(0, rest);
        let product = _mm512_mul_ps(load_floats(a_rest, 0, lanes), load_floats(b_rest, 0, lanes));
        sums = _mm512_add_ps(sums, product);
    }
    let eight = _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps::<1>(sums));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// As [`step_plainly`](super::step_plainly).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn step(
    cell: &Rnn<'_>,
    x: &[f32],
    aux: Option<&[f32]>,
    hidden: &mut [f32],
    work: &mut [f32],
) {
    // A closure is compiled for the instructions of the function around it.
    step_with(cell, (x, aux), hidden, work, |a, b| dot(a, b));
}
