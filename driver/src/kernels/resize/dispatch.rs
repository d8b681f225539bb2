//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use super::fixed::{self, FixedWork};
use super::portable::{self, Work};
use super::reference::Resize;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernels::simd::kernel;

kernel! {
    /// Output lines of pictures of bytes from line `first` on, see [`portable::lines`].
    fn bytes(resize: &Resize, input: &[u8], first: usize, work: &mut Work<'_>, out: &mut [u8]);
    announced as BYTES = "resize/bytes",
    operations: [ResizeBilinear],
    types: [TensorQuant8Asymm],
    portable: portable::lines::<u8>,
    avx2: avx2::bytes,
    avx512: avx512::bytes,
}

kernel! {
    /// Output lines of pictures of floats from line `first` on, see [`portable::lines`].
    fn floats(resize: &Resize, input: &[f32], first: usize, work: &mut Work<'_>, out: &mut [f32]);
    announced as FLOATS = "resize/floats",
    operations: [ResizeBilinear],
    types: [TensorFloat32],
    portable: portable::lines::<f32>,
    avx2: avx2::floats,
    avx512: avx512::floats,
}

kernel! {
    /// Output lines of pictures of signed bytes from line `first` on, see [`fixed::lines`].
    fn signed(resize: &Resize, input: &[i8], first: usize, work: &mut FixedWork<'_>, out: &mut [i8]);
    announced as SIGNED = "resize/signed",
    operations: [ResizeBilinear],
    types: [TensorQuant8AsymmSigned],
    portable: fixed::lines,
    avx2: avx2::signed,
    avx512: avx512::signed,
}
