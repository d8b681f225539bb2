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
        let corners = |left, right| Corners::load(work, left, right);
        pixels(channels, work.runs(), out, corners, |corners, weight| {
            let sums = corners.mixed(weight);
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
        let corners = |left, right| Corners::load(work, left, right);
        pixels(channels, work.runs(), out, corners, |corners, weight| {
            let mut values = [0.0; LANES];
            store_floats(&mut values, corners.mixed(weight));
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
        let whole_and_rise = |left, right| {
            let [left, right] = [load_i32s(work.line, left), load_i32s(work.line, right)];
            [_mm256_slli_epi32::<SHIFT>(left), _mm256_sub_epi32(right, left)]
        };
        pixels(channels, work.runs(), out, whole_and_rise, |[whole, rise], weight| {
            let part = _mm256_mullo_epi32(*rise, _mm256_set1_epi32(weight));
            let sums = _mm256_add_epi32(*whole, part);
            // Mixes of bytes, which none of these makes smaller.
            narrow(rounded(sums), |low, high| {
                let values = _mm_packs_epi32(low, high);
                _mm_packs_epi16(values, values)
            })
        });
    }
}

/// The pixels of a line. Where a picture grows, several pixels lie between the same two neighbours, whose values `load`
/// brings once for all of them; of these `values` makes those of a pixel with this weight.
///
/// The last channels come first: what is written behind a pixel's end is the next one's, which comes later.
#[inline]
#[target_feature(enable = "avx2")]
fn pixels<'w, T: Copy, W: Copy + 'w, B>(
    channels: usize,
    runs: impl Iterator<Item = ((usize, usize), &'w [W])>,
    out: &mut [T],
    load: impl Fn(usize, usize) -> B,
    values: impl Fn(&B, W) -> [T; LANES],
) {
    let mut begin = 0;
    for ((left, right), weights) in runs {
        for channel in (0..channels).step_by(LANES).rev() {
            let neighbours = load(left + channel, right + channel);
            let mut at = begin + channel;
            for weight in weights {
                let values = values(&neighbours, *weight);
                let out = &mut out[at..];
                if let Some(out) = out.first_chunk_mut() {
                    *out = values;
                } else {
                    let len = out.len();
                    out.copy_from_slice(&values[..len]);
                }
                at += channels;
            }
        }
        begin += weights.len() * channels;
    }
}

/// Eight values of four neighbours, of the upper line and the lower one.
struct Corners {
    left: [__m256; 2],
    right: [__m256; 2],
}

impl Corners {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(work: &Work<'_>, left: usize, right: usize) -> Self {
        let lines = |at: usize| {
            [&work.upper[at..], &work.lower[at..]]
                .map(|line| load_floats(&block(line).as_chunks().0[0]))
        };
        Corners { left: lines(left), right: lines(right) }
    }

    /// Values between them. The order of the products is the reference's.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mixed(&self, weight: f32) -> __m256 {
        let (weight, rest) = (_mm256_set1_ps(weight), _mm256_set1_ps(1.0 - weight));
        let sum = _mm256_mul_ps(self.left[0], rest);
        let sum = _mm256_add_ps(sum, _mm256_mul_ps(self.left[1], rest));
        let sum = _mm256_add_ps(sum, _mm256_mul_ps(self.right[0], weight));
        _mm256_add_ps(sum, _mm256_mul_ps(self.right[1], weight))
    }
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
