//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::packed::{self, PackedLstm};
use super::quant8::{self, Lstm8, Step};
use crate::kernels::simd::kernel;

kernel! {
    /// The gates of a step, see [`packed::gates`].
    fn gates(layer: &PackedLstm, sums: &mut [f32], cell: &mut [f32]);
    announced as GATES = "lstm/gates",
    operations: [BidirectionalSequenceLstm, Lstm, UnidirectionalSequenceLstm],
    types: [TensorFloat32],
    portable: packed::gates,
}

kernel! {
    /// Takes one sequence a step further; `work` has [`Lstm8::work`] integers.
    fn quant8_step(
        lstm: &Lstm8<'_>,
        step: Step<'_>,
        next: &mut [i16],
        out: &mut [i8],
        work: &mut [i32],
    );
    announced as QUANT8 = "lstm/quant8",
    operations: [QuantizedLstm],
    types: [TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant16Symm],
    portable: quant8::step,
}
