//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::packed::{self, PackedLstm};
use crate::kernels::simd::kernel;

kernel! {
    /// The gates of a step, see [`packed::gates`].
    fn gates(layer: &PackedLstm, sums: &mut [f32], cell: &mut [f32]);
    announced as GATES = "lstm/gates",
    operations: [BidirectionalSequenceLstm, Lstm, UnidirectionalSequenceLstm],
    types: [TensorFloat32],
    portable: packed::gates,
}
