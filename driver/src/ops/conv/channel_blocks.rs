//! Products of few rows with many weights, cut by output channels where several threads share them.
//!
//! Cut by rows each thread would read all weights, which may be more than its cache holds, and a handful of
//! rows cannot be cut evenly. A block of channels lies nowhere in one piece of the output, so that each thread
//! writes a piece of its own, and the pieces are put together once all are there.

use std::ops::Range;

use crate::OpError;
use crate::kernels::conv::Conv;
use crate::ops::conv::row_tiles::SHARED_STEP;
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::threads::{Parallelism, Tiling};

/// Most rows for which it is worth it: a picture of 8 x 8.
const MAX_ROWS: usize = 64;

/// So few rows cannot be cut into tiles of [`SHARED_STEP`] for two threads.
const FEW_ROWS: usize = SHARED_STEP + SHARED_STEP / 2;

/// Weights of so many bytes that a thread had better not read all of them, where rows could be cut.
const MANY_WEIGHTS: usize = 1 << 18;

/// Channels of a block are a multiple of this many: two registers of sums.
const STEP: usize = 32;

/// Least channels of a block: fewer are computed in tiles that are not full.
const LEAST: usize = 64;

/// An output of `rows` times `units` values, cut into blocks of `width` channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChannelBlocks {
    rows: usize,
    units: usize,
    width: usize,
    nanos: u64,
}

impl ChannelBlocks {
    /// Where several threads share work that takes about `nanos`, and rows are few beside the weights.
    pub(super) fn new(conv: &Conv, parallelism: Parallelism<'_>, nanos: u64) -> Option<Self> {
        let (rows, units) = (conv.output.pixels(), conv.filter.outputs);
        let width = units.div_ceil(parallelism.threads()).next_multiple_of(STEP).max(LEAST);
        let blocks = ChannelBlocks { rows, units, width, nanos };
        let is_worth_it = match rows {
            0 | 1 => false,
            2..=FEW_ROWS => rows < units,
            _ => rows <= MAX_ROWS && conv.filter.values() >= MANY_WEIGHTS,
        };
        let is_worth_it = is_worth_it && width < units;
        (is_worth_it && parallelism.shares(&blocks.tiling())).then_some(blocks)
    }

    fn tiling(&self) -> Tiling {
        Tiling {
            row_len: self.rows * self.width,
            step: 1,
            share_step: Some(1),
            least: 1,
            most: 1,
            nanos: self.nanos,
        }
    }

    /// Computes all blocks: `compute` writes those channels of every row, row by row.
    ///
    /// # Errors
    /// As [`Parallelism::tiles`].
    pub(super) fn run(
        &self,
        parallelism: Parallelism<'_>,
        out: &mut [u8],
        scratch: &mut Scratch,
        stop: Stop<'_>,
        compute: impl Fn(Range<usize>, &mut [u8], &mut Scratch) -> Result<(), OpError> + Sync,
    ) -> Result<(), OpError> {
        let ChannelBlocks { rows, units, width, .. } = *self;
        let count = units.div_ceil(width);
        let mut pieces = scratch.take_parts(count * rows * width)?;
        let piece = |block: usize, piece: &mut [u8], scratch: &mut Scratch| {
            let channels = block * width..units.min((block + 1) * width);
            let piece = &mut piece[..rows * channels.len()];
            compute(channels, piece, scratch)
        };
        let used = &mut pieces[..count * rows * width];
        let done = parallelism.tiles(&self.tiling(), used, scratch, stop, piece);
        for (block, piece) in used.chunks_exact(rows * width).enumerate() {
            let first = block * width;
            let len = width.min(units - first);
            for (out, values) in out.chunks_exact_mut(units).zip(piece.chunks_exact(len)) {
                out[first..first + len].copy_from_slice(values);
            }
        }
        scratch.return_parts(pieces);
        done
    }
}
