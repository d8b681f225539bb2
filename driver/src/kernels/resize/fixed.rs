//! Bilinear resizing of signed bytes line by line; the same numbers as [`Resize::bilinear_fixed`].
//!
//! Of whole numbers it does not matter in which order they are added up: the two lines that a line lies between are
//! weighed first, and each pixel then lies between two values of one line.

use super::portable::{BLOCK, runs};
use super::reference::{BITS, Between, ONE, Resize};
use crate::OpError;
use crate::scratch::Scratch;

/// Half of what sums are divided by in the end.
pub(super) const HALF: i32 = 1 << (2 * BITS - 1);

/// Working memory for [`lines`].
#[derive(Debug)]
pub(crate) struct FixedWork<'s> {
    /// A weighted line of the input, with a block of anything behind it. A value is below 2^18: a byte times at most
    /// 2^11, as a weight below 0 goes with one above [`ONE`].
    pub(super) line: &'s mut [i32],
    /// For each output column how far it lies from its left neighbour to its right one.
    weights: &'s mut [i32],
    /// Where the values of the left neighbours begin, and of the right ones.
    left: &'s mut [i32],
    right: &'s mut [i32],
}

impl<'s> FixedWork<'s> {
    /// Working memory for pictures of this size, with the columns looked up.
    ///
    /// # Errors
    /// As [`Scratch`].
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a line of the input is far below 2^31 values: see `fits`; weights are at most `ONE`"
    )]
    pub(crate) fn new(resize: &Resize, scratch: &'s mut Scratch) -> Result<Self, OpError> {
        let (line, columns) = (resize.width.input * resize.channels, resize.width.output);
        let (line, rest) = scratch.i32(line + BLOCK + 3 * columns)?.split_at_mut(line + BLOCK);
        let (weights, rest) = rest.split_at_mut(columns);
        let (left, right) = rest.split_at_mut(columns);
        let ratio = resize.width.ratio_fixed();
        for column in 0..columns {
            let between = resize.width.between_fixed(column, ratio);
            weights[column] = between.weight as i32;
            left[column] = (between.first * resize.channels) as i32;
            right[column] = (between.second * resize.channels) as i32;
        }
        Ok(FixedWork { line, weights, left, right })
    }
}

impl FixedWork<'_> {
    /// Columns that lie between the same neighbours, see [`runs`].
    pub(super) fn runs(&self) -> impl Iterator<Item = ((usize, usize), &[i32])> {
        runs((self.left, self.right), self.weights)
    }

    /// Weighs the two input lines that output line `line`, counted over all pictures, lies between.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "weights are at most `ONE`")]
    pub(super) fn weigh(&mut self, resize: &Resize, input: &[i8], line: usize) {
        let len = resize.width.input * resize.channels;
        let (picture, row) = (line / resize.height.output, line % resize.height.output);
        let picture = &input[picture * resize.height.input * len..];
        let Between { first, second, weight } =
            resize.height.between_fixed(row, resize.height.ratio_fixed());
        let (weight, rest) = (weight as i32, (ONE - weight) as i32);
        let (upper, lower) = (&picture[first * len..][..len], &picture[second * len..][..len]);
        for ((out, upper), lower) in self.line.iter_mut().zip(upper).zip(lower) {
            *out = i32::from(*upper) * rest + i32::from(*lower) * weight;
        }
    }
}

/// Output lines from `first` on, counted over all pictures, as many as `out` has room for.
#[inline(always)]
pub(crate) fn lines(
    resize: &Resize,
    input: &[i8],
    first: usize,
    work: &mut FixedWork<'_>,
    out: &mut [i8],
) {
    let (channels, len) = (resize.channels, resize.width.output * resize.channels);
    for (index, out) in out.chunks_exact_mut(len).enumerate() {
        work.weigh(resize, input, first + index);
        let mut pixels = out.chunks_exact_mut(channels);
        for ((left, right), weights) in work.runs() {
            let (left, right) = (&work.line[left..][..channels], &work.line[right..][..channels]);
            // In this order: what ends first is asked first, so that no pixel is lost.
            for (weight, pixel) in weights.iter().zip(pixels.by_ref()) {
                for ((out, left), right) in pixel.iter_mut().zip(left).zip(right) {
                    *out = mixed(*left, *right, *weight);
                }
            }
        }
    }
}

/// What lies between two weighted values: rounded to nearest, with ties away from 0.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a mix of bytes is one")]
fn mixed(left: i32, right: i32, weight: i32) -> i8 {
    // Below 2^29.
    let sum = (left << BITS) + (right - left) * weight;
    let magnitude = (sum.abs() + HALF) >> (2 * BITS);
    (if sum < 0 { -magnitude } else { magnitude }) as i8
}
