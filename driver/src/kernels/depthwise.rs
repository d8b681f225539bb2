//! Depthwise convolution of NHWC images with one output per input channel: each channel has its own
//! filter, so that channels are what is computed side by side.
//!
//! Taps that fall outside of the image are left out of the loops, or, where taps are taken two by
//! two, read from a row of zeros, so that nothing is padded or checked inside of the loops.

use std::ops::Range;

use crate::kernels::conv_geometry::{Conv, Images};
use crate::kernels::requantize::{Channels, Requantize};

/// Taps of one output pixel that fall onto the image: for rows of taps, and taps of each row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taps<'a> {
    conv: &'a Conv,
    batch: usize,
    row: usize,
    column: usize,
    down: (usize, usize),
    right: (usize, usize),
}

impl Taps<'_> {
    /// Calls `visit` for each tap with the index of the first input value and that of the tap.
    #[inline(always)]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize, usize)) {
        let Conv { input, filter, vertical, horizontal, .. } = self.conv;
        let step = horizontal.dilation * input.column_step;
        for down in self.down.0..self.down.1 {
            let y = vertical.position(self.row, down);
            let x = horizontal.position(self.column, self.right.0);
            let mut from = input.at(self.batch, y, x);
            for right in self.right.0..self.right.1 {
                visit(from, down * filter.width + right);
                from += step;
            }
        }
    }
}

/// Visits the pixels of output rows `rows`, counted over all images.
#[inline(always)]
pub(crate) fn for_each_pixel(conv: &Conv, rows: Range<usize>, mut visit: impl FnMut(Taps<'_>)) {
    let Images { height, width, .. } = conv.output;
    let bounds = |range: Range<usize>| (range.start, range.end);
    for line in rows {
        let (batch, row) = (line / height, line % height);
        let down = conv.vertical.taps(row, conv.filter.height, conv.input.height);
        let down = if down.is_empty() { (0, 0) } else { bounds(down) };
        for column in 0..width {
            let right = conv.horizontal.taps(column, conv.filter.width, conv.input.width);
            // With no taps across there are none at all, and no position to compute.
            let (down, right) =
                if right.is_empty() { ((0, 0), (0, 0)) } else { (down, bounds(right)) };
            visit(Taps { conv, batch, row, column, down, right });
        }
    }
}

/// Quantized weights and what they are multiplied with.
#[derive(Debug, Clone, Copy)]
pub struct ByteFilter<'a> {
    /// Weights less their zero point, channels side by side, in the order of taps.
    pub weights: &'a [i16],
    /// What is XORed into an input byte to make it unsigned.
    pub flip: u8,
    /// The unsigned input value that stands for real 0.
    pub zero: i32,
}

/// Rows `rows` of the output of a depthwise convolution of quantized values. All slices must fit
/// `conv`; `out` begins with the first of the rows, `sums` holds a number per channel.
#[inline(always)]
pub(crate) fn bytes(
    conv: &Conv,
    input: &[u8],
    filter: ByteFilter<'_>,
    rules: Channels<'_>,
    rows: Range<usize>,
    sums: &mut [i32],
    out: &mut [u8],
) {
    let channels = conv.output.channels;
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel(conv, rows, |taps| {
        let Some(out) = out.next() else { return };
        sums.fill(0);
        taps.for_each(|from, tap| {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
                let value = i32::from(value ^ filter.flip) - filter.zero;
                *sum = sum.wrapping_add(value * i32::from(*weight));
            }
        });
        rules.row(sums, 0, out);
    });
}

/// Weights and biases of 32-bit floats, and the range that the activation leaves.
#[derive(Debug, Clone, Copy)]
pub struct FloatFilter<'a> {
    /// Weights, channels side by side, in the order of taps.
    pub weights: &'a [f32],
    /// One bias per channel.
    pub bias: &'a [f32],
    /// Smallest result.
    pub low: f32,
    /// Largest result.
    pub high: f32,
}

/// As [`bytes`], of floats; sums are taken in the output.
#[inline(always)]
pub(crate) fn floats(
    conv: &Conv,
    input: &[f32],
    filter: FloatFilter<'_>,
    rows: Range<usize>,
    out: &mut [f32],
) {
    let channels = conv.output.channels;
    let mut out = out.chunks_exact_mut(channels);
    for_each_pixel(conv, rows, |taps| {
        let Some(out) = out.next() else { return };
        out.fill(0.0);
        taps.for_each(|from, tap| {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            for ((sum, value), weight) in out.iter_mut().zip(values).zip(weights) {
                *sum += value * weight;
            }
        });
        for (out, bias) in out.iter_mut().zip(filter.bias) {
            let sum = *out + bias;
            let sum = if sum < filter.low { filter.low } else { sum };
            *out = if sum > filter.high { filter.high } else { sum };
        }
    });
}

/// Most taps that kernels with a list of taps take: those of a filter of 8 by 8.
pub(crate) const MAX_TAPS: usize = 64;

/// The weights of two taps for 16 channels: for each channel the two side by side.
pub(crate) type WeightPairs = [[i16; 2]; 16];

