//! Sums of the rows of weights, 64 bytes at an instruction, and of rows of activations, which are summed while a model
//! runs and may be short: several at a time, 32 bytes of each at an instruction.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "sums of 32 bits wrap; no row is longer than addresses reach"
)]

use core::arch::x86_64::*;

use super::avx2_sums::{ROWS, factor_times};
use crate::kernels::simd::avx512::{load_64_bytes, load_block};

/// See [`signed_sums`](super::bytes::signed_sums).
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn signed_sums(rows: &[u8], flip: u8, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    // With its top bit flipped a signed value is one without a sign that is 128 more.
    let more = 128 * depth as i64;
    for (row, out) in rows.chunks_exact(depth).zip(out) {
        *out = (sum(row, flip ^ 0x80) - more) as i32;
    }
}

/// How far ahead bytes are asked for: weights come from memory, and the processor by itself asks for no more than what
/// lies on the same page.
const AHEAD: usize = 2048;

/// The sum of these bytes, each XORed with `flip`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sum(bytes: &[u8], flip: u8) -> i64 {
    let flips = _mm512_set1_epi8(flip.cast_signed());
    let sum_of = |bytes| {
        let flipped = _mm512_xor_si512(load_64_bytes(bytes), flips);
        _mm512_sad_epu8(flipped, _mm512_setzero_si512())
    };
    let (parts, rest) = bytes.as_chunks::<64>();
    let mut sums = _mm512_setzero_si512();
    for part in parts {
        _mm_prefetch::<_MM_HINT_T0>(part.as_ptr().wrapping_add(AHEAD).cast());
        sums = _mm512_add_epi64(sums, sum_of(part));
    }
    if !rest.is_empty() {
        // What is missing is 0 once it is flipped.
        let mut end = [flip; 64];
        end[..rest.len()].copy_from_slice(rest);
        sums = _mm512_add_epi64(sums, sum_of(&end));
    }
    _mm512_reduce_add_epi64(sums)
}

/// See [`row_sums`](super::bytes::row_sums).
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn row_sums(rows: &[u8], factor: i32, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    let (all, rest) = out.as_chunks_mut::<ROWS>();
    let mut groups = rows.chunks_exact(ROWS * depth);
    for (group, out) in groups.by_ref().zip(all) {
        let mut sums = [_mm256_setzero_si256(); ROWS];
        for (row, sum) in group.chunks_exact(depth).zip(&mut sums) {
            *sum = quarters(row);
        }
        *out = factor_times(sums, factor);
    }
    for (row, out) in groups.remainder().chunks_exact(depth).zip(rest) {
        let [sum, ..] = factor_times([quarters(row); ROWS], factor);
        *out = sum;
    }
}

/// Four numbers that add up to the sum of these bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn quarters(row: &[u8]) -> __m256i {
    let mut sums = _mm256_setzero_si256();
    for block in row.chunks(32) {
        let (_, bytes) = load_block(block);
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    sums
}
