//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::{Rnn, step_plainly};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// Replaces the hidden state of one sequence by the next; `work` has the same size.
    fn step(
        cell: &Rnn<'_>,
        x: &[f32],
        aux: Option<&[f32]>,
        hidden: &mut [f32],
        work: &mut [f32],
    );
    announced as STEP = "rnn/step",
    operations: [BidirectionalSequenceRnn, Rnn, UnidirectionalSequenceRnn],
    types: [TensorFloat32, TensorFloat16],
    portable: step_plainly,
    avx2: avx2::step,
    avx512: avx512::step,
}
