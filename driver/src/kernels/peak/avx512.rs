//! Bodies for AVX-512.

use core::arch::x86_64::*;
use std::hint::black_box;

use super::SUMS;

/// Products of bytes that one instruction adds up, and of floats.
const PRODUCTS: u64 = 64;
const FLOATS: u64 = 16;

/// Adds up products of floats so many times; how many there were. Written in instructions: what the compiler makes
/// of a loop over an array of sums may go through memory, and is no peak then.
#[target_feature(enable = "avx512f")]
pub(super) fn floats(rounds: u32) -> u64 {
    let mut sums = [_mm512_set1_ps(1.0); SUMS];
    let (factor, term) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(1.0)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, factor, term);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * FLOATS
}

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
