//! Pooling: one value out of each window of a picture.
//!
//! Pictures are NHWC. One kernel serves all poolings and types: it runs `add` over a window, pixel
//! by pixel, for all channels side by side, which the compiler turns into vector code.

use std::ops::Range;

use crate::OpError;
use crate::kernels::simd::portable_kernel;
use crate::stop::Checkpoints;
use crate::threads::{Tiling, speed};

portable_kernel! {
    /// `pool/windows`: see [`pool`].
    WINDOWS = "pool/windows",
    operations: [AveragePool2d, L2Pool2d, MaxPool2d],
    types: [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned],
}

/// One spatial axis of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolAxis {
    /// Pixels of the input.
    pub(crate) input: usize,
    /// Pixels of the output.
    pub(crate) output: usize,
    /// Pixels of the window.
    pub(crate) filter: usize,
    /// Pixels between the starts of two windows.
    pub(crate) stride: usize,
    /// Pixels by which the first window begins before the input.
    pub(crate) pad: usize,
}

impl PoolAxis {
    /// The input pixels that window `index` covers; padding is no pixel.
    #[must_use]
    pub(crate) fn covered(&self, index: usize) -> Range<usize> {
        let start = index * self.stride;
        let end = (start + self.filter).saturating_sub(self.pad).min(self.input);
        start.saturating_sub(self.pad).min(end)..end
    }

    /// Most pixels that any window covers.
    #[must_use]
    pub(crate) fn most_covered(&self) -> usize {
        self.filter.min(self.input)
    }
}

/// The sizes of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pooling {
    /// Number of pictures.
    pub(crate) batches: usize,
    /// Rows.
    pub(crate) height: PoolAxis,
    /// Columns.
    pub(crate) width: PoolAxis,
    /// Values per pixel.
    pub(crate) channels: usize,
}

/// Additions between two checks of the deadline: about a millisecond.
const ADDITIONS_PER_CHECK: usize = 1 << 20;

impl Pooling {
    /// How rows of the output are shared.
    #[must_use]
    pub(crate) fn tiling(&self) -> Tiling {
        let row_len = self.width.output * self.channels;
        let window = [self.height.most_covered(), self.width.most_covered()];
        let additions = row_len.saturating_mul(window[0]).saturating_mul(window[1]);
        let rows = self.batches * self.height.output;
        Tiling {
            row_len,
            step: 1,
            share_step: Some(1),
            least: 1,
            most: ADDITIONS_PER_CHECK / additions.max(1),
            nanos: speed::nanos(&[rows, additions], speed::CHANNEL_PRODUCTS),
        }
    }
}

/// What a pooling computes of a window's values, channel by channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<A, Add, Finish> {
    /// What an accumulator begins as.
    pub(crate) empty: A,
    /// Takes a covered value into an accumulator.
    pub(crate) add: Add,
    /// Makes the output of an accumulator and the number of values.
    pub(crate) finish: Finish,
}

/// Pools `input` into rows of the output from row `first` on, counted over all pictures, as many as
/// `output` has room for. `sums` is working memory of one accumulator per channel.
pub(crate) fn pool<T: Copy, A: Copy>(
    pooling: &Pooling,
    rule: &Rule<A, impl Fn(A, T) -> A, impl Fn(A, usize) -> T>,
    input: &[T],
    first: usize,
    output: &mut [T],
    (sums, checkpoints): (&mut [A], &mut Checkpoints<'_>),
) -> Result<(), OpError> {
    let Rule { empty, add, finish } = rule;
    let Pooling { height, width, channels, .. } = *pooling;
    let picture_len = height.input * width.input * channels;
    if picture_len == 0 {
        return Ok(());
    }
    for (index, out) in output.chunks_exact_mut(width.output * channels).enumerate() {
        let (picture, row) = ((first + index) / height.output, (first + index) % height.output);
        let picture = &input[picture * picture_len..][..picture_len];
        let rows = height.covered(row);
        for (column, pixel) in out.chunks_exact_mut(channels).enumerate() {
            let columns = width.covered(column);
            sums.fill(*empty);
            for y in rows.clone() {
                let line = y * width.input;
                let covered =
                    &picture[(line + columns.start) * channels..(line + columns.end) * channels];
                // By rows of windows: one window may cover the whole picture.
                checkpoints.after(covered.len())?;
                for values in covered.chunks_exact(channels) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum = add(*sum, *value);
                    }
                }
            }
            let count = rows.len() * columns.len();
            for (out, sum) in pixel.iter_mut().zip(sums.iter()) {
                *out = finish(*sum, count);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::Stop;

    #[test]
    fn windows_are_cut_at_the_edges() {
        let axis = PoolAxis { input: 5, output: 3, filter: 3, stride: 2, pad: 1 };
        assert_eq!(axis.covered(0), 0..2);
        assert_eq!(axis.covered(1), 1..4);
        assert_eq!(axis.covered(2), 3..5);
        assert_eq!(axis.most_covered(), 3);
    }

    #[test]
    fn channels_do_not_mix_and_batches_follow_each_other() {
        let axis = PoolAxis { input: 2, output: 1, filter: 2, stride: 1, pad: 0 };
        let pooling = Pooling { batches: 2, height: axis, width: axis, channels: 2 };
        let input: Vec<i32> = (0..16).collect();
        let mut output = [0; 4];
        let mut sums = [0; 2];
        let finish = |a, n| {
            assert_eq!(n, 4);
            a
        };
        let rule = Rule { empty: 0, add: |a, x| a + x, finish };
        let mut checkpoints = Stop::default().checkpoints();
        let mut part = |first, output: &mut [i32]| {
            pool(&pooling, &rule, &input, first, output, (&mut sums, &mut checkpoints)).unwrap();
        };
        part(0, &mut output);
        assert_eq!(output, [12, 16, 44, 48]);
        let mut second = [0; 2];
        part(1, &mut second);
        assert_eq!(second, output[2..], "rows from the middle on");
    }
}
