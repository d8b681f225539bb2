//! Announces the kernel of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::portable;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// For each row of `len` bytes, each XORed with `flip`, the position of the first largest one; at
    /// most [`MAX_LEN`](super::MAX_LEN) of them.
    fn positions(rows: &[u8], len: usize, flip: u8, out: &mut [i32]);
    announced as POSITIONS = "argmax/positions",
    operations: [Argmax, Argmin],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: portable::positions,
    avx2: avx2::positions,
    avx512: avx512::positions,
}
