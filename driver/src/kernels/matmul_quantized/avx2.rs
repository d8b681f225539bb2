//! Products of bytes for AVX2, with weights of 16 bits.

use core::arch::x86_64::*;

use super::pairs::{LANES, PairMatrix, ROWS};
use crate::kernels::simd::avx2::{load_pairs, store_i32s};

/// As [`PairMatrix::product`].
#[target_feature(enable = "avx2")]
pub(crate) fn multiply_pairs(matrix: &PairMatrix, rows: &[u8], out: &mut [i32]) {
    let (units, depth) = (matrix.units(), matrix.depth());
    for (rows, out) in rows.chunks(ROWS * depth).zip(out.chunks_mut(ROWS * units)) {
        for first in (0..units).step_by(LANES) {
            let block = matrix.block(first / LANES);
            let used = LANES.min(units - first);
            if rows.len() == ROWS * depth {
                let sums = product::<ROWS>(rows, depth, block);
                for (row, sums) in sums.iter().enumerate() {
                    out[row * units + first..][..used].copy_from_slice(&sums[..used]);
                }
                continue;
            }
            for (row, values) in rows.chunks_exact(depth).enumerate() {
                let [sums] = product::<1>(values, depth, block);
                out[row * units + first..][..used].copy_from_slice(&sums[..used]);
            }
        }
    }
}

/// The sums of `R` rows of `depth` values with the weights of one block.
#[target_feature(enable = "avx2")]
fn product<const R: usize>(
    rows: &[u8],
    depth: usize,
    block: &[[[i16; 2]; LANES]],
) -> [[i32; LANES]; R] {
    let mut sums = [[_mm256_setzero_si256(); 2]; R];
    let whole = depth / 4;
    for quad in 0..whole {
        let couple = [load_pairs(&block[2 * quad]), load_pairs(&block[2 * quad + 1])];
        for (row, sums) in sums.iter_mut().enumerate() {
            let values = rows[row * depth + quad * 4..].first_chunk().copied().unwrap_or_default();
            add(sums, values, &couple);
        }
    }
    if !depth.is_multiple_of(4) {
        let zero = [_mm256_setzero_si256(); 2];
        let second = block.get(2 * whole + 1).map_or(zero, |pair| load_pairs(pair));
        let couple = [load_pairs(&block[2 * whole]), second];
        for (row, sums) in sums.iter_mut().enumerate() {
            let mut values = [0; 4];
            let rest = &rows[row * depth + whole * 4..(row + 1) * depth];
            values[..rest.len()].copy_from_slice(rest);
            add(sums, values, &couple);
        }
    }
    let mut out = [[0; LANES]; R];
    for (out, sums) in out.iter_mut().zip(&sums) {
        store_i32s(out, *sums);
    }
    out
}

/// Adds the products of four values with the weights of their four positions.
#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut [__m256i; 2], values: [u8; 4], weights: &[[__m256i; 2]; 2]) {
    let values = _mm256_set1_epi32(i32::from_ne_bytes(values));
    // Bytes 0 and 1, or 2 and 3, of every lane with 16 bits each; -1 gives a zero byte.
    let first = _mm256_set1_epi32(i32::from_ne_bytes([0, 0xFF, 1, 0xFF]));
    let second = _mm256_set1_epi32(i32::from_ne_bytes([2, 0xFF, 3, 0xFF]));
    for (bytes, weights) in [first, second].into_iter().zip(weights) {
        let pair = _mm256_shuffle_epi8(values, bytes);
        for (sum, weights) in sums.iter_mut().zip(weights) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pair, *weights));
        }
    }
}
