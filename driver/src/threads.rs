//! Several threads for one operation.
//!
//! A device has one [`Team`]: the thread that executes, and helpers that wait for it
//! (`threads/team.rs`). A kernel that wants help cuts its output into tiles of whole rows and hands
//! them to its [`Crew`]; whoever is free takes the next tile, and the call returns when all are
//! done. A helper that comes late takes what is left; one that never comes is not waited for.
//!
//! Every value is computed by one thread, in the same order of operations whichever tile it falls
//! into: results are the same bits for every number of threads. A kernel must therefore treat the
//! rows of a tile independently of each other.

use std::slice::ChunksMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use crate::OpError;
use crate::op::Stop;
use crate::scratch::Scratch;

mod lending;
mod place;
mod sync;
mod team;

pub(crate) use team::{Shift, Team};

/// Most threads of a device: more than the CPUs of the machines this is for, few enough that they
/// cost nothing while they sleep.
pub const MAX_THREADS: usize = 64;

/// Work that takes less is not shared, in nanoseconds: handing it over and waiting for the last tile
/// takes one or two microseconds.
const LEAST_SHARED: u64 = 5_000;

/// Tiles are at least this much work, in nanoseconds.
const LEAST_TILE: u64 = 1_500;

/// Work for which helpers that sleep are woken, in nanoseconds: a wake-up takes this thread a few
/// microseconds, and the helper some tens until it is there.
const LEAST_WOKEN: u64 = 50_000;

/// Tiles per thread, where the work is large enough for them: a helper that is held up leaves
/// little behind.
const TILES_PER_THREAD: usize = 4;

/// Most runs of tiles that an output is cut into. Each thread begins with a run of its own, so that
/// the rows it reads are mostly those it wrote in the operation before; with more threads than runs
/// several begin with the same.
const MAX_LANES: usize = 8;

/// How much a core does in a nanosecond, for estimates of what work takes. Roughly what our kernels
/// reach with wide vectors; on other machines work takes longer, and is worth sharing all the more.
pub mod speed {
    /// Multiplications of floats, added up, in matrix products.
    pub const FLOAT_PRODUCTS: usize = 64;
    /// The same of bytes.
    pub const BYTE_PRODUCTS: usize = 160;
    /// Multiplications of depthwise convolutions.
    pub const CHANNEL_PRODUCTS: usize = 12;
    /// Bytes read and written one after the other.
    pub const BYTES: usize = 8;

    /// What the product of these takes, in nanoseconds, at so many in one.
    #[must_use]
    pub fn nanos(factors: &[usize], in_a_nanosecond: usize) -> u64 {
        let product =
            factors.iter().fold(1u64, |product, factor| product.saturating_mul(*factor as u64));
        product / in_a_nanosecond.max(1) as u64
    }
}

/// How the output of an operation may be cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Values of a row: what is computed as a whole.
    pub row_len: usize,
    /// Tiles are a multiple of this many rows, apart from the last one.
    pub step: usize,
    /// Least rows of a tile, where the work is shared.
    pub least: usize,
    /// Most rows of a tile, rounded up to the step. Between tiles the deadline and the cancel word are looked at.
    pub most: usize,
    /// What all rows take one core, in nanoseconds; see [`speed`].
    pub nanos: u64,
}

impl Tiling {
    /// Single values, each from those in the same place of other tensors: `bytes` are read and
    /// written in all.
    #[must_use]
    pub fn values(bytes: usize) -> Self {
        /// Whole cache lines, so that no two threads write to one, and enough for vectors.
        const STEP: usize = 1024;
        /// Far below a millisecond.
        const MOST: usize = 1 << 18;
        Tiling {
            row_len: 1,
            step: STEP,
            least: STEP,
            most: MOST,
            nanos: speed::nanos(&[bytes], speed::BYTES),
        }
    }

    /// Rows of a tile when `threads` share `rows` of them.
    fn shared_rows(&self, rows: usize, threads: usize, least_nanos: u64) -> usize {
        let by_time = least_nanos.saturating_mul(rows as u64).div_ceil(self.nanos.max(1));
        let by_time = usize::try_from(by_time).unwrap_or(usize::MAX);
        let wanted = rows.div_ceil(threads * TILES_PER_THREAD).max(self.least).max(by_time);
        self.whole_steps(wanted.min(self.most))
    }

    fn whole_steps(&self, rows: usize) -> usize {
        rows.clamp(1, usize::MAX / 2).next_multiple_of(self.step.max(1))
    }
}

/// The threads that an execution may use.
#[derive(Debug, Clone, Copy)]
pub struct Crew<'a> {
    /// `None`: the calling thread alone.
    shift: Option<&'a Shift<'a>>,
    least_shared: u64,
    least_tile: u64,
}

impl<'a> Crew<'a> {
    /// The calling thread, alone.
    pub const ALONE: Crew<'static> =
        Crew { shift: None, least_shared: LEAST_SHARED, least_tile: LEAST_TILE };

    /// The calling thread and the helpers of a team.
    pub(crate) fn of(shift: Option<&'a Shift<'a>>) -> Self {
        Crew { shift, ..Crew::ALONE }
    }

    /// A crew that shares work however little it is.
    #[cfg(test)]
    pub(crate) fn eager(shift: &'a Shift<'a>) -> Self {
        Crew { shift: Some(shift), least_shared: 0, least_tile: 0 }
    }

