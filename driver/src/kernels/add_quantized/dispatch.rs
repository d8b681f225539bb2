//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable::{self, Sum};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// Sums of unsigned values, see [`Sum::unsigned`](super::Sum::unsigned).
    fn unsigned(rule: &Sum, a: &[u8], b: &[u8], out: &mut [u8]);
    announced as UNSIGNED = "add_quantized/unsigned",
    operations: [Add, Sub],
    types: [TensorQuant8Asymm],
    portable: portable::sum::<u8>,
    avx2: avx2::unsigned,
    avx512: avx512::unsigned,
}

kernel! {
    /// Sums of signed values, see [`Sum::signed`](super::Sum::signed).
    fn signed(rule: &Sum, a: &[i8], b: &[i8], out: &mut [i8]);
    announced as SIGNED = "add_quantized/signed",
    operations: [Add, Sub],
    types: [TensorQuant8AsymmSigned],
    portable: portable::sum::<i8>,
    avx2: avx2::signed,
    avx512: avx512::signed,
}
