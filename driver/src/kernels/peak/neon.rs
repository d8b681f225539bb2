//! Bodies for NEON and Arm's products of bytes.

use core::arch::aarch64::*;
use std::hint::black_box;

use super::SUMS;
use crate::kernels::simd::neon::{add_matrix_products, add_signed_dots};

/// Products that one instruction adds up.
const FLOATS: u64 = 4;
const DOTS: u64 = 16;
const MATRICES: u64 = 32;

/// Adds up products of floats so many times; how many there were.
#[target_feature(enable = "neon")]
pub(super) fn floats(rounds: u32) -> u64 {
    let mut sums = [vdupq_n_f32(1.0); SUMS];
    let (factor, term) = (vdupq_n_f32(black_box(0.5)), vdupq_n_f32(black_box(1.0)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = vfmaq_f32(term, *sum, factor);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * FLOATS
}

/// Adds up products of bytes so many times; how many there were.
#[target_feature(enable = "neon,dotprod")]
pub(super) fn dots(rounds: u32) -> u64 {
    let mut sums = [vdupq_n_s32(0); SUMS];
    let (left, right) = (vdupq_n_s8(black_box(3)), vdupq_n_s8(black_box(-2)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = add_signed_dots::<0>(*sum, left, right);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * DOTS
}

/// The same with products of matrices.
#[target_feature(enable = "neon,i8mm")]
pub(super) fn matrices(rounds: u32) -> u64 {
    let mut sums = [vdupq_n_s32(0); SUMS];
    let (left, right) = (vdupq_n_u8(black_box(3)), vdupq_n_s8(black_box(-2)));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = add_matrix_products(*sum, left, right);
        }
    }
    black_box(sums);
    u64::from(rounds) * SUMS as u64 * MATRICES
}
