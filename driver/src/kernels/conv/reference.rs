//! Convolutions as their definition says: plain loops, every type, every layout. What fast kernels
//! are compared with, and what runs where no fast kernel fits.

use std::ops::Range;

use super::geometry::{Axis, Conv, Images};
use crate::OpError;
use crate::stop::{Checkpoints, STEPS_PER_CHECK, Stop};

/// What a convolution reads. Slices must fit ([`Conv::fits`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operands<'a, I, F> {
    /// The convolution.
    pub(crate) conv: &'a Conv,
    /// The images.
    pub(crate) input: &'a [I],
    /// The weights.
    pub(crate) filter: &'a [F],
    /// When to give up.
    pub(crate) stop: Stop<'a>,
}

/// How sums are made, and outputs of sums.
///
/// `step` adds the product of an input value and a weight to a sum that begins with `zero`;
/// `finish` makes an output value from the sum and the number of its channel. Input outside of the
/// image counts as real 0: it adds nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<A, Step, Finish> {
    /// What a sum begins with.
    pub(crate) zero: A,
    /// Adds a product.
    pub(crate) step: Step,
    /// Makes the output.
    pub(crate) finish: Finish,
}

/// Convolution with groups; with as many groups as input channels it is depthwise. Computes the
/// outputs from number `first` on, counted as they lie in memory, as many as `output` has room for.
///
/// # Errors
/// Those of the operands' [`Stop`].
pub(crate) fn convolve<I: Copy, F: Copy, A: Copy, O>(
    operands: Operands<'_, I, F>,
    rule: &Rule<A, impl Fn(A, I, F) -> A, impl Fn(A, usize) -> O>,
    first: usize,
    output: &mut [O],
) -> Result<(), OpError> {
    let Conv { input, filter, output: out, vertical, horizontal, groups } = operands.conv;
    let outputs_per_group = filter.outputs / groups;
    let mut sums = Sums::new(operands, &rule.step);
    for (value, place) in output.iter_mut().zip(Places::new(out, first)) {
        let Place { batch, row, column, channel } = place;
        let first_input = channel / outputs_per_group * filter.depth * input.channel_step;
        let first_weight = channel * filter.output_step;
        let mut sum = rule.zero;
        for down in vertical.taps(row, filter.height, input.height) {
            let y = vertical.position(row, down);
            for right in horizontal.taps(column, filter.width, input.width) {
                let x = horizontal.position(column, right);
                let from = input.at(batch, y, x) + first_input;
                let weight = first_weight + down * filter.row_step + right * filter.column_step;
                sum = sums.add(sum, from, weight)?;
            }
        }
        *value = (rule.finish)(sum, channel);
    }
    Ok(())
}

/// Transposed convolution: every input pixel adds its value times the filter to the outputs that a
/// convolution of the same stride and padding would compute it from.
///
/// Written from the output's side, so that no sums have to be kept; taps run backwards, so that
/// sums are taken in the order of the input's pixels. As [`convolve`] otherwise; one group, no
/// dilation.
///
/// # Errors
/// As [`convolve`].
pub(crate) fn convolve_transposed<I: Copy, F: Copy, A: Copy, O>(
    operands: Operands<'_, I, F>,
    rule: &Rule<A, impl Fn(A, I, F) -> A, impl Fn(A, usize) -> O>,
    first: usize,
    output: &mut [O],
) -> Result<(), OpError> {
    let Conv { input, filter, output: out, vertical, horizontal, .. } = operands.conv;
    let mut sums = Sums::new(operands, &rule.step);
    for (value, place) in output.iter_mut().zip(Places::new(out, first)) {
        let Place { batch, row, column, channel } = place;
        let first_weight = channel * filter.output_step;
        let mut sum = rule.zero;
        for down in (0..filter.height).rev() {
            sums.pass_over(filter.width)?;
            let Some(y) = source(*vertical, row, down, input.height) else { continue };
            for right in (0..filter.width).rev() {
                let Some(x) = source(*horizontal, column, right, input.width) else { continue };
                let from = input.at(batch, y, x);
                let weight = first_weight + down * filter.row_step + right * filter.column_step;
                sum = sums.add(sum, from, weight)?;
            }
        }
        *value = (rule.finish)(sum, channel);
    }
    Ok(())
}

