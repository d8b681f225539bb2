//! Resizing pixel by pixel, as it is defined: what fast kernels are compared with.
//!
//! Coordinates are computed in `f32` as TFLite's reference does, except for
//! signed bytes, which it interpolates in integers of 10 fraction bits.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "coordinates are clamped to the picture, whose size fits in 32 bits"
)]

use crate::OpError;
use crate::stop::{Checkpoints, STEPS_PER_CHECK, Stop};

/// Where output pixels lie over the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    /// Left edges of pixels meet at 0.
    Edges,
    /// First and last pixels meet.
    Corners,
    /// Centres of pixels are compared.
    Centres,
}

/// One axis of a resized picture. Sizes are above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResizeAxis {
    /// Pixels of the input.
    pub(crate) input: usize,
    /// Pixels of the output.
    pub(crate) output: usize,
    /// How they lie.
    pub(crate) alignment: Alignment,
}

/// Two neighbours, and how far the point lies from the first to the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Between<W> {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) weight: W,
}

/// Fraction bits of integer coordinates.
pub(super) const BITS: u32 = 10;
/// 1 in them.
pub(super) const ONE: i64 = 1 << BITS;

impl ResizeAxis {
    /// Sizes whose quotient is the ratio of input to output.
    fn proportion(&self) -> (usize, usize) {
        if self.alignment == Alignment::Corners && self.output > 1 {
            (self.input - 1, self.output - 1)
        } else {
            (self.input, self.output)
        }
    }

    /// Input pixels per output pixel.
    pub(crate) fn ratio(&self) -> f32 {
        let (input, output) = self.proportion();
        input as f32 / output as f32
    }

    fn last(&self) -> usize {
        self.input - 1
    }

    /// The input pixel nearest to output pixel `index`; `ratio` is [`ResizeAxis::ratio`].
    fn nearest(&self, index: usize, ratio: f32) -> usize {
        let at = match self.alignment {
            Alignment::Edges => (index as f32 * ratio).floor(),
            Alignment::Corners => (index as f32 * ratio).round(),
            Alignment::Centres => ((index as f32 + 0.5) * ratio).floor(),
        };
        (at as usize).min(self.last())
    }

    /// The neighbours of output pixel `index`; `ratio` is [`ResizeAxis::ratio`].
    pub(crate) fn between(&self, index: usize, ratio: f32) -> Between<f32> {
        let at = match self.alignment {
            Alignment::Centres => (index as f32 + 0.5) * ratio - 0.5,
            _ => index as f32 * ratio,
        };
        // Below 0 the cast saturates.
        let first = (at.floor() as usize).min(self.last());
        let second = (at.ceil() as usize).min(self.last());
        Between { first, second, weight: at - first as f32 }
    }

    /// [`ResizeAxis::ratio`] as a fixed-point number.
    pub(super) fn ratio_fixed(&self) -> i64 {
        let (input, output) = self.proportion();
        let (input, output) = (input as i64, output as i64);
        (ONE * input + output / 2) / output
    }

    /// The neighbours of output pixel `index`; `ratio` is [`ResizeAxis::ratio_fixed`].
    pub(super) fn between_fixed(&self, index: usize, ratio: i64) -> Between<i64> {
        let at = match self.alignment {
            Alignment::Centres => index as i64 * ratio + ratio / 2 - ONE / 2,
            _ => index as i64 * ratio,
        };
        let first = ((at / ONE).max(0) as usize).min(self.last());
        let second = (((at + ONE - 1) / ONE).max(0) as usize).min(self.last());
        // The ratio is rounded: far to the right of a much enlarged picture the point may pass
        // the last pixel. TFLite would read behind its end there.
        let weight = (at - ONE * first as i64).min(ONE);
        Between { first, second, weight }
    }
}

/// A picture, or a batch of them, to be resized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resize {
    /// Number of pictures.
    pub(crate) batches: usize,
    /// Rows.
    pub(crate) height: ResizeAxis,
    /// Columns.
    pub(crate) width: ResizeAxis,
    /// Values per pixel.
    pub(crate) channels: usize,
}

impl Resize {
    /// For each output pixel, in order, calls `make(picture, row, column, pixel)`.
    fn for_each_pixel<T>(
        &self,
        input: &[T],
        output: &mut [T],
        stop: Stop<'_>,
        mut make: impl FnMut(&[T], usize, usize, &mut [T]),
    ) -> Result<(), OpError> {
        let picture = self.height.input * self.width.input * self.channels;
        if picture == 0 {
            return Ok(());
        }
        let mut checkpoints = stop.checkpoints();
        let columns = (STEPS_PER_CHECK / self.channels).max(1);
        let mut pixels = output.chunks_exact_mut(self.channels);
        for picture in input.chunks_exact(picture).take(self.batches) {
            for row in 0..self.height.output {
                for first in (0..self.width.output).step_by(columns) {
                    let part = first..self.width.output.min(first + columns);
                    checkpoints.after(part.len() * self.channels)?;
                    for (column, pixel) in part.zip(pixels.by_ref()) {
                        make(picture, row, column, pixel);
                    }
                }
            }
        }
        Ok(())
    }

