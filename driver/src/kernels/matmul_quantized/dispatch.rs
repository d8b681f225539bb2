//! Announces the kernels of this family. `kernel!` expands to calls of functions for instruction sets
//! that it asks the CPU for first; [`multiply_quads`], which only the two forms of VNNI and Arm's products of bytes
//! have kernels for, and [`multiply_wide`], which only AVX2 has one for, ask themselves.
#![allow(unsafe_code, reason = "calls for instruction sets that are checked first")]

use burst_hal::{OperandType, OperationType};

use super::ByteRows;
use super::bytes;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::pairs::{PairMatrix, PairPanels, WIDE_ROWS};
use super::quads::{QUAD, QuadPanels};
#[cfg(target_arch = "x86_64")]
use super::{avx_vnni, avx2, avx2_sums, avx512, avx512_sums};
use crate::OpError;
use crate::kernels::requantize::Channels;
#[cfg(target_arch = "aarch64")]
use crate::kernels::simd::has_i8mm;
use crate::kernels::simd::{
    Isa, KernelInfo, Level, has_avx_vnni, has_avx2, has_dotprod, has_vnni, kernel,
};

kernel! {
    /// Products of bytes, see [`PairMatrix::product`].
    fn multiply_pairs(matrix: &PairMatrix, rows: &[u8], out: &mut [i32]);
    announced as PAIRS = "matmul_quantized/pairs",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: PairMatrix::product,
}

kernel! {
    /// `out[row] = factor * sum(rows[row, ..])`; all rows have one length.
    fn row_sums(rows: &[u8], factor: i32, out: &mut [i32]);
    announced as ROW_SUMS = "matmul_quantized/row_sums",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm],
    portable: bytes::row_sums,
    avx2: avx2_sums::row_sums,
    avx512: avx512_sums::row_sums,
}

kernel! {
    /// `out[row] = sum(rows[row, ..])` of signed weights, see [`bytes::signed_sums`].
    fn signed_sums(rows: &[u8], flip: u8, out: &mut [i32]);
    announced as SIGNED_SUMS = "matmul_quantized/signed_sums",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: bytes::signed_sums,
    avx2: avx2_sums::signed_sums,
    avx512: avx512_sums::signed_sums,
}

kernel! {
    /// XORs a mask into every byte.
    fn flip(bytes: &mut [u8], mask: u8);
    announced as FLIP = "matmul_quantized/flip",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8AsymmSigned],
    portable: bytes::flip,
}

kernel! {
    /// `to = from ^ mask`, byte by byte; both have one length.
    fn copy_flipped(from: &[u8], mask: u8, to: &mut [u8]);
    announced as COPY_FLIPPED = "matmul_quantized/copy_flipped",
    operations: [Conv2d, FullyConnected],
    types: [TensorQuant8Asymm, TensorQuant8AsymmSigned],
    portable: bytes::copy_flipped,
}

/// `matmul_quantized/quads`: see [`multiply_quads`].
pub(crate) const QUADS: KernelInfo = KernelInfo {
    name: "matmul_quantized/quads",
    operations: &[OperationType::Conv2d, OperationType::FullyConnected],
    types: &[OperandType::TensorQuant8Asymm, OperandType::TensorQuant8AsymmSigned],
    compiled_for: &[Level::AvxVnni, Level::Vnni, Level::DotProd, Level::I8mm],
    written_for: &[Level::AvxVnni, Level::Vnni, Level::DotProd, Level::I8mm],
};

/// Rows of activations, each XORed with `flip`, times packed weights, and from the sums to stored values as
/// [`Requantize::rows`](crate::kernels::requantize::Requantize::rows) does; all exact. Terms are there for
/// all rows or for none.
///
/// # Errors
/// [`OpError::Internal`] when sizes do not fit, or the CPU has no kernel for it.
pub(crate) fn multiply_quads(
    isa: Isa,
    matrix: QuadPanels<'_>,
    (rows, flip): (&ByteRows<'_>, u8),
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) -> Result<(), OpError> {
    let count = rows.count();
    let fits = rows.depth() == matrix.depth()
        && rows.has_steps_of(QUAD)
        && rows.is_whole()
        && out.len() == count * matrix.units()
        && rules.bias.len() == matrix.units();
    if !fits {
        return Err(OpError::Internal { what: "sizes of a matrix product" });
    }
    #[cfg(target_arch = "x86_64")]
    if has_vnni(isa) {
        // SAFETY: the CPU has the features that the function is compiled for: asked in the line
        // above.
        unsafe { avx512::multiply_quads(matrix, rows, flip, rules, row_terms, out) };
        return Ok(());
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx_vnni(isa) {
        // SAFETY: as above.
        unsafe { avx_vnni::multiply_quads(matrix, rows, flip, rules, row_terms, out) };
        return Ok(());
    }
    #[cfg(target_arch = "aarch64")]
    if has_i8mm(isa) {
        // SAFETY: the CPU has the features that the function is compiled for: asked in the line
        // above.
        unsafe { neon::multiply_by_matrices(matrix, rows, flip, rules, row_terms, out) };
        return Ok(());
    } else if has_dotprod(isa) {
        // SAFETY: as above.
        unsafe { neon::multiply_by_dots(matrix, rows, flip, rules, row_terms, out) };
        return Ok(());
    }
    let _ = (isa, flip, row_terms);
    Err(OpError::Internal { what: "weights packed for another CPU" })
}

/// Whether [`multiply_quads`] has a kernel for these instructions.
pub(crate) fn has_quads(isa: Isa) -> bool {
    has_vnni(isa) || has_avx_vnni(isa) || has_dotprod(isa)
}

/// `matmul_quantized/wide_pairs`: see [`multiply_wide`].
pub(crate) const WIDE_PAIRS: KernelInfo = KernelInfo {
    name: "matmul_quantized/wide_pairs",
    operations: &[OperationType::Conv2d, OperationType::FullyConnected],
    types: &[OperandType::TensorQuant8Asymm, OperandType::TensorQuant8AsymmSigned],
    compiled_for: &[Level::Avx2],
    written_for: &[Level::Avx2],
};

/// Numbers of working memory that [`multiply_wide`] needs for rows of this length.
pub(crate) fn wide_len(depth: usize) -> usize {
    WIDE_ROWS * depth.div_ceil(2)
}

/// As [`multiply_quads`] without terms, with weights in pairs. `space` holds as many numbers as [`wide_len`]
/// says. With weights of 16 bits AVX-512 without VNNI gains little over AVX2.
///
/// # Errors
/// [`OpError::Internal`] when sizes do not fit, or the CPU has no kernel for it.
pub(crate) fn multiply_wide(
    isa: Isa,
    matrix: PairPanels<'_>,
    (rows, flip): (&ByteRows<'_>, u8),
    rules: Channels<'_>,
    space: &mut [i32],
    out: &mut [u8],
) -> Result<(), OpError> {
    let fits = matrix.depth() > 0
        && rows.depth() == matrix.depth()
        && rows.is_whole()
        && out.len() == rows.count() * matrix.units()
        && rules.bias.len() == matrix.units()
        && space.len() >= wide_len(matrix.depth());
    if !fits {
        return Err(OpError::Internal { what: "sizes of a matrix product" });
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx2(isa) {
        // SAFETY: the CPU has the features that the function is compiled for: asked in the line
        // above.
        unsafe { avx2::multiply_wide(matrix, rows, flip, rules, space, out) };
        return Ok(());
    }
    let _ = (isa, flip);
    Err(OpError::Internal { what: "weights packed for another CPU" })
}
