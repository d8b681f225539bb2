//! Bodies for AVX2.

use super::{Svdf, step_with};
use crate::kernels::rnn::avx2::dot;

/// As [`step_plainly`](super::step_plainly).
#[target_feature(enable = "avx2,fma")]
pub(super) fn step(layer: &Svdf<'_>, x: &[f32], state: &mut [f32], out: &mut [f32]) {
    // A closure is compiled for the instructions of the function around it.
    step_with(layer, x, state, out, |a, b| dot(a, b));
}
