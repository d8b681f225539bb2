//! Bodies for AVX2.

use core::arch::x86_64::*;
use std::hint::black_box;

/// Registers that are added up in: as many as these instructions have room for beside what they multiply with.
pub(super) const SUMS: usize = 12;
/// Products that one instruction adds up.
const FLOATS: u64 = 8;

/// Adds up products of floats so many times; how many there were.
#[target_feature(enable = "avx2,fma")]
pub(super) fn floats(rounds: u32) -> u64 {
    let mut sums = [_mm256_set1_ps(1.0); SUMS];
    let (factor, term) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(1.0)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, factor, term);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * FLOATS
}
