//! What products of floats and of bytes share: where rows come from, and how they are cut into tiles.

use crate::OpError;
use crate::kernels::conv::Conv;
use crate::ops::attributes::ConvAttributes;
use crate::ops::conv::geometry;
use crate::ops::conv::quantized::Task;
use crate::threads::{Tiling, speed};

/// Inputs whose bytes a kernel of products holds itself: filter and bias.
pub(super) const PACKED_INPUTS: [usize; 2] = [1, 2];

/// Bytes of rows and sums that one tile may take: a part of the second-level cache, which also
/// holds the weights that every tile reads.
pub(super) const TILE_BYTES: usize = 256 << 10;

/// Rows of a tile are a multiple of this, the number that the matrix library packs at a time.
const TILE_STEP: usize = 64;

/// Rows of a tile that threads share are a multiple of this, which is one of what the kernels here
/// compute at a time: 12 rows, 8, 6 or 4.
pub(super) const SHARED_STEP: usize = 24;

/// The rows that a thread begins with are a multiple of this: fewer than a tile's are computed two at a time where units
/// are many.
pub(super) const SHARE_ROWS: usize = 2;

/// Bytes of weights that a core reads in a nanosecond where they are used once.
const WEIGHTS_READ: usize = 16;

/// Where the rows of the product come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rows {
    /// Pixels of images under a filter.
    Images(ConvAttributes),
    /// The batches of a fully connected layer.
    Batches,
}

impl Rows {
    pub(super) fn geometry(&self, input: &[u32], filter: &[u32]) -> Result<Conv, OpError> {
        match self {
            Rows::Images(attributes) => geometry::dense(attributes, input, filter),
            Rows::Batches => geometry::fully_connected(input, filter),
        }
    }

    pub(super) fn task(&self) -> Task {
        match self {
            Rows::Images(_) => Task::Convolution,
            Rows::Batches => Task::FullyConnected,
        }
    }
}

/// Rows of a tile when each takes `row_bytes`.
pub(super) fn tile_rows(row_bytes: usize) -> usize {
    (TILE_BYTES / row_bytes.max(1)).next_multiple_of(TILE_STEP)
}

/// How the outputs of a product of one row are shared: each thread reads weights of its own, of so many bytes each.
pub(super) fn one_row_tiling(conv: &Conv, step: usize, bytes: usize) -> Tiling {
    let units = conv.filter.outputs;
    let nanos = speed::nanos(&[conv.depth(), units, bytes], WEIGHTS_READ);
    Tiling { row_len: 1, step, share_step: None, least: step, most: units, nanos }
}

pub(super) fn sizes_differ() -> OpError {
    OpError::Internal { what: "operand sizes of a convolution" }
}
