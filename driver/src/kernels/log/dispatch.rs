//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable;
use crate::kernels::simd::kernel;

kernel! {
    /// The logarithm of each value, see [`portable::ln`].
    fn floats(values: &[f32], out: &mut [f32]);
    announced as FLOATS = "log/floats",
    operations: [Log],
    types: [TensorFloat32],
    portable: portable::floats,
}
