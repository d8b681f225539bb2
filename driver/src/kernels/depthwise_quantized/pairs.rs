//! The form of a quantized filter for kernels that take its taps two at a time.

use crate::OpError;
use crate::budget::Budget;
use crate::kernels::conv::{Conv, Taps};
use crate::kernels::requantize::{Channels, Requantize};

/// Most taps that such a filter has: those of a filter of 8 by 8.
pub(crate) const MAX_TAPS: usize = 64;

/// The weights of two taps for 16 channels: for each channel the two side by side.
pub(crate) type WeightPairs = [[i16; 2]; 16];

/// A quantized filter for kernels that take two taps and [`PairedFilter::BLOCK`] channels at a time:
/// weights, rules and a row of zeros in blocks of channels, the last one filled up.
///
/// Within a block channels stand in the order that interleaving 16-bit values of 512-bit registers
/// gives: runs of 4, first the even runs, then the odd ones.
#[derive(Debug, Clone)]
pub(crate) struct PairedFilter {
    channels: usize,
    taps: usize,
    /// For each block and pair of taps the weights of the two halves of its channels.
    weights: Vec<[WeightPairs; 2]>,
    rules: Requantize,
    is_signed: bool,
    /// A pixel of real 0, as stored, filled up as blocks are.
    zeros: Vec<u8>,
}

impl PairedFilter {
    /// Channels of a block.
    pub(crate) const BLOCK: usize = 32;

    /// `weights` are less their zero point, channels side by side, in the order of taps; `zero` is
    /// the stored input value of real 0. `None` where there are too many taps.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn new(
        weights: &[i16],
        rules: &Requantize,
        zero: i32,
        is_signed: bool,
        budget: &Budget<'_>,
    ) -> Result<Option<Self>, OpError> {
        let channels = rules.bias.len();
        let taps = weights.len() / channels.max(1);
        let stored = u8::try_from(zero & 0xFF);
        let (Ok(stored), true) =
            (stored, channels > 0 && taps <= MAX_TAPS && weights.len() == taps * channels)
        else {
            return Ok(None);
        };
        let blocks = channels.div_ceil(Self::BLOCK);
        let len = blocks * taps.div_ceil(2);
        let filled_up = blocks * Self::BLOCK;
        budget.charge(len * size_of::<[WeightPairs; 2]>())?;
        budget.charge(Requantize::bytes(filled_up) + filled_up)?;
        let mut checkpoints = budget.stop().checkpoints();
        let mut pairs = Vec::with_capacity(len);
        // Every tap is read, zeros where it lies outside, so that the zero point's part is the same
        // for all pixels.
        budget.charge(size_of_val(rules.bias.as_slice()))?;
        let mut bias = rules.bias.clone();
        for (block, bias) in bias.chunks_mut(Self::BLOCK).enumerate() {
            checkpoints.after(Self::BLOCK * taps)?;
            // The weights of a tap for the channels of the block, those that are missing 0.
            let row = |tap: usize| {
                let mut row = [0; Self::BLOCK];
                if tap < taps {
                    let first = tap * channels + block * Self::BLOCK;
                    row[..bias.len()].copy_from_slice(&weights[first..][..bias.len()]);
                }
                row
            };
            let mut sums = [0i32; Self::BLOCK];
            for tap in (0..taps).step_by(2) {
                let rows = [row(tap), row(tap + 1)];
                for (sum, (first, second)) in sums.iter_mut().zip(rows[0].iter().zip(&rows[1])) {
                    *sum += i32::from(*first) + i32::from(*second);
                }
                pairs.push(interleaved_pairs(&rows));
            }
            for (bias, sum) in bias.iter_mut().zip(sums) {
                *bias = bias.wrapping_sub(zero.wrapping_mul(sum));
            }
        }
        Ok(Some(PairedFilter {
            channels,
            taps,
            weights: pairs,
            rules: Requantize {
                bias: interleave(&bias),
                multipliers: interleave(&rules.multipliers),
                left_shifts: interleave(&rules.left_shifts),
                right_shifts: interleave(&rules.right_shifts),
                zero_point: rules.zero_point,
                low: rules.low,
                high: rules.high,
                rounding: rules.rounding,
            },
            is_signed,
            zeros: vec![stored; filled_up],
        }))
    }

    /// How many channels there are.
    #[must_use]
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// How many taps there are.
    #[must_use]
    pub(crate) fn taps(&self) -> usize {
        self.taps
    }

    /// Whether input values are signed.
    #[must_use]
    pub(crate) fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The weights of a block, for each two taps.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> &[[WeightPairs; 2]] {
        let pairs = self.taps.div_ceil(2);
        &self.weights[block * pairs..(block + 1) * pairs]
    }

    /// The rules, in interleaved order.
    #[inline(always)]
    pub(crate) fn rules(&self) -> Channels<'_> {
        self.rules.channels(0..self.rules.bias.len())
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.weights.as_slice()) + self.rules.held_bytes() + self.zeros.len()
    }
}

