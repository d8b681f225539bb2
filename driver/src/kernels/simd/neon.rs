//! Loads and stores of NEON on arrays and slices, and products of bytes: instructions whose intrinsics the
//! oldest supported compiler does not have, each as assembly of that one instruction.

use core::arch::aarch64::*;
use core::arch::asm;

/// Numbers of 32 bits in a register.
pub(crate) const LANES: usize = 4;

/// 4 numbers of `values` from `first` on; where there are not as many, 0 for the others.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_i32s(values: &[i32], first: usize) -> int32x4_t {
    let values = values.get(first..).unwrap_or_default();
    if let Some(full) = values.first_chunk::<LANES>() {
        // SAFETY: 16 bytes are read from an array of 4 numbers of 4.
        return unsafe { vld1q_s32(full.as_ptr()) };
    }
    let mut few = [0; LANES];
    few[..values.len()].copy_from_slice(values);
    // SAFETY: as above.
    unsafe { vld1q_s32(few.as_ptr()) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_16_bytes(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are read from an array of 16.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// 8 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_8_bytes(bytes: &[u8; 8]) -> uint8x8_t {
    // SAFETY: 8 bytes are read from an array of 8.
    unsafe { vld1_u8(bytes.as_ptr()) }
}

/// 8 numbers of 16 bits.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_i16s(values: &[i16; 8]) -> int16x8_t {
    // SAFETY: 16 bytes are read from an array of 8 numbers of 2.
    unsafe { vld1q_s16(values.as_ptr()) }
}

/// 4 times 4 signed bytes.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load_quads(quads: &[[i8; 4]; 4]) -> int8x16_t {
    // SAFETY: 16 bytes are read from an array of 4 times 4.
    unsafe { vld1q_s8(quads.as_ptr().cast()) }
}

/// Writes 16 bytes to the front of `out`, or as many as it has room for.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store_16_bytes(out: &mut [u8], bytes: uint8x16_t) {
    if let Some(full) = out.first_chunk_mut::<16>() {
        // SAFETY: 16 bytes are written to an array of 16.
        unsafe { vst1q_u8(full.as_mut_ptr(), bytes) };
        return;
    }
    // Half of them at once: rows of 8 and 24 channels are common.
    match out.split_first_chunk_mut::<8>() {
        Some((front, rest)) => {
            store_8_bytes(front, vget_low_u8(bytes));
            store_8_bytes(rest, vget_high_u8(bytes));
        }
        None => store_8_bytes(out, vget_low_u8(bytes)),
    }
}

/// Writes 8 bytes to the front of `out`, or as many as it has room for.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store_8_bytes(out: &mut [u8], bytes: uint8x8_t) {
    if let Some(full) = out.first_chunk_mut::<8>() {
        // SAFETY: 8 bytes are written to an array of 8.
        unsafe { vst1_u8(full.as_mut_ptr(), bytes) };
        return;
    }
    let mut all = [0; 8];
    // SAFETY: as above.
    unsafe { vst1_u8(all.as_mut_ptr(), bytes) };
    for (out, byte) in out.iter_mut().zip(&all) {
        *out = *byte;
    }
}

/// Adds to each of 4 sums the products of its 4 weights with the 4 signed bytes of `row` at `LANE`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(crate) fn add_signed_dots<const LANE: usize>(
    mut sums: int32x4_t,
    weights: int8x16_t,
    row: int8x16_t,
) -> int32x4_t {
    const { assert!(LANE < 4, "four times four bytes") };
    // SAFETY: the instruction is of FEAT_DotProd, which the function is compiled for. It reads the three
    // registers that it is given and writes the first of them: no memory, no flags.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {weights:v}.16b, {row:v}.4b[{lane}]",
            sums = inout(vreg) sums,
            weights = in(vreg) weights,
            row = in(vreg) row,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// As [`add_signed_dots`] with unsigned bytes of the row.
#[inline]
#[target_feature(enable = "neon,i8mm")]
pub(crate) fn add_unsigned_dots<const LANE: usize>(
    mut sums: int32x4_t,
    weights: int8x16_t,
    row: uint8x16_t,
) -> int32x4_t {
    const { assert!(LANE < 4, "four times four bytes") };
    // SAFETY: the instruction is of FEAT_I8MM, which the function is compiled for. It reads the three
    // registers that it is given and writes the first of them: no memory, no flags.
    unsafe {
        asm!(
            "sudot {sums:v}.4s, {weights:v}.16b, {row:v}.4b[{lane}]",
            sums = inout(vreg) sums,
            weights = in(vreg) weights,
            row = in(vreg) row,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Adds products of 8 unsigned bytes of each of two rows with 8 weights of each of two units. Sums are those of
/// the first row, then those of the second one.
#[inline]
#[target_feature(enable = "neon,i8mm")]
pub(crate) fn add_matrix_products(
    mut sums: int32x4_t,
    rows: uint8x16_t,
    weights: int8x16_t,
) -> int32x4_t {
    // SAFETY: the instruction is of FEAT_I8MM, which the function is compiled for. It reads the three
    // registers that it is given and writes the first of them: no memory, no flags.
    unsafe {
        asm!(
            "usmmla {sums:v}.4s, {rows:v}.16b, {weights:v}.16b",
            sums = inout(vreg) sums,
            rows = in(vreg) rows,
            weights = in(vreg) weights,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}
