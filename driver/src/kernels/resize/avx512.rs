//! Bilinear resizing: see [`resize_lines`](crate::kernels::resize_lines).

use core::arch::x86_64::*;

use super::{lanes, store};
use crate::kernels::resize::Resize;
use crate::kernels::resize_lines::{BLOCK, Work, block, weigh_line};

/// See [`resize_bytes`](super::super::resize_bytes).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in super::super) fn bytes(
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
        for (pixel, (places, weight)) in work.columns().enumerate() {
            for channel in (0..channels).step_by(BLOCK) {
                let sums = mixed(work, places, channel, weight);
                // Truncated, and held in 0 to 255.
                let values = _mm512_cvttps_epi32(_mm512_add_ps(sums, half));
                let values = _mm512_max_epi32(values, _mm512_setzero_si512());
                let at = pixel * channels + channel;
                let mask = lanes(at, out.len());
                store(&mut out[at..], mask, _mm512_cvtusepi32_epi8(values));
            }
        }
    }
}

/// See [`resize_floats`](super::super::resize_floats).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in super::super) fn floats(
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
        for (pixel, (places, weight)) in work.columns().enumerate() {
            for channel in (0..channels).step_by(BLOCK) {
                let sums = mixed(work, places, channel, weight);
                let at = pixel * channels + channel;
                let mask = lanes(at, out.len());
                let out = &mut out[at..][..mask.count_ones() as usize];
                // SAFETY: the lanes in the mask, a run of low bits, are the elements of the slice;
                // the others are not written.
                unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, sums) };
            }
        }
    }
}

/// A block of a pixel between two neighbours. The order of the products is the reference's.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn mixed(work: &Work<'_>, (left, right): (usize, usize), channel: usize, weight: f32) -> __m512 {
    let [left, right] = [left, right].map(|place| place + channel);
    let (weight, rest) = (_mm512_set1_ps(weight), _mm512_set1_ps(1.0 - weight));
    let sum = _mm512_mul_ps(load(block(&work.upper[left..])), rest);
    let sum = _mm512_add_ps(sum, _mm512_mul_ps(load(block(&work.lower[left..])), rest));
    let sum = _mm512_add_ps(sum, _mm512_mul_ps(load(block(&work.upper[right..])), weight));
    _mm512_add_ps(sum, _mm512_mul_ps(load(block(&work.lower[right..])), weight))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[f32; BLOCK]) -> __m512 {
    // SAFETY: 64 bytes are read from an array of 16 floats.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}
