//! Kernels for AVX-512 (F, BW, DQ, VL): the exact rescaling of sums, and depthwise convolution.
//!
//! Functions here carry the features they need; [`super`] calls them only where the CPU has those.
#![allow(
    clippy::incompatible_msrv,
    reason = "the matrix library, which this crate cannot do without, needs a newer compiler still"
)]

use core::arch::x86_64::*;
use std::ops::Range;

use crate::kernels::conv_geometry::Conv;
use crate::kernels::depthwise::{
    FloatFilter, MAX_TAPS, PairedFilter, for_each_pixel, for_each_pixel_of_pairs,
};
use crate::kernels::gemm_quads::{Quad, QuadMatrix};
use crate::kernels::requantize::Channels;

/// Channels of one register of sums.
const LANES: usize = 16;

/// Rows of sums that share one reading of the rules.
const ROWS: usize = 16;

/// The rules of 16 channels, in registers.
///
/// The doubled product `2 * x * m`, plus `2^31`, has the rounded result in its upper half. `2 * m` is
/// below `2^32` but may have no place in a signed number: for `x` of either sign the product is then
/// taken with `2 * m - 2^32`, and `x` added to the upper half makes up for it.
#[derive(Debug, Clone, Copy)]
struct Rules {
    bias: __m512i,
    /// Twice the multipliers, modulo 2^32.
    doubled: __m512i,
    /// Those of odd channels, moved to even places.
    odd_doubled: __m512i,
    /// Channels where twice the multiplier is not below 2^31.
    wrapped: __mmask16,
    left: __m512i,
    right: __m512i,
    /// Added to products of even and odd channels: what rounds the product, and where negative
    /// results are of no interest, in the upper half, what rounds the shift.
    nudges: [__m512i; 2],
    /// Bits that the right shift drops.
    dropped: __m512i,
}

impl Rules {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn new<const NOT_NEGATIVE: bool>(rules: Channels<'_>, first: usize, mask: __mmask16) -> Self {
        let multipliers = load(rules.multipliers, first, mask);
        let doubled = _mm512_add_epi32(multipliers, multipliers);
        let right = load(rules.right_shifts, first, mask);
        let one = _mm512_set1_epi32(1);
        let dropped = _mm512_sub_epi32(_mm512_sllv_epi32(one, right), one);
        let mut nudges = [_mm512_set1_epi64(1 << 31); 2];
        if NOT_NEGATIVE {
            let half = _mm512_srli_epi32::<1>(_mm512_add_epi32(dropped, one));
            nudges[0] = _mm512_or_si512(nudges[0], _mm512_slli_epi64::<32>(half));
            nudges[1] = _mm512_mask_mov_epi32(nudges[1], ODD, half);
        }
        Rules {
            bias: load(rules.bias, first, mask),
            doubled,
            odd_doubled: _mm512_srli_epi64::<32>(doubled),
            wrapped: _mm512_movepi32_mask(doubled),
            left: load(rules.left_shifts, first, mask),
            right,
            nudges,
            dropped,
        }
    }

