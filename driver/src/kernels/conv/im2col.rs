//! The matrix form of a convolution: one row per output pixel with the input values under the
//! filter, in the order of the filter's weights.

use super::geometry::Conv;
use super::walk::{Place, Walk};

/// What a convolution reads: the values of its input, or as many of them as its pixels need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a, T> {
    /// Values from `base` on.
    pub(crate) values: &'a [T],
    /// Which value of the input is the first.
    pub(crate) base: usize,
    /// What lies outside of the image.
    pub(crate) zero: T,
}

impl<'a, T> Source<'a, T> {
    /// All values of the input.
    pub(crate) fn whole(values: &'a [T], zero: T) -> Self {
        Source { values, base: 0, zero }
    }
}

/// Writes the rows of output pixels from `first` on, as many as `rows` has room for. Images must be NHWC, and
/// there must be one group.
pub(crate) fn fill_rows<T: Copy>(conv: &Conv, input: Source<'_, T>, first: usize, rows: &mut [T]) {
    let (depth, line_len) = (conv.depth(), conv.filter.width * conv.input.channels);
    let line_step = conv.vertical.dilation * conv.input.row_step;
    let mut walk = Walk::new(conv, first);
    let (mut at, end) = (0, rows.len() / depth * depth);
    while at < end {
        // Whole lines of taps, one after the other, as nearly all pixels have them.
        let count = if conv.horizontal.dilation == 1 { walk.inside() } else { 0 };
        let count = count.min((end - at) / depth);
        if count > 0
            && let Some(from) = walk.run(conv, count)
        {
            let mut from = from - input.base;
            let step = conv.horizontal.stride * conv.input.column_step;
            for at in (at..).step_by(depth).take(count) {
                for line in 0..conv.filter.height {
                    let to = at + line * line_len;
                    copy(input.values, from + line * line_step, rows, to, line_len);
                }
                from += step;
            }
            at += count * depth;
        } else {
            let place = walk.place();
            walk.next(conv);
            fill_row(conv, input, place, &mut rows[at..]);
            at += depth;
        }
    }
}

/// Fills the row of this pixel at the front of `rows`. What lies behind it may be overwritten.
pub(super) fn fill_row<T: Copy>(conv: &Conv, input: Source<'_, T>, pixel: Place, rows: &mut [T]) {
    let Source { values: input, base, zero } = input;
    let (filter, channels) = (&conv.filter, conv.input.channels);
    let down = conv.vertical.taps(pixel.row, filter.height, conv.input.height);
    let right = conv.horizontal.taps(pixel.column, filter.width, conv.input.width);
    let line_len = filter.width * channels;
    if down.is_empty() || right.is_empty() {
        rows[..conv.depth()].fill(zero);
        return;
    }
    // From front to back: a copy may write beyond its end, where what follows overwrites it.
    fill(rows, 0, down.start * line_len, zero);
    let after = down.end * line_len;
    for tap in down {
        let line = tap * line_len;
        let y = conv.vertical.position(pixel.row, tap);
        let x = conv.horizontal.position(pixel.column, right.start);
        let from = conv.input.at(pixel.batch, y, x) - base;
        let (begin, end) = (line + right.start * channels, line + right.end * channels);
        fill(rows, line, begin, zero);
        if conv.horizontal.dilation == 1 {
            copy(input, from, rows, begin, end - begin);
        } else {
            let step = conv.horizontal.dilation * channels;
            for (index, at) in (begin..end).step_by(channels).enumerate() {
                copy(input, from + index * step, rows, at, channels);
            }
        }
        fill(rows, end, line + line_len, zero);
    }
    fill(rows, after, conv.depth(), zero);
}

/// Fills a range that is empty for most pixels: asked here, that costs no call.
#[inline(always)]
fn fill<T: Copy>(rows: &mut [T], from: usize, to: usize, zero: T) {
    if from < to {
        rows[from..to].fill(zero);
    }
}

/// Values that a short copy moves at once, however few are wanted.
const SHORT: usize = 16;

/// Copies `len` values. Few values are copied as a block of fixed length, without the call that a
/// copy of unknown length is; what it writes beyond the end is of no meaning.
#[inline(always)]
fn copy<T: Copy>(input: &[T], from: usize, rows: &mut [T], to: usize, len: usize) {
    if len <= SHORT
        && let Some(source) = input[from..].first_chunk::<SHORT>()
        && let Some(target) = rows[to..].first_chunk_mut::<SHORT>()
    {
        *target = *source;
    } else {
        copy_many(&input[from..from + len], &mut rows[to..to + len]);
    }
}

/// A function of its own: beside the copy above the compiler would make one call of both, of a length that it then does not
/// know.
#[inline(never)]
fn copy_many<T: Copy>(from: &[T], to: &mut [T]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::conv::{Axis, Filter, Images};

    #[test]
    fn rows_hold_what_lies_under_the_filter() {
        // 1 x 3 pixels of 2 channels, 2 taps across, one zero before.
        let mut conv = Conv {
            input: Images::nhwc([1, 1, 3, 2]),
            filter: Filter::dense([1, 1, 2, 2]),
            output: Images::nhwc([1, 1, 3, 1]),
            vertical: Axis { stride: 1, dilation: 1, pad: 0 },
            horizontal: Axis { stride: 1, dilation: 1, pad: 1 },
            groups: 1,
        };
        let input = [1, 2, 3, 4, 5, 6];
        let mut rows = [0; 12];
        fill_rows(&conv, Source::whole(&input, 9), 0, &mut rows);
        assert_eq!(rows, [9, 9, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6]);
        let mut rest = [0; 8];
        fill_rows(&conv, Source::whole(&input, 9), 1, &mut rest);
        assert_eq!(rest, rows[4..]);

        conv.horizontal = Axis { stride: 1, dilation: 2, pad: 1 };
        conv.output.width = 2;
        let mut rows = [0; 8];
        fill_rows(&conv, Source::whole(&input, 9), 0, &mut rows);
        assert_eq!(rows, [9, 9, 3, 4, 1, 2, 5, 6]);
    }
}
