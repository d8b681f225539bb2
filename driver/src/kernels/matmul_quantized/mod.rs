//! Products of rows of bytes with packed weights of 8 bits.
//!
//! Weights come as `[units, depth]`, one row per output channel, and are packed once: in quads where
//! the CPU multiplies four pairs of bytes in one instruction (AVX-512 VNNI, AVX-VNNI), which brings sums to stored values before
//! they leave the registers; for the matrix library where its instructions do not saturate; else in
//! pairs, for which AVX2 has a kernel that does the same. Sums are exact in all of them, as long as the depth is at most [`MAX_EXACT_DEPTH`].

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_sums;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_sums;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
mod bytes;
mod dispatch;
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pairs;
mod quads;
#[cfg(test)]
pub(super) mod tests;

use crate::kernels::conv::MatrixRows;

/// Rows of bytes.
pub(crate) type ByteRows<'a> = MatrixRows<'a, u8>;

pub(crate) use dispatch::{
    COPY_FLIPPED, FLIP, PAIRS, QUADS, ROW_SUMS, SIGNED_SUMS, WIDE_PAIRS, copy_flipped, flip,
    row_sums, signed_sums,
};
pub(crate) use matrix::{ByteMatrix, LIBRARY, MAX_EXACT_DEPTH, RowsInPlace, packed_weight_bytes};
