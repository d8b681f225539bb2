//! Depthwise convolution by filters of 3 by 3 taps for AVX-512 with VNNI, a column of taps at a time.
//!
//! One instruction multiplies four bytes by four weights and adds the products up. Here the four are the three bytes
//! under a column of taps and one whose weight is 0. What lies under a column is put side by side once, and serves all
//! pixels whose filter has a column there. Columns beside the image and rows above and below it are of real 0.

use core::arch::x86_64::*;
use std::ops::Range;

use crate::OpError;
use crate::budget::Budget;
use crate::kernels::conv::Conv;
use crate::kernels::requantize::Requantize;
use crate::kernels::requantize::avx512::{
    ANY, Bounds, Ending, NOT_NEGATIVE, Rules, SMALL, largest_sum,
};
use crate::kernels::simd::avx512::{
    LANES, Lanes16, Lanes32, load_64_bytes, load_block, store_32_bytes,
};

/// Channels that are computed side by side: with more of them rules and weights do not stay in registers.
const BLOCK: usize = 32;

/// Rows, and columns, of taps.
const TAPS: usize = 3;

/// Registers of sums for a block.
const PARTS: usize = BLOCK / LANES;

/// The weights of a column of taps for the channels of a block: for each its three, and 0.
type Column = [[u8; 4 * LANES]; PARTS];

/// A filter whose weights, less their zero point, are bytes.
///
/// Within a block channels stand in the order that putting bytes of four registers side by side gives: see
/// [`ORDER`].
#[derive(Debug, Clone)]
pub(super) struct ColumnFilter {
    channels: usize,
    /// For each block its columns.
    weights: Vec<[Column; TAPS]>,
    /// For each block those of its registers.
    rules: Vec<[Rules; PARTS]>,
    ending: Ending,
    bounds: Bounds,
    /// What makes input values unsigned, and what real 0 is then.
    flip: u8,
    zero: u8,
}

/// Where each four channels of a block stand in the registers of its sums.
const ORDER: [usize; BLOCK / 4] = [0, 16, 4, 20, 8, 24, 12, 28];

/// The channels of each block in their order; `None` where there is no channel.
fn in_order(channels: usize) -> impl Iterator<Item = Option<usize>> {
    (0..channels.next_multiple_of(BLOCK)).map(move |at| {
        let channel = at / BLOCK * BLOCK + ORDER[at % BLOCK / 4] + at % 4;
        Some(channel).filter(|channel| *channel < channels)
    })
}