/// A quantized filter for kernels that take two taps and [`PairedFilter::BLOCK`] channels at a time:
/// weights, rules and a row of zeros in blocks of channels, the last one filled up.
///
/// Within a block channels stand in the order that interleaving 16-bit values of 512-bit registers
/// gives: runs of 4, first the even runs, then the odd ones.
#[derive(Debug, Clone)]
pub struct PairedFilter {
    channels: usize,
    taps: usize,
    /// For each block and pair of taps the weights of the two halves of its channels.
    weights: Vec<[WeightPairs; 2]>,
    rules: Requantize,
    is_signed: bool,
    /// A pixel of real 0, as stored.
    zeros: Vec<u8>,
}

impl PairedFilter {
    /// Channels of a block.
    pub const BLOCK: usize = 32;

    /// `weights` are less their zero point, channels side by side, in the order of taps; `zero` is
    /// the stored input value of real 0. `None` where there are too many taps.
    #[must_use]
    pub fn new(weights: &[i16], rules: &Requantize, zero: i32, is_signed: bool) -> Option<Self> {
        let channels = rules.bias.len();
        let taps = weights.len() / channels.max(1);
        if channels == 0 || taps > MAX_TAPS || weights.len() != taps * channels {
            return None;
        }
        let weight = |tap: usize, channel: usize| {
            let inside = tap < taps && channel < channels;
            if inside { weights[tap * channels + channel] } else { 0 }
        };
        let blocks = channels.div_ceil(Self::BLOCK);
        let mut pairs = Vec::with_capacity(blocks * taps.div_ceil(2));
        for block in 0..blocks {
            for tap in (0..taps).step_by(2) {
                pairs.push([0, 1].map(|half| {
                    std::array::from_fn(|lane| {
                        let channel = block * Self::BLOCK + place(half * 16 + lane);
                        [weight(tap, channel), weight(tap + 1, channel)]
                    })
                }));
            }
        }
        // Every tap is read, zeros where it lies outside, so that the zero point's part is the same
        // for all pixels.
        let bias = |channel: usize| {
            let sum: i32 = (0..taps).map(|tap| i32::from(weight(tap, channel))).sum();
            rules.bias[channel].wrapping_sub(zero.wrapping_mul(sum))
        };
        let stored = u8::try_from(zero & 0xFF).ok()?;
        Some(PairedFilter {
            channels,
            taps,
            weights: pairs,
            rules: Requantize {
                bias: in_places(channels, bias),
                multipliers: in_places(channels, |channel| rules.multipliers[channel]),
                left_shifts: in_places(channels, |channel| rules.left_shifts[channel]),
                right_shifts: in_places(channels, |channel| rules.right_shifts[channel]),
                zero_point: rules.zero_point,
                low: rules.low,
                high: rules.high,
            },
            is_signed,
            zeros: vec![stored; channels],
        })
    }

    /// How many channels there are.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// How many taps there are.
    #[must_use]
    pub fn taps(&self) -> usize {
        self.taps
    }

    /// Whether input values are signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The weights of a block, for each two taps.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> &[[WeightPairs; 2]] {
        let pairs = self.taps.div_ceil(2);
        &self.weights[block * pairs..(block + 1) * pairs]
    }

    /// The rules, in the order of places.
    #[inline(always)]
    pub(crate) fn rules(&self) -> Channels<'_> {
        self.rules.channels(0..self.rules.bias.len())
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.weights.as_slice()) + self.rules.held_bytes() + self.zeros.len()
    }
}

/// The channel of a block that stands in this place.
fn place(place: usize) -> usize {
    let (half, lane) = (place / 16, place % 16);
    lane / 4 * 8 + half * 4 + lane % 4
}

/// One number per channel, in the order of places, 0 for channels that fill up the last block.
fn in_places(channels: usize, number: impl Fn(usize) -> i32) -> Vec<i32> {
    (0..channels.next_multiple_of(PairedFilter::BLOCK))
        .map(|index| {
            let block = index / PairedFilter::BLOCK * PairedFilter::BLOCK;
            let channel = block + place(index % PairedFilter::BLOCK);
            if channel < channels { number(channel) } else { 0 }
        })
        .collect()
}

/// Visits the pixels of output rows `rows`: for each tap the input pixel it falls onto, or a pixel
/// of zeros; an even number of them.
#[inline(always)]
pub(crate) fn for_each_pixel_of_pairs(
    conv: &Conv,
    input: &[u8],
    filter: &PairedFilter,
    rows: Range<usize>,
    mut visit: impl FnMut(&[&[u8]]),
) {
    let channels = filter.channels;
    let zeros = filter.zeros.as_slice();
    let mut sources = [zeros; MAX_TAPS];
    let sources = &mut sources[..filter.taps.next_multiple_of(2)];
    let (height, width) = (conv.filter.height, conv.filter.width);
    for_each_pixel(conv, rows, |taps| {
        let all = taps.down == (0, height) && taps.right == (0, width);
        if !all {
            sources.fill(zeros);
        }
        taps.for_each(|from, tap| {
            sources[tap] = &input[from..from + channels];
        });
        visit(sources);
    });
}
