//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable::{self, Product};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// A product, see [`Product::run`](super::Product::run), which checks the sizes.
    fn multiply(product: &Product<'_>, out: &mut [f32]);
    announced as PANELS = "matmul_float/panels",
    operations: [
        BidirectionalSequenceLstm,
        Conv2d,
        FullyConnected,
        Lstm,
        UnidirectionalSequenceLstm,
    ],
    types: [TensorFloat32],
    portable: portable::multiply,
    avx2: avx2::multiply_panels,
    avx512: avx512::multiply_panels,
}

kernel! {
    /// Holds every value between two bounds; NaN stays NaN.
    fn clamp(values: &mut [f32], low: f32, high: f32);
    announced as CLAMP = "matmul_float/clamp",
    operations: [Conv2d, FullyConnected],
    types: [TensorFloat32],
    portable: portable::clamp,
}
