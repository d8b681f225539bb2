//! Bodies for AVX2.

use core::arch::x86_64::*;

use super::{LANES, Rnn, step_with};
use crate::kernels::simd::avx2::{Lanes8, load_few_floats, load_floats};

/// As [`dot`](super::dot), to the bit: a product is rounded before it is added.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(in crate::kernels) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const HALF: usize = LANES / 2;
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<HALF>(), b.as_chunks::<HALF>());
    let (a, b) = (a.chunks_exact(2), b.chunks_exact(2));
    let (a_half, b_half) = (a.remainder(), b.remainder());
    let [mut low, mut high] = [_mm256_setzero_ps(); 2];
    for (a, b) in a.zip(b) {
        low = _mm256_add_ps(low, _mm256_mul_ps(load_floats(&a[0]), load_floats(&b[0])));
        high = _mm256_add_ps(high, _mm256_mul_ps(load_floats(&a[1]), load_floats(&b[1])));
    }
    let rest = a_rest.len().min(b_rest.len());
    let mut last = _mm256_setzero_ps();
    if rest > 0 {
        // What is missing is 0 on both sides, and changes no sum: none is -0.
        let lanes = Lanes8::holding(0, rest);
        last = _mm256_mul_ps(load_few_floats(a_rest, lanes), load_few_floats(b_rest, lanes));
    }
    if let ([a], [b]) = (a_half, b_half) {
        low = _mm256_add_ps(low, _mm256_mul_ps(load_floats(a), load_floats(b)));
        high = _mm256_add_ps(high, last);
    } else {
        low = _mm256_add_ps(low, last);
    }
    let eight = _mm256_add_ps(low, high);
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// As [`step_plainly`](super::step_plainly).
#[target_feature(enable = "avx2,fma")]
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