    /// Sums with their bias in them, times the multipliers, rounded as
    /// [`Multiplier::apply`](crate::kernels::quant::Multiplier::apply) does. Where results below 0
    /// are of no interest, `NOT_NEGATIVE` gives 0 for them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn apply<const NOT_NEGATIVE: bool>(&self, sums: __m512i) -> __m512i {
        let sums = _mm512_sllv_epi32(sums, self.left);
        if NOT_NEGATIVE {
            // Both roundings in one addition: the upper half is below 2^31, and half of what the
            // shift divides by at most 2^30.
            let sums = _mm512_max_epi32(sums, _mm512_setzero_si512());
            let even = _mm512_mul_epu32(sums, self.doubled);
            let odd = _mm512_mul_epu32(upper_halves(sums), self.odd_doubled);
            return _mm512_srlv_epi32(self.upper_halves_of(even, odd), self.right);
        }
        let even = _mm512_mul_epi32(sums, self.doubled);
        let odd = _mm512_mul_epi32(upper_halves(sums), self.odd_doubled);
        let high = self.upper_halves_of(even, odd);
        let high = _mm512_mask_add_epi32(high, self.wrapped, high, sums);
        let remainder = _mm512_and_si512(high, self.dropped);
        let is_negative = _mm512_srai_epi32::<31>(high);
        let threshold = _mm512_sub_epi32(_mm512_srli_epi32::<1>(self.dropped), is_negative);
        let rounds_up = _mm512_cmpgt_epi32_mask(remainder, threshold);
        let quotient = _mm512_srav_epi32(high, self.right);
        _mm512_mask_add_epi32(quotient, rounds_up, quotient, _mm512_set1_epi32(1))
    }

    /// The upper halves of products of even and odd channels, nudged.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn upper_halves_of(&self, even: __m512i, odd: __m512i) -> __m512i {
        let even = _mm512_add_epi64(even, self.nudges[0]);
        let odd = _mm512_add_epi64(odd, self.nudges[1]);
        _mm512_mask_shuffle_epi32::<UPPER>(odd, !ODD, even)
    }
}

/// Every second lane, from lane 1 on.
const ODD: __mmask16 = 0xAAAA;

/// Takes lanes 1, 1, 3, 3 of each four.
const UPPER: i32 = 0b11_11_01_01;

/// The odd lanes, in even places.
#[inline]
#[target_feature(enable = "avx512f")]
fn upper_halves(values: __m512i) -> __m512i {
    _mm512_shuffle_epi32::<UPPER>(values)
}

/// The lanes of a register that hold channels `first..len`.
fn lanes(first: usize, len: usize) -> __mmask16 {
    let count = (len - first).min(LANES);
    if count == LANES { !0 } else { (1 << count) - 1 }
}

/// 16 numbers of `values` from `first` on; lanes not in `mask` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[i32], first: usize, mask: __mmask16) -> __m512i {
    let values = &values[first..][..mask.count_ones() as usize];
    // SAFETY: masks here are runs of low bits ([`lanes`]); the lanes in the mask are the elements of
    // the slice, and lanes that are not in it are not read.
    unsafe { _mm512_maskz_loadu_epi32(mask, values.as_ptr()) }
}

