//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::{Svdf, step_plainly};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// One step of one sequence: `state` (`[filters, memory]`) goes on by one step, `out` is the
    /// output.
    ///
    /// The last slot is only ever written and read within a step: it comes back as 0.
    fn step(layer: &Svdf<'_>, x: &[f32], state: &mut [f32], out: &mut [f32]);
    announced as STEP = "svdf/step",
    operations: [Svdf],
    types: [TensorFloat32, TensorFloat16],
    portable: step_plainly,
    avx2: avx2::step,
    avx512: avx512::step,
}
