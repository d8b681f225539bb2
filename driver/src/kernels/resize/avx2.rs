//! Bilinear resizing, 8 values at a time.

use core::arch::x86_64::*;

use super::fixed::{FixedWork, HALF};
use super::portable::{Work, block, weigh_line};
use super::reference::{BITS, Resize};
use crate::kernels::simd::avx2::{LANES, load_floats, load_i32s, store_floats};

/// [`BITS`] as these instructions take them.
const SHIFT: i32 = BITS.cast_signed();

/// As [`portable::lines`](super::portable::lines).
#[target_feature(enable = "avx2")]
pub(crate) fn bytes(
    resize: &Resize,
    input: &[u8],
    first: usize,
    work: &mut Work<'_>,
    out: &mut [u8],
) {
    let (channels, len) = (resize.channels, resize.width.output * resize.channels);
    for (index, out) in out.chunks_exact_mut(len).enumerate() {
        weigh_line(resize, input, first + index, work);
        pixels(channels, work.runs(), out, |left, right, weight| {
            let sums = mixed(work, left, right, weight);
            // Truncated, and held in 0 to 255.
            narrow(_mm256_cvttps_epi32(_mm256_add_ps(sums, _mm256_set1_ps(0.5))), |low, high| {
                let values = _mm_packus_epi32(low, high);
                _mm_packus_epi16(values, values)
            })
        });
    }
}

/// As [`portable::lines`](super::portable::lines).
#[target_feature(enable = "avx2")]
pub(crate) fn floats(
    resize: &Resize,
    input: &[f32],
    first: usize,
    work: &mut Work<'_>,
    out: &mut [f32],
) {
    let (channels, len) = (resize.channels, resize.width.output * resize.channels);
    for (index, out) in out.chunks_exact_mut(len).enumerate() {
        weigh_line(resize, input, first + index, work);
        pixels(channels, work.runs(), out, |left, right, weight| {
            let mut values = [0.0; LANES];
            store_floats(&mut values, mixed(work, left, right, weight));
            values
        });
    }
}

/// As [`fixed::lines`](super::fixed::lines).
#[target_feature(enable = "avx2")]
pub(crate) fn signed(
    resize: &Resize,
    input: &[i8],
    first: usize,
    work: &mut FixedWork<'_>,
    out: &mut [i8],
) {
    let (channels, len) = (resize.channels, resize.width.output * resize.channels);
    let out: &mut [u8] = bytemuck::cast_slice_mut(out);
    for (index, out) in out.chunks_exact_mut(len).enumerate() {
        work.weigh(resize, input, first + index);
        pixels(channels, work.runs(), out, |left, right, weight| {
            let [left, right] = [load_i32s(work.line, left), load_i32s(work.line, right)];
            let part = _mm256_mullo_epi32(_mm256_sub_epi32(right, left), _mm256_set1_epi32(weight));
            let sums = _mm256_add_epi32(_mm256_slli_epi32::<SHIFT>(left), part);
            // Mixes of bytes, which none of these makes smaller.
            narrow(rounded(sums), |low, high| {
                let values = _mm_packs_epi32(low, high);
                _mm_packs_epi16(values, values)
            })
        });
    }
}

/// The pixels of a line: `values` makes those that begin at these places of the neighbours' lines, with this weight.
/// What is written behind a pixel's end is the next one's, which comes later.
#[inline]
#[target_feature(enable = "avx2")]
fn pixels<'w, T: Copy, W: Copy + 'w>(
    channels: usize,
    runs: impl Iterator<Item = ((usize, usize), &'w [W])>,
    out: &mut [T],
    values: impl Fn(usize, usize, W) -> [T; LANES],
) {
    let mut begin = 0;
    for ((left, right), weights) in runs {
        for weight in weights {
            for channel in (0..channels).step_by(LANES) {
                let values = values(left + channel, right + channel, *weight);
                let out = &mut out[begin + channel..];
                if let Some(out) = out.first_chunk_mut() {
                    *out = values;
                } else {
                    let len = out.len();
                    out.copy_from_slice(&values[..len]);
                }
            }
            begin += channels;
        }
    }
}

/// Values between four neighbours, of the upper line and the lower one. The order of the products is the reference's.
#[inline]
#[target_feature(enable = "avx2")]
fn mixed(work: &Work<'_>, left: usize, right: usize, weight: f32) -> __m256 {
    let (weight, rest) = (_mm256_set1_ps(weight), _mm256_set1_ps(1.0 - weight));
    let load = |line: &[f32], at: usize| load_floats(&block(&line[at..]).as_chunks().0[0]);
    let sum = _mm256_mul_ps(load(work.upper, left), rest);
    let sum = _mm256_add_ps(sum, _mm256_mul_ps(load(work.lower, left), rest));
    let sum = _mm256_add_ps(sum, _mm256_mul_ps(load(work.upper, right), weight));
    _mm256_add_ps(sum, _mm256_mul_ps(load(work.lower, right), weight))
}

/// Sums divided by the square of 1, rounded to nearest, with ties away from 0.
#[inline]
#[target_feature(enable = "avx2")]
fn rounded(sums: __m256i) -> __m256i {
    let magnitudes = _mm256_add_epi32(_mm256_abs_epi32(sums), _mm256_set1_epi32(HALF));
    let magnitudes = _mm256_srli_epi32::<{ 2 * SHIFT }>(magnitudes);
    _mm256_sign_epi32(magnitudes, sums)
}

/// Numbers as bytes: `pack` brings both halves into the first 8.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(values: __m256i, pack: impl Fn(__m128i, __m128i) -> __m128i) -> [u8; LANES] {
    let bytes = pack(_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values));
    _mm_cvtsi128_si64(bytes).to_le_bytes()
}