/// See [`super::requantize_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn requantize_rows(
    rules: Channels<'_>,
    sums: &[i32],
    row_terms: &[i32],
    out: &mut [u8],
) {
    // With an activation that leaves nothing below real 0, rounding of negative numbers is of no
    // interest.
    if rules.low >= 0 {
        requantize::<true>(rules, sums, row_terms, out);
    } else {
        requantize::<false>(rules, sums, row_terms, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn requantize<const NOT_NEGATIVE: bool>(
    rules: Channels<'_>,
    sums: &[i32],
    row_terms: &[i32],
    out: &mut [u8],
) {
    let width = rules.bias.len();
    let bounds = Bounds::new(rules);
    for (group, (sums, out)) in
        sums.chunks(ROWS * width).zip(out.chunks_mut(ROWS * width)).enumerate()
    {
        for first in (0..width).step_by(LANES) {
            let mask = lanes(first, width);
            let block = Rules::new::<NOT_NEGATIVE>(rules, first, mask);
            for (row, (sums, out)) in
                sums.chunks_exact(width).zip(out.chunks_exact_mut(width)).enumerate()
            {
                let term = row_terms.get(group * ROWS + row).copied().unwrap_or(0);
                let sums = _mm512_add_epi32(load(sums, first, mask), _mm512_set1_epi32(term));
                let values = block.apply::<NOT_NEGATIVE>(_mm512_add_epi32(sums, block.bias));
                store(&mut out[first..], mask, bounds.bytes(values));
            }
        }
    }
}

/// The range of stored values, and the zero point.
#[derive(Clone, Copy)]
struct Bounds {
    low: __m512i,
    high: __m512i,
    zero_point: __m512i,
}

impl Bounds {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(rules: Channels<'_>) -> Self {
        Bounds {
            low: _mm512_set1_epi32(rules.low),
            high: _mm512_set1_epi32(rules.high),
            zero_point: _mm512_set1_epi32(rules.zero_point),
        }
    }

    /// Stored values, from rescaled sums.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn bytes(&self, values: __m512i) -> __m128i {
        let values = _mm512_min_epi32(_mm512_max_epi32(values, self.low), self.high);
        _mm512_cvtepi32_epi8(_mm512_add_epi32(values, self.zero_point))
    }
}

/// Writes the bytes in `mask`, a run of low bits, to the front of `out`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn store(out: &mut [u8], mask: __mmask16, bytes: __m128i) {
    let out = &mut out[..mask.count_ones() as usize];
    if let Some(full) = out.first_chunk_mut::<LANES>() {
        // SAFETY: 16 bytes are written to an array of 16.
        unsafe { _mm_storeu_si128(full.as_mut_ptr().cast(), bytes) };
    } else {
        // SAFETY: the bytes in the mask are those of the slice; the others are not written.
        unsafe { _mm_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
    }
}

/// Rows that [`multiply_quads`] computes at a time: with four panels of sums, four registers of
/// weights and one of activations they fill 29 of 32 registers.
const TILE: usize = 6;

/// See [`super::multiply_quads`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn multiply_quads(
    matrix: &QuadMatrix,
    rows: &[u8],
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    if rules.low >= 0 {
        quads::<true>(matrix, rows, rules, row_terms, out);
    } else {
        quads::<false>(matrix, rows, rules, row_terms, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn quads<const NOT_NEGATIVE: bool>(
    matrix: &QuadMatrix,
    rows: &[u8],
    rules: Channels<'_>,
    row_terms: &[i32],
    out: &mut [u8],
) {
    let panels = matrix.units().div_ceil(LANES);
    let product = Product { matrix, rows, rules, row_terms, bounds: Bounds::new(rules) };
    for first in (0..panels).step_by(4) {
        match panels - first {
            1 => product.panels::<NOT_NEGATIVE, 1>(first, out),
            2 => product.panels::<NOT_NEGATIVE, 2>(first, out),
            3 => product.panels::<NOT_NEGATIVE, 3>(first, out),
            _ => product.panels::<NOT_NEGATIVE, 4>(first, out),
        }
    }
}

/// The operands of [`multiply_quads`].
struct Product<'a> {
    matrix: &'a QuadMatrix,
    rows: &'a [u8],
    rules: Channels<'a>,
    row_terms: &'a [i32],
    bounds: Bounds,
}

impl Product<'_> {
    /// All rows of `P` panels from panel `first` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn panels<const NOT_NEGATIVE: bool, const P: usize>(&self, first: usize, out: &mut [u8]) {
        let mut masks = [0; P];
        for (panel, mask) in masks.iter_mut().enumerate() {
            *mask = lanes((first + panel) * LANES, self.matrix.units());
        }
        let mut rules = [Rules::new::<NOT_NEGATIVE>(self.rules, first * LANES, masks[0]); P];
        for panel in 1..P {
            let channel = (first + panel) * LANES;
            rules[panel] = Rules::new::<NOT_NEGATIVE>(self.rules, channel, masks[panel]);
        }
        let count = self.rows.len() / self.matrix.depth();
        let whole = count - count % TILE;
        for row in (0..whole).step_by(TILE) {
            self.tile::<NOT_NEGATIVE, P, TILE>(first, row, &rules, &masks, out);
        }
        for row in whole..count {
            self.tile::<NOT_NEGATIVE, P, 1>(first, row, &rules, &masks, out);
        }
    }

    /// `R` rows of `P` panels.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn tile<const NOT_NEGATIVE: bool, const P: usize, const R: usize>(
        &self,
        first: usize,
        row: usize,
        rules: &[Rules; P],
        masks: &[__mmask16; P],
        out: &mut [u8],
    ) {
        let (depth, units) = (self.matrix.depth(), self.matrix.units());
        let sums = self.sums::<P, R>(first, &self.rows[row * depth..(row + R) * depth]);
        for line in 0..R {
            let term = self.row_terms.get(row + line).copied().unwrap_or(0);
            let term = _mm512_set1_epi32(term);
            let out = &mut out[(row + line) * units..][..units];
            for panel in 0..P {
                let biased = _mm512_add_epi32(sums[line][panel], rules[panel].bias);
                let values = rules[panel].apply::<NOT_NEGATIVE>(_mm512_add_epi32(biased, term));
                let bytes = self.bounds.bytes(values);
                store(&mut out[(first + panel) * LANES..], masks[panel], bytes);
            }
        }
    }

    /// The sums of products of `R` rows with the weights of `P` panels from panel `first` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn sums<const P: usize, const R: usize>(&self, first: usize, rows: &[u8]) -> [[__m512i; P]; R] {
        let depth = self.matrix.depth();
        assert_eq!(rows.len(), R * depth, "activations of a tile");
        let mut panels = [self.matrix.panel(first); P];
        for (panel, quads) in panels.iter_mut().enumerate() {
            *quads = self.matrix.panel(first + panel);
            assert_eq!(quads.len(), depth.div_ceil(4), "weights of a panel");
        }
        let mut sums = [[_mm512_setzero_si512(); P]; R];
        for quad in 0..depth / 4 {
            let weights = weights(&panels, quad);
            for line in 0..R {
                // SAFETY: 4 bytes from `line * depth + quad * 4` on end at most at
                // `line * depth + depth`, which is within `rows`: the assertion above.
                let values = unsafe { rows.as_ptr().add(line * depth + quad * 4) };
                // SAFETY: as said for the pointer; it need not be aligned.
                let values = unsafe { values.cast::<i32>().read_unaligned() };
                let values = _mm512_set1_epi32(values);
                for panel in 0..P {
                    sums[line][panel] =
                        _mm512_dpbusd_epi32(sums[line][panel], values, weights[panel]);
                }
            }
        }
        if !depth.is_multiple_of(4) {
            let weights = weights(&panels, depth / 4);
            for line in 0..R {
                let rest = &rows[line * depth + depth / 4 * 4..(line + 1) * depth];
                let mut values = [0; 4];
                values[..rest.len()].copy_from_slice(rest);
                let values = _mm512_set1_epi32(i32::from_ne_bytes(values));
                for panel in 0..P {
                    sums[line][panel] =
                        _mm512_dpbusd_epi32(sums[line][panel], values, weights[panel]);
                }
            }
        }
        sums
    }
}