    /// How many threads there are, at least 1.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shift.map_or(1, Shift::threads)
    }

    /// Computes every tile of `out`: `compute` gets the number of the tile's first row, the tile,
    /// and working memory of the thread it runs on. Looks at `stop` before each tile.
    ///
    /// # Errors
    /// The first error of `stop` or `compute`, after which no further tile is begun;
    /// [`OpError::Internal`] when a helper panicked.
    pub fn tiles<T: Send>(
        &self,
        tiling: &Tiling,
        out: &mut [T],
        scratch: &mut Scratch,
        stop: Stop,
        compute: impl Fn(usize, &mut [T], &mut Scratch) -> Result<(), OpError> + Sync,
    ) -> Result<(), OpError> {
        let row_len = tiling.row_len.max(1);
        let rows = out.len() / row_len;
        if let Some(shift) = self.shift.filter(|_| tiling.nanos >= self.least_shared) {
            let tile = tiling.shared_rows(rows, shift.threads(), self.least_tile);
            if tile < rows {
                let lanes = Lanes::new(out, row_len, tile, shift.threads());
                return lanes.share(shift, tiling.nanos, scratch, stop, &compute);
            }
        }
        let tile = tiling.whole_steps(tiling.most);
        for (index, out) in out.chunks_mut(tile.saturating_mul(row_len)).enumerate() {
            stop.check()?;
            compute(index * tile, out, scratch)?;
        }
        Ok(())
    }
}

/// A crew with what it needs: working memory of the calling thread, and when to give up.
#[derive(Debug)]
pub struct Hands<'r> {
    /// The threads.
    pub crew: Crew<'r>,
    /// Working memory of the calling thread.
    pub scratch: &'r mut Scratch,
    /// When to give up.
    pub stop: Stop<'r>,
}

impl Hands<'_> {
    /// See [`Crew::tiles`].
    ///
    /// # Errors
    /// As [`Crew::tiles`].
    pub fn tiles<T: Send>(
        &mut self,
        tiling: &Tiling,
        out: &mut [T],
        compute: impl Fn(usize, &mut [T], &mut Scratch) -> Result<(), OpError> + Sync,
    ) -> Result<(), OpError> {
        self.crew.tiles(tiling, out, self.scratch, self.stop, compute)
    }

    /// Writes `compute(value)` to `out` for each value of `input`, which has as many; each takes
    /// about `nanos`.
    ///
    /// # Errors
    /// [`OpError::Internal`] for another number of values, and as [`Crew::tiles`].
    pub fn map<I: Copy + Sync, O: Send>(
        &mut self,
        input: &[I],
        out: &mut [O],
        nanos: usize,
        compute: impl Fn(I) -> O + Sync,
    ) -> Result<(), OpError> {
        if input.len() != out.len() {
            return Err(OpError::Internal { what: "an output has not its input's length" });
        }
        let tiling =
            Tiling { nanos: speed::nanos(&[out.len(), nanos], 1), ..Tiling::values(out.len()) };
        self.tiles(&tiling, out, |first, out, _| {
            for (out, value) in out.iter_mut().zip(&input[first..]) {
                *out = compute(*value);
            }
            Ok(())
        })
    }
}

/// A run of tiles of an output, taken one by one from the front.
struct Lane<'o, T> {
    next_row: usize,
    tiles: ChunksMut<'o, T>,
}

/// An output cut into runs of tiles.
struct Lanes<'o, T> {
    tile_rows: usize,
    lanes: SmallVec<[Mutex<Lane<'o, T>>; MAX_LANES]>,
    failed: AtomicBool,
    failure: Mutex<Option<OpError>>,
}

/// Locks. Nothing panics while one of these locks is held.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'o, T: Send> Lanes<'o, T> {
    fn new(out: &'o mut [T], row_len: usize, tile_rows: usize, threads: usize) -> Self {
        let tile_len = tile_rows * row_len;
        let tiles = out.len().div_ceil(tile_len);
        let count = threads.min(MAX_LANES).min(tiles).max(1);
        let mut lanes = SmallVec::new();
        let mut rest = out;
        for lane in 0..count {
            let (first, end) = (lane * tiles / count, (lane + 1) * tiles / count);
            let len = ((end - first) * tile_len).min(rest.len());
            let (own, others) = rest.split_at_mut(len);
            rest = others;
            let next_row = first * tile_rows;
            lanes.push(Mutex::new(Lane { next_row, tiles: own.chunks_mut(tile_len) }));
        }
        Lanes { tile_rows, lanes, failed: AtomicBool::new(false), failure: Mutex::default() }
    }

    /// Takes the next tile of a lane: its first row, and the tile.
    fn take(&self, lane: usize) -> Option<(usize, &'o mut [T])> {
        let mut lane = lock(self.lanes.get(lane)?);
        let tile = lane.tiles.next()?;
        let row = lane.next_row;
        lane.next_row += self.tile_rows;
        Some((row, tile))
    }

    fn share(
        &self,
        shift: &Shift<'_>,
        nanos: u64,
        scratch: &mut Scratch,
        stop: Stop,
        compute: &(impl Fn(usize, &mut [T], &mut Scratch) -> Result<(), OpError> + Sync),
    ) -> Result<(), OpError> {
        let work = |number: usize, scratch: &mut Scratch| {
            for offset in 0..self.lanes.len() {
                let lane = (number + offset) % self.lanes.len();
                // Relaxed: a tile more or less does not matter once one has failed.
                while !self.failed.load(Ordering::Relaxed)
                    && let Some((row, tile)) = self.take(lane)
                {
                    if let Err(error) = stop.check().and_then(|()| compute(row, tile, scratch)) {
                        lock(&self.failure).get_or_insert(error);
                        self.failed.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        shift
            .share(&work, nanos >= LEAST_WOKEN, scratch)
            .map_err(|_| OpError::Internal { what: "a thread that helped to compute panicked" })?;
        lock(&self.failure).take().map_or(Ok(()), Err)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "threads/tests.rs"]
mod tests;
