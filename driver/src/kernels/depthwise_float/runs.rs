//! How the bodies for instruction sets go through the lines of a depthwise convolution: columns whose pixels have the
//! same taps on the image together, of many channels a part after the other.

use std::ops::Range;

use smallvec::SmallVec;

use super::portable::MAX_TAPS;
use crate::kernels::conv::Conv;

/// Of many channels about so many are computed for all lines before the next ones: three lines of them stay in a core's
/// first cache.
const CHANNELS_AT_ONCE: usize = 160;
/// From so many channels on.
const MANY_CHANNELS: usize = 256;

/// Runs of columns of a filter of 8 by 8: an execution allocates nothing for as many.
pub(super) const MOST_RUNS: usize = 16;

/// Channels in parts that are computed one after the other, each of whole registers of so many lanes but for the last.
pub(super) fn parts(channels: usize, lanes: usize) -> impl Iterator<Item = Range<usize>> {
    let count = if channels < MANY_CHANNELS { 1 } else { channels.div_ceil(CHANNELS_AT_ONCE) };
    let part = channels.div_ceil(count).next_multiple_of(lanes);
    (0..channels).step_by(part).map(move |first| first..channels.min(first + part))
}

/// Columns of which all have the same taps on the image.
pub(super) struct Run {
    pub(super) columns: Range<usize>,
    pub(super) right: Range<usize>,
}

/// The columns of a line, from left to right.
pub(super) fn runs(conv: &Conv) -> SmallVec<[Run; MOST_RUNS]> {
    let Conv { input, filter, output, horizontal, .. } = conv;
    let mut runs: SmallVec<[Run; MOST_RUNS]> = SmallVec::new();
    for column in 0..output.width {
        let right = horizontal.taps(column, filter.width, input.width);
        match runs.last_mut() {
            Some(run) if run.right == right => run.columns.end = column + 1,
            _ => runs.push(Run { columns: column..column + 1, right }),
        }
    }
    runs
}

/// Taps that fall onto the image, for all pixels of a run.
pub(super) struct Taps {
    pub(super) list: SmallVec<[Tap; MAX_TAPS]>,
    /// The first of them: how far down and right in the filter.
    pub(super) first: (usize, usize),
    /// What each tap's `source` is at most.
    pub(super) reach: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Tap {
    /// From the value under the first tap to that under this one.
    pub(super) source: usize,
    /// Index of the weight.
    pub(super) weight: usize,
}

impl Taps {
    pub(super) fn of(conv: &Conv, down: Range<usize>, run: &Run) -> Self {
        let Conv { input, filter, output, horizontal, vertical, .. } = conv;
        let (top, left) = (down.start, run.right.start);
        let mut taps = Taps { list: SmallVec::new(), first: (top, left), reach: 0 };
        for down in down {
            for right in run.right.clone() {
                let source = (down - top) * vertical.dilation * input.row_step
                    + (right - left) * horizontal.dilation * input.column_step;
                let weight = (down * filter.width + right) * output.channels;
                taps.list.push(Tap { source, weight });
                taps.reach = taps.reach.max(source);
            }
        }
        taps
    }
}