/// The quads with this index of each panel, which must have one.
#[inline]
#[target_feature(enable = "avx512f")]
fn weights<const P: usize>(panels: &[&[Quad]; P], quad: usize) -> [__m512i; P] {
    let mut weights = [_mm512_setzero_si512(); P];
    for (weights, panel) in weights.iter_mut().zip(panels) {
        let quad: &[[i8; 4]; LANES] = &panel[quad].0;
        // SAFETY: 64 bytes are read from an array of 64.
        *weights = unsafe { _mm512_loadu_si512(quad.as_ptr().cast()) };
    }
    weights
}

/// Channels of a block of [`PairedFilter`]: one register of 16-bit values.
const PAIRED: usize = PairedFilter::BLOCK;

/// The rules of a [`PairedFilter`] in registers' form: for each block its two halves.
#[derive(Debug, Clone)]
pub(super) struct PairedRules(Vec<[Rules; 2]>);

impl PairedRules {
    /// The rules of this filter.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn new(filter: &PairedFilter) -> Self {
        let rules = filter.rules();
        let half = |first: usize| {
            if rules.low >= 0 {
                Rules::new::<true>(rules, first, !0)
            } else {
                Rules::new::<false>(rules, first, !0)
            }
        };
        let blocks = (0..rules.bias.len()).step_by(PAIRED);
        PairedRules(blocks.map(|first| [half(first), half(first + LANES)]).collect())
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

/// See [`super::DepthwisePairs::run`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn depthwise_pairs(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rules: &PairedRules,
    rows: Range<usize>,
    out: &mut [u8],
) {
    let rules = rules.0.as_slice();
    match (filter.is_signed(), filter.rules().low >= 0) {
        (false, false) => pairs::<false, false>(conv, input, filter, rules, rows, out),
        (false, true) => pairs::<false, true>(conv, input, filter, rules, rows, out),
        (true, false) => pairs::<true, false>(conv, input, filter, rules, rows, out),
        (true, true) => pairs::<true, true>(conv, input, filter, rules, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pairs<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rules: &[[Rules; 2]],
    rows: Range<usize>,
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    assert_eq!(channels, filter.channels(), "channels of a depthwise filter");
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel_of_pairs(conv, input, filter, rows, |sources| {
        let Some(out) = out.next() else { return };
        for block in 0..channels.div_ceil(PAIRED) {
            let first = block * PAIRED;
            let count = (channels - first).min(PAIRED);
            let mask = if count == PAIRED { !0 } else { (1 << count) - 1 };
            let bytes =
                paired_block::<SIGNED, NOT_NEGATIVE>(sources, filter, &rules[block], block, mask);
            let out = &mut out[first..first + count];
            if let Some(full) = out.first_chunk_mut::<PAIRED>() {
                // SAFETY: 32 bytes are written to an array of 32.
                unsafe { _mm256_storeu_si256(full.as_mut_ptr().cast(), bytes) };
            } else {
                // SAFETY: the bytes in the mask are those of the slice; the others are not written.
                unsafe { _mm256_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
            }
        }
    });
}

/// The output values of 32 channels of one pixel.
///
/// Values of two taps are interleaved, so that one instruction multiplies both by their weights and
/// adds the products. That leaves channels 0-3, 8-11, 16-19, 24-27 in one register and the others in
/// the other, which the narrowing at the end puts back; weights and rules were stored in that order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn paired_block<const SIGNED: bool, const NOT_NEGATIVE: bool>(
    sources: &[&[u8]],
    filter: &PairedFilter,
    rules: &[Rules; 2],
    block: usize,
    mask: __mmask32,
) -> __m256i {
    let [low_rules, high_rules] = rules;
    let (mut low_sums, mut high_sums) = (low_rules.bias, high_rules.bias);
    let first = block * PAIRED;
    for (taps, weights) in sources.chunks_exact(2).zip(filter.block(block)) {
        let a = widen::<SIGNED>(taps[0], first, mask);
        let b = widen::<SIGNED>(taps[1], first, mask);
        let [low_weights, high_weights] = weights;
        // SAFETY: 64 bytes are read from an array of 32 numbers of 2 bytes.
        let low_weights = unsafe { _mm512_loadu_si512(low_weights.as_ptr().cast()) };
        // SAFETY: as above.
        let high_weights = unsafe { _mm512_loadu_si512(high_weights.as_ptr().cast()) };
        let low = _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), low_weights);
        let high = _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), high_weights);
        low_sums = _mm512_add_epi32(low_sums, low);
        high_sums = _mm512_add_epi32(high_sums, high);
    }
    let low_values = low_rules.apply::<NOT_NEGATIVE>(low_sums);
    let high_values = high_rules.apply::<NOT_NEGATIVE>(high_sums);
    // Saturates at 16 bits, beyond which everything is clamped anyway: bounds are below 2^9.
    let values = _mm512_packs_epi32(low_values, high_values);
    let bound = |bound: i32| _mm512_broadcastw_epi16(_mm_cvtsi32_si128(bound));
    let Channels { low, high, zero_point, .. } = filter.rules();
    let values = _mm512_min_epi16(_mm512_max_epi16(values, bound(low)), bound(high));
    _mm512_cvtepi16_epi8(_mm512_add_epi16(values, bound(zero_point)))
}