    fn pixel<'p, T>(&self, picture: &'p [T], y: usize, x: usize) -> &'p [T] {
        let start = (y * self.width.input + x) * self.channels;
        &picture[start..start + self.channels]
    }

    /// Each output pixel is the nearest input pixel.
    ///
    /// # Errors
    /// Those of `stop`.
    pub(crate) fn nearest<T: Copy>(
        &self,
        input: &[T],
        output: &mut [T],
        stop: Stop<'_>,
    ) -> Result<(), OpError> {
        let (vertical, horizontal) = (self.height.ratio(), self.width.ratio());
        self.for_each_pixel(input, output, stop, |picture, row, column, pixel| {
            let y = self.height.nearest(row, vertical);
            let x = self.width.nearest(column, horizontal);
            pixel.copy_from_slice(self.pixel(picture, y, x));
        })
    }

    /// How many floats [`Resize::bilinear`] needs as working memory: two rows of the input.
    #[must_use]
    pub(crate) fn bilinear_scratch(&self) -> usize {
        2 * self.width.input * self.channels
    }

    /// Each output pixel is a mix of four input pixels; `store` rounds.
    ///
    /// For each output row the two input rows it lies between are weighted, once for all its
    /// pixels; then pixels are mixed of those. The order of the products is the reference's.
    ///
    /// # Errors
    /// Those of `stop`.
    pub(crate) fn bilinear<T: Copy>(
        &self,
        input: &[T],
        output: &mut [T],
        (scratch, stop): (&mut [f32], Stop<'_>),
        (load, store): (impl Fn(T) -> f32, impl Fn(f32) -> T),
    ) -> Result<(), OpError> {
        let line = self.width.input * self.channels;
        let out_line = self.width.output * self.channels;
        let picture = self.height.input * line;
        if picture == 0 || out_line == 0 {
            return Ok(());
        }
        let mut checkpoints = stop.checkpoints();
        let columns = (STEPS_PER_CHECK / self.channels).max(1);
        let (upper, lower) = scratch.split_at_mut(line);
        let (vertical, horizontal) = (self.height.ratio(), self.width.ratio());
        let mut out_lines = output.chunks_exact_mut(out_line);
        for picture in input.chunks_exact(picture).take(self.batches) {
            for (row, out) in (0..self.height.output).zip(out_lines.by_ref()) {
                let Between { first, second, weight } = self.height.between(row, vertical);
                let (above, below) = (&picture[first * line..], &picture[second * line..]);
                weigh(&above[..line], upper, 1.0 - weight, &mut checkpoints, &load)?;
                weigh(&below[..line], lower, weight, &mut checkpoints, &load)?;
                for (part, out) in out.chunks_mut(columns * self.channels).enumerate() {
                    checkpoints.after(out.len())?;
                    let pixels = out.chunks_exact_mut(self.channels);
                    for (column, pixel) in (part * columns..).zip(pixels) {
                        let x = self.width.between(column, horizontal);
                        self.mix(pixel, (upper, lower), x, &store);
                    }
                }
            }
        }
        Ok(())
    }

    /// One pixel of two weighted rows.
    fn mix<T>(
        &self,
        pixel: &mut [T],
        (upper, lower): (&[f32], &[f32]),
        Between { first, second, weight }: Between<f32>,
        store: impl Fn(f32) -> T,
    ) {
        let at = |row: &'_ [f32], column: usize| column * self.channels..row.len();
        let left = upper[at(upper, first)].iter().zip(&lower[at(lower, first)]);
        let right = upper[at(upper, second)].iter().zip(&lower[at(lower, second)]);
        for (out, ((a, b), (c, d))) in pixel.iter_mut().zip(left.zip(right)) {
            *out = store(a * (1.0 - weight) + b * (1.0 - weight) + c * weight + d * weight);
        }
    }

    /// As [`Resize::bilinear`] for signed bytes, in integers; ties are rounded away from 0.
    ///
    /// # Errors
    /// Those of `stop`.
    pub(crate) fn bilinear_fixed(
        &self,
        input: &[i8],
        output: &mut [i8],
        stop: Stop<'_>,
    ) -> Result<(), OpError> {
        const HALF: i64 = 1 << (2 * BITS - 1);
        let (vertical, horizontal) = (self.height.ratio_fixed(), self.width.ratio_fixed());
        self.for_each_pixel(input, output, stop, |picture, row, column, pixel| {
            let y = self.height.between_fixed(row, vertical);
            let x = self.width.between_fixed(column, horizontal);
            let (dy, dx) = (y.weight, x.weight);
            let corners = self.corners(picture, &y, &x);
            for (out, (((a, b), c), d)) in pixel.iter_mut().zip(corners) {
                let sum = i64::from(*a) * (ONE - dy) * (ONE - dx)
                    + i64::from(*b) * dy * (ONE - dx)
                    + i64::from(*c) * (ONE - dy) * dx
                    + i64::from(*d) * dy * dx;
                let half = if sum > 0 { HALF } else { -HALF };
                *out = ((sum + half) / (1 << (2 * BITS))) as i8;
            }
        })
    }

    /// The channels of the four neighbours: top left, bottom left, top right, bottom right.
    fn corners<'p, T, W>(
        &self,
        picture: &'p [T],
        y: &Between<W>,
        x: &Between<W>,
    ) -> impl Iterator<Item = (((&'p T, &'p T), &'p T), &'p T)> + use<'p, T, W> {
        let at = |y, x| self.pixel(picture, y, x);
        at(y.first, x.first)
            .iter()
            .zip(at(y.second, x.first))
            .zip(at(y.first, x.second))
            .zip(at(y.second, x.second))
    }
}