impl ColumnFilter {
    /// Packs weights less their zero point, channels side by side, in the order of taps; `zero` is the stored input
    /// value of real 0. `None` where there are not nine taps, weights are no bytes, or most of the last block would be
    /// empty.
    ///
    /// # Errors
    /// What the budget says.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn new(
        weights: &[i16],
        rules: &Requantize,
        (zero, is_signed): (i32, bool),
        budget: &Budget<'_>,
    ) -> Result<Option<Self>, OpError> {
        let channels = rules.bias.len();
        let filled_up = channels.next_multiple_of(BLOCK);
        let flip = if is_signed { 0x80 } else { 0 };
        let are_bytes = weights.iter().all(|weight| i8::try_from(*weight).is_ok());
        let is_filled = channels * 2 > filled_up;
        let (Ok(zero), true, true) = (u8::try_from(zero & 0xFF), are_bytes, is_filled) else {
            return Ok(None);
        };
        if channels == 0 || weights.len() != TAPS * TAPS * channels {
            return Ok(None);
        }
        let zero = zero ^ flip;
        let blocks = filled_up / BLOCK;
        budget.charge(blocks * (size_of::<[Column; TAPS]>() + size_of::<[Rules; PARTS]>()))?;
        budget.charge(Requantize::bytes(filled_up))?;
        let mut checkpoints = budget.stop().checkpoints();

        let mut packed = vec![[[[0; 4 * LANES]; PARTS]; TAPS]; blocks];
        let mut bias = Vec::with_capacity(filled_up);
        for (at, channel) in in_order(channels).enumerate() {
            checkpoints.after(TAPS * TAPS)?;
            let Some(channel) = channel else {
                bias.push(0);
                continue;
            };
            let mut sum = 0;
            for (tap, weights) in weights.chunks_exact(channels).enumerate() {
                let (row, column) = (tap / TAPS, tap % TAPS);
                let weight = weights[channel];
                sum += i32::from(weight);
                let part = &mut packed[at / BLOCK][column][at % BLOCK / LANES];
                part[at % LANES * 4 + row] = weight.to_le_bytes()[0];
            }
            // Every tap is read, so that the zero point's part is the same for all pixels.
            bias.push(rules.bias[channel].wrapping_sub(i32::from(zero) * sum));
        }
        let ordered = |numbers: &[i32]| {
            in_order(channels).map(|channel| channel.map_or(0, |at| numbers[at])).collect()
        };
        let ordered = Requantize {
            bias,
            multipliers: ordered(&rules.multipliers),
            left_shifts: ordered(&rules.left_shifts),
            right_shifts: ordered(&rules.right_shifts),
            ..*rules
        };
        let ordered = ordered.channels(0..filled_up);
        let ending = Rules::ending(ordered, 0..filled_up, largest_sum(TAPS * TAPS));
        let rules = (0..blocks).map(|block| {
            let mut parts = [Rules::zero(); PARTS];
            for (index, part) in parts.iter_mut().enumerate() {
                part.set(ending, ordered, block * BLOCK + index * LANES, Lanes16::ALL);
            }
            parts
        });
        Ok(Some(ColumnFilter {
            channels,
            weights: packed,
            rules: rules.collect(),
            ending,
            bounds: Bounds::new(ordered),
            flip,
            zero,
        }))
    }

    /// How many channels there are.
    pub(super) fn channels(&self) -> usize {
        self.channels
    }

    /// How many taps there are.
    pub(super) fn taps(&self) -> usize {
        TAPS * TAPS
    }

    /// Whether this is a convolution by such a filter, or by the part of it from channel `first` on.
    pub(super) fn fits(&self, conv: &Conv, first: usize) -> bool {
        let (filter, channels) = (&conv.filter, conv.input.channels);
        let end = first.saturating_add(channels);
        let are_blocks =
            first.is_multiple_of(BLOCK) && (end.is_multiple_of(BLOCK) || end == self.channels);
        (filter.height, filter.width, conv.horizontal.dilation) == (TAPS, TAPS, 1)
            && conv.input.is_nhwc()
            && conv.output.channels == channels
            && are_blocks
            && channels > 0
            && end <= self.channels
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        size_of_val(self.weights.as_slice()) + size_of_val(self.rules.as_slice())
    }
}

