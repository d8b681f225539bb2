//! Bilinear resizing, 16 values at a time.

use core::arch::x86_64::*;

use super::portable::{BLOCK, Work, block, weigh_line};
use super::reference::Resize;
use crate::kernels::simd::avx512::{Lanes16, load_16_floats, store_16_bytes, store_floats};

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
    let half = _mm512_set1_ps(0.5);
    for index in 0..out.len() / len {
        weigh_line(resize, input, first + index, work);
        let out = &mut out[index * len..];
        for (pixel, (offsets, weight)) in work.columns().enumerate() {
            for channel in (0..channels).step_by(BLOCK) {
                let sums = mixed(work, offsets, channel, weight);
                // Truncated, and held in 0 to 255.
                let values = _mm512_cvttps_epi32(_mm512_add_ps(sums, half));
                let values = _mm512_max_epi32(values, _mm512_setzero_si512());
                let at = pixel * channels + channel;
                let lanes = Lanes16::holding(at, out.len());
                store_16_bytes(&mut out[at..], lanes, _mm512_cvtusepi32_epi8(values));
            }
        }
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
    for index in 0..out.len() / len {
        weigh_line(resize, input, first + index, work);
        let out = &mut out[index * len..];
        for (pixel, (offsets, weight)) in work.columns().enumerate() {
            for channel in (0..channels).step_by(BLOCK) {
                let sums = mixed(work, offsets, channel, weight);
                let at = pixel * channels + channel;
                let lanes = Lanes16::holding(at, out.len());
                store_floats(&mut out[at..], lanes, sums);
            }
        }
    }
}

/// A block of a pixel between two neighbours. The order of the products is the reference's.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn mixed(work: &Work<'_>, (left, right): (usize, usize), channel: usize, weight: f32) -> __m512 {
    let [left, right] = [left, right].map(|offset| offset + channel);
    let (weight, rest) = (_mm512_set1_ps(weight), _mm512_set1_ps(1.0 - weight));
    let sum = _mm512_mul_ps(load_16_floats(block(&work.upper[left..])), rest);
    let sum = _mm512_add_ps(sum, _mm512_mul_ps(load_16_floats(block(&work.lower[left..])), rest));
    let sum =
        _mm512_add_ps(sum, _mm512_mul_ps(load_16_floats(block(&work.upper[right..])), weight));
    _mm512_add_ps(sum, _mm512_mul_ps(load_16_floats(block(&work.lower[right..])), weight))
}
