//! Bilinear resizing line by line, in blocks of values that vectors hold; the same bits as
//! [`Resize::bilinear`].

use super::reference::Resize;
use crate::OpError;
use crate::scratch::Scratch;

/// Values that are computed together. Those that lie beyond a pixel's end are written over by the
/// next one.
pub(crate) const BLOCK: usize = 16;

/// A stored value.
pub(crate) trait Value: Copy + Default {
    /// As a real number, less the zero point and the scale, which stay the same.
    fn load(self) -> f32;
    /// Rounded to a stored one.
    fn store(x: f32) -> Self;
}

impl Value for f32 {
    #[inline(always)]
    fn load(self) -> f32 {
        self
    }
    #[inline(always)]
    fn store(x: f32) -> Self {
        x
    }
}

impl Value for u8 {
    #[inline(always)]
    fn load(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mix of 8-bit values is one; adding a half and truncating rounds"
    )]
    fn store(x: f32) -> Self {
        // By way of whole numbers of 32 bits, which vectors have.
        ((x + 0.5) as i32).clamp(0, 255) as u8
    }
}

/// Working memory for [`lines`].
#[derive(Debug)]
pub(crate) struct Work<'s> {
    /// Two weighted lines of the input, with a block of anything behind each.
    pub(crate) upper: &'s mut [f32],
    pub(crate) lower: &'s mut [f32],
    /// For each output column how far it lies from its left neighbour to its right one.
    weights: &'s mut [f32],
    /// Where the values of the left neighbours begin, and of the right ones.
    left: &'s mut [i32],
    right: &'s mut [i32],
}

impl<'s> Work<'s> {
    /// Working memory for pictures of this size, with the columns looked up.
    ///
    /// # Errors
    /// As [`Scratch`].
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a line of the input is far below 2^31 values: see `fits`"
    )]
    pub(crate) fn new(resize: &Resize, scratch: &'s mut Scratch) -> Result<Self, OpError> {
        let (line, columns) = (resize.width.input * resize.channels, resize.width.output);
        let (floats, offsets) = scratch.f32_and_i32(2 * (line + BLOCK) + columns, 2 * columns)?;
        let (upper, rest) = floats.split_at_mut(line + BLOCK);
        let (lower, weights) = rest.split_at_mut(line + BLOCK);
        let (left, right) = offsets.split_at_mut(columns);
        let ratio = resize.width.ratio();
        for column in 0..columns {
            let between = resize.width.between(column, ratio);
            weights[column] = between.weight;
            left[column] = (between.first * resize.channels) as i32;
            right[column] = (between.second * resize.channels) as i32;
        }
        Ok(Work { upper, lower, weights, left, right })
    }
}

impl Work<'_> {
    /// For each output column where the values of its neighbours begin, and how far it lies from
    /// the left one to the right one.
    #[inline(always)]
    pub(crate) fn columns(&self) -> impl Iterator<Item = ((usize, usize), f32)> {
        // Offsets are not negative: they were made from positions.
        let offset = |offset: &i32| offset.unsigned_abs() as usize;
        let offsets = self.left.iter().map(offset).zip(self.right.iter().map(offset));
        offsets.zip(self.weights.iter().copied())
    }

    /// Columns that lie between the same neighbours, see [`runs`].
    pub(super) fn runs(&self) -> impl Iterator<Item = ((usize, usize), &[f32])> {
        runs((self.left, self.right), self.weights)
    }
}

/// Columns that follow each other and lie between the same neighbours: where the values of these begin, and how far each
/// column lies from the left one to the right one. Where a picture grows, these are several.
pub(super) fn runs<'w, W>(
    (left, right): (&[i32], &[i32]),
    weights: &'w [W],
) -> impl Iterator<Item = ((usize, usize), &'w [W])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let pair = |column: usize| Some((*left.get(column)?, *right.get(column)?));
        let (first, second) = pair(start)?;
        let mut end = start + 1;
        while pair(end) == Some((first, second)) {
            end += 1;
        }
        let run = &weights[start..end];
        start = end;
        // They are not negative: they were made from positions.
        Some(((first.unsigned_abs() as usize, second.unsigned_abs() as usize), run))
    })
}

/// Whether [`Work`] can number the values of a line.
pub(crate) fn fits(resize: &Resize) -> bool {
    let line = resize.width.input.checked_mul(resize.channels);
    line.is_some_and(|line| i32::try_from(line).is_ok())
}

/// Output lines from `first` on, counted over all pictures, as many as `out` has room for.
#[inline(always)]
pub(crate) fn lines<T: Value>(
    resize: &Resize,
    input: &[T],
    first: usize,
    work: &mut Work<'_>,
    out: &mut [T],
) {
    let out_line = resize.width.output * resize.channels;
    for index in 0..out.len() / out_line {
        weigh_line(resize, input, first + index, work);
        mix(resize.channels, work, &mut out[index * out_line..]);
    }
}

/// Weighs the two input lines that output line `line`, counted over all pictures, lies between.
#[inline(always)]
pub(crate) fn weigh_line<T: Value>(resize: &Resize, input: &[T], line: usize, work: &mut Work<'_>) {
    let len = resize.width.input * resize.channels;
    let (picture, row) = (line / resize.height.output, line % resize.height.output);
    let picture = &input[picture * resize.height.input * len..];
    let between = resize.height.between(row, resize.height.ratio());
    weigh(&picture[between.first * len..][..len], work.upper, 1.0 - between.weight);
    weigh(&picture[between.second * len..][..len], work.lower, between.weight);
}

/// A line times a weight, and zeros behind it.
#[inline(always)]
fn weigh<T: Value>(line: &[T], weighted: &mut [f32], weight: f32) {
    let (weighted, behind) = weighted.split_at_mut(line.len());
    for (out, x) in weighted.iter_mut().zip(line) {
        *out = x.load() * weight;
    }
    behind.fill(0.0);
}

/// The pixels of a line at the front of `out`; what lies behind it may be written over.
#[inline(always)]
fn mix<T: Value>(channels: usize, work: &Work<'_>, out: &mut [T]) {
    for (pixel, ((left, right), weight)) in work.columns().enumerate() {
        for channel in (0..channels).step_by(BLOCK) {
            let block = mixed::<T>(
                [
                    block(&work.upper[left + channel..]),
                    block(&work.lower[left + channel..]),
                    block(&work.upper[right + channel..]),
                    block(&work.lower[right + channel..]),
                ],
                weight,
            );
            let out = &mut out[pixel * channels + channel..];
            if let Some(out) = out.first_chunk_mut::<BLOCK>() {
                *out = block;
            } else {
                let len = out.len();
                out.copy_from_slice(&block[..len]);
            }
        }
    }
}

/// A block from the front of a line's rest.
#[inline(always)]
pub(crate) fn block(values: &[f32]) -> &[f32; BLOCK] {
    const NOTHING: &[f32; BLOCK] = &[0.0; BLOCK];
    // There is always a block: lines have one behind them.
    values.first_chunk().unwrap_or(NOTHING)
}

/// The order of the products is the reference's.
#[inline(always)]
fn mixed<T: Value>([a, b, c, d]: [&[f32; BLOCK]; 4], weight: f32) -> [T; BLOCK] {
    let rest = 1.0 - weight;
    let mut out = [T::default(); BLOCK];
    for lane in 0..BLOCK {
        out[lane] = T::store(a[lane] * rest + b[lane] * rest + c[lane] * weight + d[lane] * weight);
    }
    out
}
