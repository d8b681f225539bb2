//! Sums of the rows of weights, 32 bytes at an instruction, and of rows of activations, as those for AVX-512 are made.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "sums of 32 bits wrap; no row is longer than addresses reach"
)]

use core::arch::x86_64::*;

use crate::kernels::simd::avx2::load_32_bytes;

/// See [`signed_sums`](super::bytes::signed_sums).
#[target_feature(enable = "avx2")]
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

/// The sum of these bytes, each XORed with `flip`.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(bytes: &[u8], flip: u8) -> i64 {
    let flips = _mm256_set1_epi8(flip.cast_signed());
    let sum_of = |bytes| {
        let flipped = _mm256_xor_si256(load_32_bytes(bytes), flips);
        _mm256_sad_epu8(flipped, _mm256_setzero_si256())
    };
    let (parts, rest) = bytes.as_chunks::<32>();
    let mut sums = _mm256_setzero_si256();
    for part in parts {
        sums = _mm256_add_epi64(sums, sum_of(part));
    }
    if !rest.is_empty() {
        // What is missing is 0 once it is flipped.
        let mut end = [flip; 32];
        end[..rest.len()].copy_from_slice(rest);
        sums = _mm256_add_epi64(sums, sum_of(&end));
    }
    let two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    _mm_cvtsi128_si64(two) + _mm_extract_epi64::<1>(two)
}

/// Rows of activations that are summed together.
pub(super) const ROWS: usize = 4;

/// Bytes at an instruction.
const BLOCK: usize = 32;

/// See [`row_sums`](super::bytes::row_sums).
#[target_feature(enable = "avx2")]
pub(crate) fn row_sums(rows: &[u8], factor: i32, out: &mut [i32]) {
    let Some(depth) = rows.len().checked_div(out.len()).filter(|depth| *depth > 0) else {
        out.fill(0);
        return;
    };
    let mut rest = rows;
    for out in out.chunks_mut(ROWS) {
        let mut sums = [_mm256_setzero_si256(); ROWS];
        for sum in &mut sums[..out.len()] {
            *sum = quarters(rest, depth);
            rest = &rest[depth..];
        }
        out.copy_from_slice(&factor_times(sums, factor)[..out.len()]);
    }
}

/// Four numbers that add up to the sum of the first `depth` of these bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn quarters(rows: &[u8], depth: usize) -> __m256i {
    let sum_of = |bytes| _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    let mut sums = _mm256_setzero_si256();
    let (blocks, rest) = rows[..depth].as_chunks::<BLOCK>();
    for block in blocks {
        sums = _mm256_add_epi64(sums, sum_of(load_32_bytes(block)));
    }
    if !rest.is_empty() {
        let mut end = [0; BLOCK];
        // The row behind is read, too, where there is one, and left out.
        let bytes = rows[depth - rest.len()..].first_chunk().unwrap_or_else(|| {
            end[..rest.len()].copy_from_slice(rest);
            &end
        });
        let kept = _mm256_and_si256(load_32_bytes(bytes), keep(rest.len()));
        sums = _mm256_add_epi64(sums, sum_of(kept));
    }
    sums
}

/// Ones in the first `count` bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn keep(count: usize) -> __m256i {
    let lanes = _mm256_setr_epi8(
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31,
    );
    _mm256_cmpgt_epi8(_mm256_set1_epi8(count as i8), lanes)
}

/// The sum of each row's quarters, times `factor`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn factor_times([a, b, c, d]: [__m256i; ROWS], factor: i32) -> [i32; ROWS] {
    let halves = |a, b| _mm256_add_epi64(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    let (ab, cd) = (halves(a, b), halves(c, d));
    let low = _mm256_permute2x128_si256::<0x20>(ab, cd);
    let sums = _mm256_add_epi64(low, _mm256_permute2x128_si256::<0x31>(ab, cd));
    // The lower half of each, which is what a sum of 32 bits wraps to.
    let lower = _mm256_permutevar8x32_epi32(sums, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    bytemuck::cast(_mm_mullo_epi32(_mm256_castsi256_si128(lower), _mm_set1_epi32(factor)))
}
