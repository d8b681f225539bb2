//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::lut::Quant8;
use crate::kernels::simd::kernel;

kernel! {
    /// Floats as stored values, see [`portable::floats`].
    fn floats(values: &[f32], quant: Quant8, out: &mut [u8]);
    announced as FLOATS = "quantize/floats",
    operations: [Quantize],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::floats,
    avx2: avx2::floats,
    avx512: avx512::floats,
}

kernel! {
    /// Stored values as floats, see [`portable::bytes`].
    fn bytes(values: &[u8], quant: Quant8, out: &mut [f32]);
    announced as BYTES = "quantize/bytes",
    operations: [Dequantize],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::bytes,
}
