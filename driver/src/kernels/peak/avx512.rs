//! Bodies for AVX-512.

use core::arch::x86_64::*;
use std::hint::black_box;

use super::SUMS;

/// Products that one instruction adds up.
const PRODUCTS: u64 = 64;

/// Adds up products of bytes so many times; how many there were.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) fn bytes(rounds: u32) -> u64 {
    let mut sums = [_mm512_setzero_si512(); SUMS];
    let (left, right) = (_mm512_set1_epi8(black_box(3)), _mm512_set1_epi8(black_box(-2)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, left, right);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * PRODUCTS
}
