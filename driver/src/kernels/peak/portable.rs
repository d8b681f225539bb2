//! Bodies that the compiler turns into vectors.

use std::hint::black_box;

use super::SUMS;

/// Floats in one of the sums.
const FLOATS: usize = 16;
/// Numbers of 16 bits in one of the sums.
const SHORTS: usize = 32;

/// Adds up products of floats so many times; how many there were.
#[inline(always)]
pub(super) fn floats(rounds: u32) -> u64 {
    let mut sums = black_box([[1.0_f32; FLOATS]; SUMS]);
    // What the compiler knows it would compute itself.
    let (factor, term) = (black_box(0.5), black_box(1.0));
    for _ in 0..rounds {
        for sum in &mut sums {
            for lane in sum {
                *lane = *lane * factor + term;
            }
        }
    }
    black_box(sums);
    u64::from(rounds) * (SUMS * FLOATS) as u64
}

/// The same of stored values, which machines without an instruction for bytes multiply with 16 bits.
#[inline(always)]
pub(super) fn bytes(rounds: u32) -> u64 {
    let mut sums = black_box([[1_i16; SHORTS]; SUMS]);
    let (factor, term) = (black_box(3_i16), black_box(1_i16));
    for _ in 0..rounds {
        for sum in &mut sums {
            for lane in sum {
                *lane = lane.wrapping_mul(factor).wrapping_add(term);
            }
        }
    }
    black_box(sums);
    u64::from(rounds) * (SUMS * SHORTS) as u64
}
