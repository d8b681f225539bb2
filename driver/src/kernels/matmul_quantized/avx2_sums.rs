//! Sums of the rows of weights, 32 bytes at an instruction, as those for AVX-512 are made.

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
