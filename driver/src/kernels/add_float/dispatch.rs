//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable;
use crate::kernels::simd::kernel;

kernel! {
    /// Sums, each held between two bounds; NaN stays NaN.
    fn sums(a: &[f32], b: &[f32], range: (f32, f32), out: &mut [f32]);
    announced as SUMS = "add_float/sums",
    operations: [Add],
    types: [TensorFloat32],
    portable: portable::sums,
}

kernel! {
    /// Adds to each value, and holds the sum between two bounds; NaN stays NaN.
    fn add_to(values: &mut [f32], addends: &[f32], range: (f32, f32));
    announced as ADDENDS = "add_float/addends",
    operations: [Add],
    types: [TensorFloat32],
    portable: portable::add_to,
}
