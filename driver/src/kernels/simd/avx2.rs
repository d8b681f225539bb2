//! Loads and stores of AVX2 on arrays and slices.

use core::arch::x86_64::*;

/// 16 pairs of numbers, in two registers.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load_pairs(pairs: &[[i16; 2]; 16]) -> [__m256i; 2] {
    let (low, high) = pairs.split_at(8);
    // SAFETY: 32 bytes are read from 8 pairs of numbers of 2.
    let low = unsafe { _mm256_loadu_si256(low.as_ptr().cast()) };
    // SAFETY: as above.
    let high = unsafe { _mm256_loadu_si256(high.as_ptr().cast()) };
    [low, high]
}

/// Writes two registers to 16 numbers.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store_i32s(out: &mut [i32; 16], [low, high]: [__m256i; 2]) {
    let (low_out, high_out) = out.split_at_mut(8);
    // SAFETY: 32 bytes are written to 8 numbers of 4.
    unsafe { _mm256_storeu_si256(low_out.as_mut_ptr().cast(), low) };
    // SAFETY: as above.
    unsafe { _mm256_storeu_si256(high_out.as_mut_ptr().cast(), high) };
}
