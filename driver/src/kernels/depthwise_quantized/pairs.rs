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

// Iterators rather than functions that take closures: a closure is compiled for the instructions of
// the function it stands in, and the bodies here stand in portable ones that are to be compiled for
// whatever their caller is.

impl Taps<'_> {
    /// For each tap the index of the first input value under it, and its number.
    #[inline(always)]
    pub(crate) fn iter(&self) -> TapIter {
        let Conv { input, filter, vertical, horizontal, .. } = self.conv;
        let is_empty = self.down.0 == self.down.1 || self.right.0 == self.right.1;
        let (mut from, mut lines) = (0, 0);
        if !is_empty {
            let y = vertical.position(self.row, self.down.0);
            let x = horizontal.position(self.column, self.right.0);
            from = input.at(self.batch, y, x);
            lines = self.down.1 - self.down.0;
        }
        let first = (from, self.down.0 * filter.width + self.right.0);
        TapIter {
            next: first,
            line: first,
            steps: [vertical.dilation * input.row_step, filter.width],
            step: horizontal.dilation * input.column_step,
            lines,
            width: self.right.1 - self.right.0,
            left: self.right.1 - self.right.0,
        }
    }
}

/// See [`Taps::iter`].
#[derive(Debug)]
pub(crate) struct TapIter {
    next: (usize, usize),
    line: (usize, usize),
    /// From a row of taps to the next: input values, taps.
    steps: [usize; 2],
    /// From a tap to the next: input values.
    step: usize,
    /// Rows not finished.
    lines: usize,
    /// Taps of a row.
    width: usize,
    /// Taps left of this row.
    left: usize,
}

impl Iterator for TapIter {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.lines == 0 {
            return None;
        }
        let item = self.next;
        self.left -= 1;
        if self.left > 0 {
            self.next = (item.0 + self.step, item.1 + 1);
        } else {
            self.lines -= 1;
            self.left = self.width;
            self.line = (self.line.0 + self.steps[0], self.line.1 + self.steps[1]);
            self.next = self.line;
        }
        Some(item)
    }
}

/// The pixels of output rows `rows`, counted over all images.
#[inline(always)]
pub(crate) fn pixels(conv: &Conv, rows: Range<usize>) -> Pixels<'_> {
    Pixels { conv, rows, batch: 0, row: 0, down: (0, 0), column: conv.output.width }
}

/// See [`pixels`].
#[derive(Debug)]
pub(crate) struct Pixels<'a> {
    conv: &'a Conv,
    /// Rows not begun.
    rows: Range<usize>,
    batch: usize,
    row: usize,
    down: (usize, usize),
    column: usize,
}

impl<'a> Iterator for Pixels<'a> {
    type Item = Taps<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Taps<'a>> {
        let conv = self.conv;
        if self.column == conv.output.width {
            let Images { height, .. } = conv.output;
            let line = self.rows.next()?;
            (self.batch, self.row) = (line / height, line % height);
            let down = conv.vertical.taps(self.row, conv.filter.height, conv.input.height);
            self.down = (down.start, down.end);
            self.column = 0;
        }
        let column = self.column;
        self.column += 1;
        let right = conv.horizontal.taps(column, conv.filter.width, conv.input.width);
        let right = (right.start, right.end);
        Some(Taps { conv, batch: self.batch, row: self.row, column, down: self.down, right })
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
    for (taps, out) in pixels(conv, rows).zip(out.chunks_exact_mut(channels)) {
        sums.fill(0);
        for (from, tap) in taps.iter() {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            add_bytes(sums, values, weights, filter.flip, filter.zero);
        }
        rules.row(sums, 0, out);
    }
}

/// Adds the products of one tap. A function of its own, so that the compiler knows that the sums
/// are apart from everything else.
#[inline(always)]
fn add_bytes(sums: &mut [i32], values: &[u8], weights: &[i16], flip: u8, zero: i32) {
    let len = sums.len();
    let (values, weights) = (&values[..len], &weights[..len]);
    for channel in 0..len {
        let value = i32::from(values[channel] ^ flip) - zero;
        sums[channel] = sums[channel].wrapping_add(value * i32::from(weights[channel]));
    }
}

/// As [`add_bytes`], of floats.
#[inline(always)]
fn add_floats(sums: &mut [f32], values: &[f32], weights: &[f32]) {
    for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
        *sum += value * weight;
    }
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
    for (taps, out) in pixels(conv, rows).zip(out.chunks_exact_mut(channels)) {
        out.fill(0.0);
        for (from, tap) in taps.iter() {
            let values = &input[from..from + channels];
            let weights = &filter.weights[tap * channels..(tap + 1) * channels];
            add_floats(out, values, weights);
        }
        for (out, bias) in out.iter_mut().zip(filter.bias) {
            let sum = *out + bias;
            let sum = if sum < filter.low { filter.low } else { sum };
            *out = if sum > filter.high { filter.high } else { sum };
        }
    }
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

/// Room for the input pixels under the taps of one output pixel.
pub(crate) struct Sources<'a> {
    list: [&'a [u8]; MAX_TAPS],
    zeros: &'a [u8],
    taps: usize,
}

impl<'a> Sources<'a> {
    /// Room for this filter.
    pub(crate) fn new(filter: &'a PairedFilter) -> Self {
        let zeros = filter.zeros.as_slice();
        Sources { list: [zeros; MAX_TAPS], zeros, taps: filter.taps }
    }

    /// For each tap the input pixel it falls onto, or a pixel of zeros; an even number of them.
    #[inline(always)]
    pub(crate) fn under(&mut self, taps: Taps<'_>, input: &'a [u8]) -> &[&'a [u8]] {
        let channels = self.zeros.len();
        let (height, width) = (taps.conv.filter.height, taps.conv.filter.width);
        let is_partial = taps.down != (0, height) || taps.right != (0, width);
        let list = &mut self.list[..self.taps.next_multiple_of(2)];
        if is_partial {
            list.fill(self.zeros);
        }
        for (from, tap) in taps.iter() {
            list[tap] = &input[from..from + channels];
        }
        list
    }
}