/// 32 bytes of a pixel from channel `first` on, with 16 bits each; bytes not in the mask are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen<const SIGNED: bool>(pixel: &[u8], first: usize, mask: __mmask32) -> __m512i {
    let pixel = &pixel[first..][..mask.count_ones() as usize];
    // SAFETY: the mask is a run of low bits; the bytes in it are those of the slice, and bytes that
    // are not in it are not read.
    let bytes = unsafe { _mm256_maskz_loadu_epi8(mask, pixel.as_ptr().cast()) };
    if SIGNED { _mm512_cvtepi8_epi16(bytes) } else { _mm512_cvtepu8_epi16(bytes) }
}

/// See [`super::depthwise_floats`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn depthwise_floats(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let channels = conv.output.channels;
    if conv.filter.height * conv.filter.width > MAX_TAPS {
        return crate::kernels::depthwise::floats(conv, input, filter, rows, out);
    }
    // For each tap on the image its input pixel and its weights.
    let mut list: [(&[f32], &[f32]); MAX_TAPS] = [(&[], &[]); MAX_TAPS];
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel(conv, rows, |taps| {
        let Some(out) = out.next() else { return };
        let mut count = 0;
        taps.for_each(|from, tap| {
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            list[count] = (&input[from..from + channels], weights);
            count += 1;
        });
        let taps = &list[..count];
        let mut first = 0;
        while first + WIDE * LANES <= channels {
            float_block::<WIDE>(taps, filter, first, !0, out);
            first += WIDE * LANES;
        }
        while first < channels {
            float_block::<1>(taps, filter, first, lanes(first, channels), out);
            first += LANES;
        }
    });
}