/// A row times a weight.
fn weigh<T: Copy>(
    row: &[T],
    weighted: &mut [f32],
    weight: f32,
    checkpoints: &mut Checkpoints<'_>,
    load: impl Fn(T) -> f32,
) -> Result<(), OpError> {
    for (out, row) in weighted.chunks_mut(STEPS_PER_CHECK).zip(row.chunks(STEPS_PER_CHECK)) {
        checkpoints.after(row.len())?;
        for (out, x) in out.iter_mut().zip(row) {
            *out = load(*x) * weight;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(input: usize, output: usize, alignment: Alignment) -> ResizeAxis {
        ResizeAxis { input, output, alignment }
    }

    #[test]
    fn nearest_pixels() {
        let all = |input, output, alignment| {
            let axis = axis(input, output, alignment);
            (0..output).map(|i| axis.nearest(i, axis.ratio())).collect::<Vec<_>>()
        };
        assert_eq!(all(2, 5, Alignment::Edges), [0, 0, 0, 1, 1]);
        assert_eq!(all(2, 5, Alignment::Corners), [0, 0, 1, 1, 1]);
        assert_eq!(all(2, 4, Alignment::Centres), [0, 0, 1, 1]);
        assert_eq!(all(5, 2, Alignment::Edges), [0, 2]);
        assert_eq!(all(5, 2, Alignment::Corners), [0, 4]);
        assert_eq!(all(5, 2, Alignment::Centres), [1, 3]);
        assert_eq!(all(5, 1, Alignment::Corners), [0]);
    }

    #[test]
    fn neighbours_stay_inside() {
        for alignment in [Alignment::Edges, Alignment::Corners, Alignment::Centres] {
            for input in [1, 2, 3, 7, 100] {
                for output in [1, 2, 3, 10, 99, 5000] {
                    let axis = axis(input, output, alignment);
                    for index in 0..output {
                        let Between { first, second, weight } = axis.between(index, axis.ratio());
                        assert!(first <= second && second < input && weight < 1.001, "{axis:?}");
                        let Between { first, second, weight } =
                            axis.between_fixed(index, axis.ratio_fixed());
                        assert!(first <= second && second < input && weight <= ONE, "{axis:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_interpolated_in_floats_and_integers() {
        let resize = |alignment| Resize {
            batches: 1,
            height: axis(1, 1, alignment),
            width: axis(2, 4, alignment),
            channels: 1,
        };
        for (alignment, want) in [
            (Alignment::Edges, [0, 50, 100, 100]),
            (Alignment::Centres, [0, 25, 75, 100]),
            (Alignment::Corners, [0, 33, 67, 100]),
        ] {
            let mut out = [0.0; 4];
            let work = (&mut [0.0; 4][..], Stop::default());
            let convert = (|x| x, f32::round);
            resize(alignment).bilinear(&[0.0, 100.0], &mut out, work, convert).unwrap();
            assert_eq!(out.map(|x| x as i8), want, "{alignment:?}");
            let mut out = [0; 4];
            resize(alignment).bilinear_fixed(&[0, 100], &mut out, Stop::default()).unwrap();
            assert_eq!(out, want, "{alignment:?}");
        }
    }
}
