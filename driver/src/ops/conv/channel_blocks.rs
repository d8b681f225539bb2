//! Products of few rows with many weights, cut by output channels where several threads share them.
//!
//! Cut by rows each thread would read all weights, which may be more than its cache holds, and a handful of
//! rows cannot be cut evenly. A block of channels lies nowhere in one piece of the output, so that each thread
//! writes a piece of its own, and the pieces are put together once all are there.

use std::ops::Range;

use crate::OpError;
use crate::kernels::conv::Conv;
use crate::op::CHANNEL_STEP;
use crate::ops::conv::row_tiles::SHARED_STEP;
use crate::scratch::Scratch;
use crate::threads::{Parallelism, TileRunner, Tiling};

/// Most rows for which it is worth it: a picture of 8 x 8.
const MAX_ROWS: usize = 64;

/// So few rows cannot be cut into tiles of [`SHARED_STEP`] for two threads.
const FEW_ROWS: usize = SHARED_STEP + SHARED_STEP / 2;

/// Weights of so many bytes that a thread had better not read all of them, where rows could be cut.
const MANY_WEIGHTS: usize = 1 << 18;

/// Least channels of a block: fewer are computed in tiles that are not full.
const LEAST: usize = 64;

/// Whether rows are few beside the weights, whoever shares the work.
pub(super) fn are_few_rows(conv: &Conv) -> bool {
    let (rows, units) = (conv.output.pixels(), conv.filter.outputs);
    match rows {
        0 | 1 => false,
        2..=FEW_ROWS => rows < units,
        _ => rows <= MAX_ROWS && conv.filter.values() >= MANY_WEIGHTS,
    }
}

/// An output of `rows` times `units` values, cut into blocks of `width` channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChannelBlocks {
    rows: usize,
    /// Rows of room that each block has beside its own.
    spare: usize,
    units: usize,
    width: usize,
    nanos: u64,
}

impl ChannelBlocks {
    /// Where several threads share work that takes about `nanos`, and rows are few beside the weights.
    pub(super) fn new(conv: &Conv, parallelism: Parallelism<'_>, nanos: u64) -> Option<Self> {
        let (rows, units) = (conv.output.pixels(), conv.filter.outputs);
        let width = units.div_ceil(parallelism.threads()).next_multiple_of(CHANNEL_STEP).max(LEAST);
        let blocks = ChannelBlocks { rows, spare: 0, units, width, nanos };
        let is_worth_it = are_few_rows(conv) && width < units;
        (is_worth_it && parallelism.shares(&blocks.tiling())).then_some(blocks)
    }

    /// The same for an output of `rows` rows that is made of this one, channel by channel: room for this one is beside
    /// each block.
    pub(super) fn for_rows_behind(self, rows: usize) -> Self {
        ChannelBlocks { rows, spare: self.rows, ..self }
    }

    fn tiling(&self) -> Tiling {
        Tiling {
            row_len: (self.rows + self.spare) * self.width,
            step: 1,
            share_step: Some(1),
            least: 1,
            most: 1,
            nanos: self.nanos,
        }
    }

    /// Computes all blocks: `compute` writes those channels of every row, row by row, and may use the room beside them.
    ///
    /// # Errors
    /// As [`TileRunner::tiles`].
    pub(super) fn run(
        &self,
        out: &mut [u8],
        runner: &mut TileRunner<'_>,
        compute: impl Fn(Range<usize>, Piece<'_>, &mut Scratch) -> Result<(), OpError> + Sync,
    ) -> Result<(), OpError> {
        let ChannelBlocks { rows, spare, units, width, .. } = *self;
        let (count, tiling) = (units.div_ceil(width), self.tiling());
        let mut pieces = runner.scratch.take_parts(count * tiling.row_len)?;
        let piece = |block: usize, piece: &mut [u8], scratch: &mut Scratch| {
            let channels = block * width..units.min((block + 1) * width);
            let (out, room) = piece.split_at_mut(rows * width);
            let out = &mut out[..rows * channels.len()];
            let room = &mut room[..spare * channels.len()];
            compute(channels, Piece { out, room }, scratch)
        };
        let used = &mut pieces[..count * tiling.row_len];
        let done = runner.tiles(&tiling, used, piece);
        for (block, piece) in used.chunks_exact(tiling.row_len).enumerate() {
            let first = block * width;
            let len = width.min(units - first);
            let piece = piece[..rows * len].chunks_exact(len);
            for (out, values) in out.chunks_exact_mut(units).zip(piece) {
                out[first..first + len].copy_from_slice(values);
            }
        }
        runner.scratch.return_parts(pieces);
        done
    }
}

/// What is computed of a block of channels.
pub(super) struct Piece<'p> {
    /// Its channels of every row.
    pub(super) out: &'p mut [u8],
    /// Room for as many channels of the rows that these are made of, where they are.
    pub(super) room: &'p mut [u8],
}
