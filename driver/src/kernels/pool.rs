//! Pooling: one value out of each window of a picture.
//!
//! Pictures are NHWC. One kernel serves all poolings and types: it runs `add` over a window, pixel
//! by pixel, for all channels side by side, which the compiler turns into vector code.

use std::ops::Range;

/// One spatial axis of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolAxis {
    /// Pixels of the input.
    pub input: usize,
    /// Pixels of the output.
    pub output: usize,
    /// Pixels of the window.
    pub filter: usize,
    /// Pixels between the starts of two windows.
    pub stride: usize,
    /// Pixels by which the first window begins before the input.
    pub pad: usize,
}

impl PoolAxis {
    /// The input pixels that window `index` covers; padding is no pixel.
    #[must_use]
    pub fn covered(&self, index: usize) -> Range<usize> {
        let start = index * self.stride;
        let end = (start + self.filter).saturating_sub(self.pad).min(self.input);
        start.saturating_sub(self.pad).min(end)..end
    }

    /// Most pixels that any window covers.
    #[must_use]
    pub fn most_covered(&self) -> usize {
        self.filter.min(self.input)
    }
}

/// The sizes of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Number of pictures.
    pub batches: usize,
    /// Rows.
    pub height: PoolAxis,
    /// Columns.
    pub width: PoolAxis,
    /// Values per pixel.
    pub channels: usize,
}

/// Pools `input` into `output`.
///
/// For each window and channel, `add` takes every covered value into an accumulator that begins as
/// `empty`; `finish` makes the output of the accumulator and the number of values. `sums` is
/// working memory of one accumulator per channel.
pub fn pool<T: Copy, A: Copy>(
    pooling: &Pooling,
    input: &[T],
    output: &mut [T],
    sums: &mut [A],
    empty: A,
    add: impl Fn(A, T) -> A,
    finish: impl Fn(A, usize) -> T,
) {
    let Pooling { batches, height, width, channels } = *pooling;
    let picture = height.input * width.input * channels;
    if picture == 0 {
        return;
    }
    let mut pixels = output.chunks_exact_mut(channels);
    for picture in input.chunks_exact(picture).take(batches) {
        for row in 0..height.output {
            let rows = height.covered(row);
            for column in 0..width.output {
                let columns = width.covered(column);
                let Some(pixel) = pixels.next() else { return };
                sums.fill(empty);
                for y in rows.clone() {
                    let line = y * width.input;
                    let covered = &picture
                        [(line + columns.start) * channels..(line + columns.end) * channels];
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        pool(
            &pooling,
            &input,
            &mut output,
            &mut sums,
            0,
            |a, x| a + x,
            |a, n| {
                assert_eq!(n, 4);
                a
            },
        );
        assert_eq!(output, [12, 16, 44, 48]);
    }
}
