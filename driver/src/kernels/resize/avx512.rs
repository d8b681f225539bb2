//! Bilinear resizing, 16 values at a time.

use core::arch::x86_64::*;

use super::fixed::{FixedWork, HALF};
use super::portable::{BLOCK, Work, block, weigh_line};
use super::reference::{BITS, Resize};
use crate::kernels::simd::avx512::{
    Lanes16, load_16_floats, load_i32s, store_16_bytes, store_floats,
};

/// As [`portable::lines`](super::portable::lines).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
        mix(channels, work, out, |out, lanes, sums| {
            // Truncated, and held in 0 to 255.
            let values = _mm512_cvttps_epi32(_mm512_add_ps(sums, _mm512_set1_ps(0.5)));
            let values = _mm512_max_epi32(values, _mm512_setzero_si512());
            store_16_bytes(out, lanes, _mm512_cvtusepi32_epi8(values));
        });
    }
}

/// As [`portable::lines`](super::portable::lines).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
        mix(channels, work, out, |out, lanes, sums| store_floats(out, lanes, sums));
    }
}

/// As [`fixed::lines`](super::fixed::lines).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
        let mut pixel = 0;
        for ((left, right), weights) in work.runs() {
            let out = &mut out[pixel * channels..][..weights.len() * channels];
            for channel in (0..channels).step_by(BLOCK) {
                let lanes = Lanes16::holding(channel, channels);
                let [left, right] = [left, right]
                    .map(|neighbour| load_i32s(work.line, neighbour + channel, Lanes16::ALL));
                let (whole, rise) =
                    (_mm512_slli_epi32::<BITS>(left), _mm512_sub_epi32(right, left));
                for (out, weight) in out.chunks_exact_mut(channels).zip(weights) {
                    let part = _mm512_mullo_epi32(rise, _mm512_set1_epi32(*weight));
                    let value = rounded(_mm512_add_epi32(whole, part));
                    store_16_bytes(&mut out[channel..], lanes, _mm512_cvtepi32_epi8(value));
                }
            }
            pixel += weights.len();
        }
    }
}

/// Sums divided by the square of 1, rounded to nearest, with ties away from 0.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn rounded(sums: __m512i) -> __m512i {
    let magnitudes = _mm512_add_epi32(_mm512_abs_epi32(sums), _mm512_set1_epi32(HALF));
    let magnitudes = _mm512_srli_epi32::<{ 2 * BITS }>(magnitudes);
    let is_negative = _mm512_movepi32_mask(sums);
    _mm512_mask_sub_epi32(magnitudes, is_negative, _mm512_setzero_si512(), magnitudes)
}

/// The pixels of a line. Where a picture grows, several pixels lie between the same two neighbours, whose values are
/// loaded once for all of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn mix<T>(
    channels: usize,
    work: &Work<'_>,
    out: &mut [T],
    store: impl Fn(&mut [T], Lanes16, __m512),
) {
    let mut pixel = 0;
    for ((left, right), weights) in work.runs() {
        let out = &mut out[pixel * channels..][..weights.len() * channels];
        for channel in (0..channels).step_by(BLOCK) {
            let lanes = Lanes16::holding(channel, channels);
            let corners = Corners {
                left: [&work.upper[left..], &work.lower[left..]].map(|line| load(line, channel)),
                right: [&work.upper[right..], &work.lower[right..]].map(|line| load(line, channel)),
            };
            for (out, weight) in out.chunks_exact_mut(channels).zip(weights) {
                store(&mut out[channel..], lanes, corners.mixed(*weight));
            }
        }
        pixel += weights.len();
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &[f32], channel: usize) -> __m512 {
    load_16_floats(block(&line[channel..]))
}

/// A block of channels of four neighbours, of the upper line and the lower one.
struct Corners {
    left: [__m512; 2],
    right: [__m512; 2],
}

impl Corners {
    /// A pixel between them. The order of the products is the reference's.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn mixed(&self, weight: f32) -> __m512 {
        let (weight, rest) = (_mm512_set1_ps(weight), _mm512_set1_ps(1.0 - weight));
        let sum = _mm512_mul_ps(self.left[0], rest);
        let sum = _mm512_add_ps(sum, _mm512_mul_ps(self.left[1], rest));
        let sum = _mm512_add_ps(sum, _mm512_mul_ps(self.right[0], weight));
        _mm512_add_ps(sum, _mm512_mul_ps(self.right[1], weight))
    }
}