/// The rules of a filter as the registers of an instruction set hold them.
pub(super) trait RegisterRules {
    /// Bytes held.
    fn held_bytes(&self) -> usize;
}

/// A filter with its rules, for one pixel at a time, and where there is one, for several neighbours as if their
/// channels were those of one pixel, with their number.
#[derive(Debug, Clone)]
pub(super) struct Packed<R> {
    pub(super) single: (PairedFilter, R),
    pub(super) wide: Option<(PairedFilter, R, usize)>,
}

impl<R: RegisterRules> Packed<R> {
    /// With what `rules` makes of each filter.
    pub(super) fn new(
        single: PairedFilter,
        wide: Option<(PairedFilter, usize)>,
        rules: impl Fn(&PairedFilter) -> R,
    ) -> Self {
        let with_rules = |filter: PairedFilter| {
            let rules = rules(&filter);
            (filter, rules)
        };
        let wide = wide.map(|(filter, pixels)| {
            let (filter, rules) = with_rules(filter);
            (filter, rules, pixels)
        });
        Packed { single: with_rules(single), wide }
    }

    /// Bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        let held = |filter: &PairedFilter, rules: &R| filter.held_bytes() + rules.held_bytes();
        let wide = self.wide.as_ref().map_or(0, |(filter, rules, _)| held(filter, rules));
        held(&self.single.0, &self.single.1) + wide
    }
}

/// Pixels side by side that fill blocks better than one does whose channels leave much of its last block
/// empty: the fewest with which no more than an eighth of all lanes is; 1 where there are none.
pub(crate) fn neighbours(channels: usize) -> usize {
    /// Beyond, weights that are there several times take more of the cache than whole blocks are worth.
    const MOST: usize = 8;
    let is_full = |pixels: &usize| {
        let (used, len) =
            (channels * pixels, (channels * pixels).next_multiple_of(PairedFilter::BLOCK));
        (len - used) * 8 <= len
    };
    (1..=MOST).find(is_full).unwrap_or(1)
}

/// The same numbers `times` times.
fn repeated<T: Copy>(numbers: &[T], times: usize) -> Vec<T> {
    numbers.iter().copied().cycle().take(numbers.len() * times).collect()
}

/// Weights and rules of `pixels` neighbours as if their channels were those of one pixel.
///
/// # Errors
/// What the budget says.
pub(crate) fn widened(
    weights: &[i16],
    rules: &Requantize,
    pixels: usize,
    budget: &Budget<'_>,
) -> Result<(Vec<i16>, Requantize), OpError> {
    let channels = rules.bias.len();
    budget.charge(size_of_val(weights) * pixels + Requantize::bytes(channels * pixels))?;
    let taps = weights.chunks_exact(channels.max(1));
    let wide = Requantize {
        bias: repeated(&rules.bias, pixels),
        multipliers: repeated(&rules.multipliers, pixels),
        left_shifts: repeated(&rules.left_shifts, pixels),
        right_shifts: repeated(&rules.right_shifts, pixels),
        ..*rules
    };
    Ok((taps.flat_map(|tap| repeated(tap, pixels)).collect(), wide))
}

/// What lies under a tap of a line of output pixels, from the first one on, and how far apart the pixels are.
pub(super) type Tap<'a> = (&'a [u8], usize);

