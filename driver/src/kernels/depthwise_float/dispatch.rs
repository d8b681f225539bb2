//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use std::ops::Range;

use super::portable::{self, FloatFilter};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::conv::Conv;
use crate::kernels::simd::kernel;

kernel! {
    /// Rows `rows` of the output of a depthwise convolution, see [`portable::rows`].
    fn rows(
        conv: &Conv,
        input: &[f32],
        filter: FloatFilter<'_>,
        rows: Range<usize>,
        out: &mut [f32],
    );
    announced as ROWS = "depthwise_float/rows",
    operations: [DepthwiseConv2d],
    types: [TensorFloat32],
    portable: portable::rows,
    avx2: avx2::rows,
    avx512: avx512::rows,
}