/// The input element that adds to output `out` through `tap`, if there is one.
fn source(axis: Axis, out: usize, tap: usize, size: usize) -> Option<usize> {
    let distance = (out + axis.pad).checked_sub(tap)?;
    let index = distance / axis.stride;
    (distance.is_multiple_of(axis.stride) && index < size).then_some(index)
}

/// Adds up products over the depth of a tap.
struct Sums<'a, 's, I, F, Step> {
    operands: Operands<'a, I, F>,
    step: &'s Step,
    /// Where one output takes so long that looking between tiles is not enough.
    checkpoints: Option<Checkpoints<'a>>,
}

impl<'a, 's, I: Copy, F: Copy, Step> Sums<'a, 's, I, F, Step> {
    fn new(operands: Operands<'a, I, F>, step: &'s Step) -> Self {
        let is_long = operands.conv.depth() > STEPS_PER_CHECK;
        let checkpoints = is_long.then(|| operands.stop.checkpoints());
        Sums { operands, step, checkpoints }
    }

    /// Counts taps that are looked at, whether or not they fall onto the image.
    #[inline(always)]
    fn pass_over(&mut self, taps: usize) -> Result<(), OpError> {
        self.checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.after(taps))
    }

    /// Adds the products of one tap, whose first input value and weight have these indexes.
    #[inline(always)]
    fn add<A: Copy>(&mut self, sum: A, from: usize, weight: usize) -> Result<A, OpError>
    where
        Step: Fn(A, I, F) -> A,
    {
        let depth = self.operands.conv.filter.depth;
        if self.checkpoints.is_none() {
            return Ok(self.products(sum, from, weight, 0..depth));
        }
        let mut sum = sum;
        for first in (0..depth).step_by(STEPS_PER_CHECK) {
            let part = first..depth.min(first + STEPS_PER_CHECK);
            self.pass_over(part.len())?;
            sum = self.products(sum, from, weight, part);
        }
        Ok(sum)
    }

    #[inline(always)]
    fn products<A: Copy>(&self, mut sum: A, from: usize, weight: usize, part: Range<usize>) -> A
    where
        Step: Fn(A, I, F) -> A,
    {
        let Operands { conv, input, filter, .. } = self.operands;
        for depth in part {
            sum = (self.step)(
                sum,
                input[from + depth * conv.input.channel_step],
                filter[weight + depth * conv.filter.depth_step],
            );
        }
        sum
    }
}

/// Where an output value belongs.
#[derive(Debug, Clone, Copy)]
struct Place {
    batch: usize,
    row: usize,
    column: usize,
    channel: usize,
}

/// The places of values in the order in which they lie in memory.
struct Places {
    /// Sizes from the outermost axis to the innermost, and the position of the next value.
    sizes: [usize; 4],
    next: [usize; 4],
    is_planar: bool,
}

impl Places {
    /// From value number `first` on.
    fn new(images: &Images, first: usize) -> Self {
        let Images { batches, height, width, channels, .. } = *images;
        // Channels side by side, or one plane after the other: one after the other also where a plane is
        // one pixel.
        let is_planar = images.channel_step != 1;
        let sizes = if is_planar {
            [batches, channels, height, width]
        } else {
            [batches, height, width, channels]
        };
        let mut rest = first;
        let mut next = [0; 4];
        for (next, size) in next.iter_mut().zip(sizes).rev() {
            (rest, *next) = (rest / size.max(1), rest % size.max(1));
        }
        Places { sizes, next, is_planar }
    }
}

impl Iterator for Places {
    type Item = Place;

    /// Never ends: whoever asks knows how many values there are.
    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        let [batch, a, b, c] = self.next;
        self.next[3] += 1;
        for axis in (1..4).rev() {
            if self.next[axis] < self.sizes[axis] {
                break;
            }
            self.next[axis] = 0;
            self.next[axis - 1] += 1;
        }
        Some(if self.is_planar {
            Place { batch, channel: a, row: b, column: c }
        } else {
            Place { batch, row: a, column: b, channel: c }
        })
    }
}
