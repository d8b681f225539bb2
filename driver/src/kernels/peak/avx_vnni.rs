//! The body for AVX-VNNI.

use core::arch::x86_64::*;
use std::hint::black_box;

use super::avx2::SUMS;

/// Products that one instruction adds up.
const PRODUCTS: u64 = 32;

/// Adds up products of bytes so many times; how many there were.
#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn bytes(rounds: u32) -> u64 {
    let mut sums = [_mm256_setzero_si256(); SUMS];
    let (left, right) = (_mm256_set1_epi8(black_box(3)), _mm256_set1_epi8(black_box(-2)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_dpbusd_avx_epi32(*sum, left, right);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * PRODUCTS
}