/// Room for what lies under each tap of a line of output pixels.
pub(crate) struct TapLine<'a> {
    list: [Tap<'a>; MAX_TAPS],
    zeros: &'a [u8],
    taps: usize,
}

impl<'a> TapLine<'a> {
    /// Room for this filter.
    pub(crate) fn new(filter: &'a PairedFilter) -> Self {
        let zeros = filter.zeros.as_slice();
        TapLine { list: [(zeros, 0); MAX_TAPS], zeros, taps: filter.taps }
    }

    /// The taps over `count` times `pixels` pixels of output row `row` from `first` on, none of which reaches over
    /// the left or right edge, or over a single one, which may. An even number of taps; those that fall beside the image
    /// stay on a row of zeros.
    pub(crate) fn under(
        &mut self,
        conv: &Conv,
        input: &'a [u8],
        (row, pixels): (usize, usize),
        (first, count): (usize, usize),
    ) -> &[Tap<'a>] {
        let list = &mut self.list[..self.taps.next_multiple_of(2)];
        let (batch, row) = (row / conv.output.height, row % conv.output.height);
        let down = conv.vertical.taps(row, conv.filter.height, conv.input.height);
        let right = conv.horizontal.taps(first, conv.filter.width, conv.input.width);
        if down.len() * right.len() < self.taps {
            list.fill((self.zeros, 0));
        }
        // From one single pixel there is no step.
        let step =
            if count == 1 { 0 } else { pixels * conv.horizontal.stride * conv.input.column_step };
        for down in down {
            let y = conv.vertical.position(row, down);
            for right in right.clone() {
                let x = conv.horizontal.position(first, right);
                let values = &input[conv.input.at(batch, y, x)..];
                list[down * conv.filter.width + right] = (values, step);
            }
        }
        // Where one more makes them even, its weights are 0: whatever it reads, one step for all is faster.
        if let Some(last) = self.taps.checked_sub(1) {
            list[self.taps.next_multiple_of(2) - 1] = list[last];
        }
        list
    }
}

/// Channels that stay side by side in interleaved order.
const RUN: usize = 4;

/// The weights of two taps for the channels of a block, in interleaved order.
fn interleaved_pairs([first, second]: &[[i16; PairedFilter::BLOCK]; 2]) -> [WeightPairs; 2] {
    let mut pairs = [[[0; 2]; 16]; 2];
    let runs = first.as_chunks::<RUN>().0.iter().zip(second.as_chunks::<RUN>().0);
    for (run, (first, second)) in runs.enumerate() {
        let lanes = &mut pairs[run % 2].as_chunks_mut::<RUN>().0[run / 2];
        for (pair, (first, second)) in lanes.iter_mut().zip(first.iter().zip(second)) {
            *pair = [*first, *second];
        }
    }
    pairs
}

/// These numbers, one for each channel, in interleaved order, with 0 for channels that fill up the last block.
fn interleave(numbers: &[i32]) -> Vec<i32> {
    let mut all = Vec::with_capacity(numbers.len().next_multiple_of(PairedFilter::BLOCK));
    for numbers in numbers.chunks(PairedFilter::BLOCK) {
        let mut block = [0; PairedFilter::BLOCK];
        block[..numbers.len()].copy_from_slice(numbers);
        let runs = block.as_chunks::<RUN>().0;
        for half in 0..2 {
            all.extend(runs.iter().skip(half).step_by(2).flatten());
        }
    }
    all
}

/// Room for the input pixels under the taps of one output pixel.
pub(crate) struct Sources<'a> {
    list: [&'a [u8]; MAX_TAPS],
    zeros: &'a [u8],
    channels: usize,
    taps: usize,
}

impl<'a> Sources<'a> {
    /// Room for this filter.
    pub(crate) fn new(filter: &'a PairedFilter) -> Self {
        let zeros = filter.zeros.as_slice();
        let PairedFilter { channels, taps, .. } = *filter;
        Sources { list: [zeros; MAX_TAPS], zeros, channels, taps }
    }

    /// For each tap the input pixel it falls onto, or a pixel of zeros; an even number of them.
    #[inline(always)]
    pub(crate) fn under(&mut self, taps: Taps<'_>, input: &'a [u8]) -> &[&'a [u8]] {
        let channels = self.channels;
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