/// Rows `rows` of a convolution that the filter, from channel `first` on, [fits](ColumnFilter::fits).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn depthwise(
    conv: &Conv,
    input: &[u8],
    (filter, first): (&ColumnFilter, usize),
    rows: Range<usize>,
    out: &mut [u8],
) {
    let filter = (filter, first / BLOCK);
    match filter.0.ending {
        NOT_NEGATIVE => lines::<NOT_NEGATIVE>(conv, input, filter, rows, out),
        SMALL => lines::<SMALL>(conv, input, filter, rows, out),
        _ => lines::<ANY>(conv, input, filter, rows, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn lines<const ENDING: Ending>(
    conv: &Conv,
    input: &[u8],
    (filter, first_block): (&ColumnFilter, usize),
    rows: Range<usize>,
    out: &mut [u8],
) {
    let (channels, width) = (conv.input.channels, conv.output.width);
    for (row, out) in rows.zip(out.chunks_exact_mut(width * channels)) {
        let (batch, row) = (row / conv.output.height, row % conv.output.height);
        let mut under = [None; TAPS];
        for down in conv.vertical.taps(row, TAPS, conv.input.height) {
            let from = conv.input.at(batch, conv.vertical.position(row, down), 0);
            under[down] = Some(&input[from..from + conv.input.width * channels]);
        }
        let flip = _mm256_set1_epi8(filter.flip.cast_signed());
        let line = Line { conv, filter, first_block, under, flip };
        for block in 0..channels.div_ceil(BLOCK) {
            match conv.horizontal.stride {
                1 => line.block::<ENDING, 1>(block, out),
                2 => line.block::<ENDING, 2>(block, out),
                _ => line.block::<ENDING, TAPS>(block, out),
            }
        }
    }
}

/// What a line of output pixels is made of.
struct Line<'a> {
    conv: &'a Conv,
    filter: &'a ColumnFilter,
    /// The filter's block for the first channels here.
    first_block: usize,
    /// The lines of the input under each row of taps, `None` above and below the image.
    under: [Option<&'a [u8]>; TAPS],
    flip: __m256i,
}

impl Line<'_> {
    /// A block of channels of all pixels, of whose columns one has no more than `NEW` that the one before it has
    /// not.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn block<const ENDING: Ending, const NEW: usize>(&self, block: usize, out: &mut [u8]) {
        let Line { conv, filter, first_block, .. } = self;
        let (first, channels) = (block * BLOCK, conv.input.channels);
        let here = first..(first + BLOCK).min(channels);
        let block = first_block + block;
        let mut weights = [[_mm512_setzero_si512(); PARTS]; TAPS];
        for (weights, bytes) in weights.iter_mut().zip(&filter.weights[block]) {
            for (weights, bytes) in weights.iter_mut().zip(bytes) {
                *weights = load_64_bytes(bytes);
            }
        }
        let (rules, bounds) = (filter.rules[block], filter.bounds);
        // As the pixel before the first would leave them.
        let mut columns = [[_mm512_setzero_si512(); PARTS]; TAPS];
        for (tap, column) in columns.iter_mut().enumerate().skip(NEW) {
            *column = self.column((tap - NEW).checked_sub(conv.horizontal.pad), &here);
        }
        for (pixel, out) in out.chunks_exact_mut(channels).enumerate() {
            let begin = pixel * conv.horizontal.stride;
            for tap in 0..TAPS {
                columns[tap] = if tap + NEW < TAPS {
                    columns[tap + NEW]
                } else {
                    self.column((begin + tap).checked_sub(conv.horizontal.pad), &here)
                };
            }
            let mut values = [rules[0].bias, rules[1].bias];
            for (column, weights) in columns.iter().zip(&weights) {
                values[0] = _mm512_dpbusd_epi32(values[0], column[0], weights[0]);
                values[1] = _mm512_dpbusd_epi32(values[1], column[1], weights[1]);
            }
            let low = rules[0].apply::<ENDING>(values[0]);
            let high = rules[1].apply::<ENDING>(values[1]);
            let bytes = bounds.mixed(low, high);
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let bytes = _mm256_permutevar8x32_epi32(bytes, order);
            store_32_bytes(&mut out[here.clone()], Lanes32::first(here.len()), bytes);
        }
    }

    /// The bytes of a column of the image under the rows of taps, side by side for each channel; of real 0 beside
    /// it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn column(&self, column: Option<usize>, channels: &Range<usize>) -> [__m512i; PARTS] {
        let outside = _mm256_set1_epi8(self.filter.zero.cast_signed());
        let Some(column) = column.filter(|column| *column < self.conv.input.width) else {
            return [_mm512_broadcast_i64x4(outside); PARTS];
        };
        let at = column * self.conv.input.channels;
        let mut rows = [outside; TAPS];
        for (row, line) in rows.iter_mut().zip(&self.under) {
            if let Some(line) = line {
                let (_, bytes) = load_block(&line[at + channels.start..at + channels.end]);
                *row = _mm256_xor_si256(bytes, self.flip);
            }
        }
        let [a, b, c] = rows;
        // The weight of the fourth is 0.
        let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
        let (low_rest, high_rest) = (_mm256_unpacklo_epi8(c, c), _mm256_unpackhi_epi8(c, c));
        let both = |one, other| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(one), other);
        [
            both(_mm256_unpacklo_epi16(low, low_rest), _mm256_unpackhi_epi16(low, low_rest)),
            both(_mm256_unpacklo_epi16(high, high_rest), _mm256_unpackhi_epi16(high, high_rest)),
        ]
    }
}
