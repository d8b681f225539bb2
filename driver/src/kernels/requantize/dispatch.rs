//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

#[cfg(target_arch = "aarch64")]
use super::neon;
use super::portable::{self, Channels};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// Rows of sums into stored values, see [`Requantize::rows`](super::Requantize::rows).
    fn rows(rules: Channels<'_>, sums: &[i32], row_terms: &[i32], out: &mut [u8]);
    announced as ROWS = "requantize/rows",
    operations: [Conv2d, DepthwiseConv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::rows,
    avx2: avx2::requantize_rows,
    avx512: avx512::requantize_rows,
    neon: neon::requantize_rows,
}