/// Registers of sums that hide how long a multiplication takes.
const WIDE: usize = 4;

/// Channels of one pixel from `first` on: `N` full registers, or one with the lanes of the mask.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn float_block<const N: usize>(
    taps: &[(&[f32], &[f32])],
    filter: FloatFilter<'_>,
    first: usize,
    mask: __mmask16,
    out: &mut [f32],
) {
    let mut sums = [_mm512_setzero_ps(); N];
    for (values, weights) in taps {
        for (part, sum) in sums.iter_mut().enumerate() {
            let at = first + part * LANES;
            *sum = _mm512_fmadd_ps(
                load_floats(values, at, mask),
                load_floats(weights, at, mask),
                *sum,
            );
        }
    }
    let (low, high) = (_mm512_set1_ps(filter.low), _mm512_set1_ps(filter.high));
    for (part, sum) in sums.iter().enumerate() {
        let at = first + part * LANES;
        let sum = _mm512_add_ps(*sum, load_floats(filter.bias, at, mask));
        // Operands in this order keep a NaN: the second one is the answer for it.
        let sum = _mm512_min_ps(high, _mm512_max_ps(low, sum));
        let out = &mut out[at..][..mask.count_ones() as usize];
        // SAFETY: the lanes in the mask are the elements of the slice; the others are not written.
        unsafe { _mm512_mask_storeu_ps(out.as_mut_ptr(), mask, sum) };
    }
}

/// 16 floats from `first` on; lanes not in `mask` are 0.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_floats(values: &[f32], first: usize, mask: __mmask16) -> __m512 {
    let values = &values[first..][..mask.count_ones() as usize];
    // SAFETY: masks here are runs of low bits ([`lanes`]); the lanes in the mask are the elements of
    // the slice, and lanes that are not in it are not read.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}
