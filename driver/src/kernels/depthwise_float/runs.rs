//! How the bodies for instruction sets go through the lines of a depthwise convolution: columns whose pixels have the
//! same taps on the image together, with AVX-512 of many channels a part after the other.

use std::ops::Range;

use smallvec::SmallVec;

use super::portable::MAX_TAPS;
use crate::kernels::conv::Conv;

/// Of many channels about so many are computed for all lines before the next ones: three lines of them stay in a core's
/// first cache. With AVX2, on a processor whose second cache is half as large, lines in one piece took a fifth less.
const CHANNELS_AT_ONCE: usize = 160;
/// From so many channels on.
const MANY_CHANNELS: usize = 256;

/// Runs of columns of a filter of 8 by 8: an execution allocates nothing for as many.
const MOST_RUNS: usize = 16;

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
    /// How many taps the runs up to this one have in the list of all.
    end: usize,
}

/// The columns of a line, from left to right, and the taps of each for lines that see the same rows of the filter.
pub(super) struct Columns {
    runs: SmallVec<[Run; MOST_RUNS]>,
    /// The taps of all runs, one run after the other: in one list, as little is written for a filter of few taps. Each tile
    /// of an output makes it.
    taps: SmallVec<[Tap; MOST_RUNS * MAX_TAPS]>,
    /// The rows of the filter that the taps are for.
    down: Range<usize>,
}

impl Columns {
    pub(super) fn new(conv: &Conv) -> Self {
        let Conv { input, filter, output, horizontal, .. } = conv;
        // All of these see the whole filter; only those beside them have to be looked at one by one.
        let whole = horizontal.whole(filter.width, input.width, output.width);
        let mut runs: SmallVec<[Run; MOST_RUNS]> = SmallVec::new();
        let mut column = 0;
        while column < output.width {
            let end = if column == whole.start { whole.end.max(column + 1) } else { column + 1 };
            let right = horizontal.taps(column, filter.width, input.width);
            match runs.last_mut() {
                Some(run) if run.right == right => run.columns.end = end,
                _ => runs.push(Run { columns: column..end, right, end: 0 }),
            }
            column = end;
        }
        Columns { runs, taps: SmallVec::new(), down: 0..0 }
    }

    /// Lists the taps of lines that see these rows of the filter.
    pub(super) fn see(&mut self, conv: &Conv, down: Range<usize>) {
        if self.down == down && !self.taps.is_empty() {
            return;
        }
        let Conv { input, filter, output, horizontal, vertical, .. } = conv;
        self.taps.clear();
        for run in &mut self.runs {
            for (y, row) in down.clone().enumerate() {
                let source = y * vertical.dilation * input.row_step;
                let weight = row * filter.width;
                self.taps.extend(run.right.clone().enumerate().map(|(x, column)| Tap {
                    source: source + x * horizontal.dilation * input.column_step,
                    weight: (weight + column) * output.channels,
                }));
            }
            run.end = self.taps.len();
        }
        self.down = down;
    }

    /// Each run with its taps.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Run, Taps<'_>)> {
        let begins = std::iter::once(0).chain(self.runs.iter().map(|run| run.end));
        self.runs.iter().zip(begins).map(|(run, begin)| {
            let list = &self.taps[begin..run.end];
            let first = (self.down.start, run.right.start);
            // The last one is the farthest to the right and down.
            let reach = list.last().map_or(0, |tap| tap.source);
            (run, Taps { list, first, reach })
        })
    }
}

/// Taps that fall onto the image, for all pixels of a run.
pub(super) struct Taps<'c> {
    pub(super) list: &'c [Tap],
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
