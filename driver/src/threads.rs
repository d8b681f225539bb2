//! Several threads for one operation.
//!
//! A device has one [`ThreadPool`]: the thread that executes, and helpers that wait for it
//! (`threads/pool.rs`). A kernel that wants help cuts its output into tiles of whole rows and gives
//! them to its [`Parallelism`]; each thread that is free takes the next tile, and the call returns when
//! all tiles are done. A helper that starts late takes the tiles that are left; the call does not wait
//! for a helper that never starts.
//!
//! Every value is computed by one thread, in the same order of operations whichever tile it falls
//! into: results are the same bits for every number of threads. A kernel must therefore treat the
//! rows of a tile independently of each other.

use std::slice::ChunksMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use crate::OpError;
use crate::scratch::Scratch;
use crate::stop::Stop;

mod affinity;
mod pool;
mod scoped_job;
mod sync;

pub(crate) use pool::{Scope, ThreadPool};

/// Most threads of a device: more than the CPUs of the machines this is for, few enough that they
/// cost nothing while they sleep.
pub const MAX_THREADS: usize = 64;

/// Work that takes less is not shared, in nanoseconds: handing it over, waiting for the last tile and reading
/// what another core has written take one or two microseconds.
const LEAST_SHARED: u64 = 5_000;

/// Tiles are at least this much work, in nanoseconds, or a thread's whole share. Each tile reads all weights once more. And a
/// tile that a thread takes from another one's share costs twice: its input comes from the other core's cache, and the next
/// operation reads its output back from there.
const LEAST_TILE: u64 = 40_000;

/// Work for which sleeping helpers are woken, in nanoseconds: a wake-up costs the waking thread a few
/// microseconds, and the helper needs some tens until it runs.
const LEAST_WOKEN: u64 = 50_000;

/// Tiles per thread, where the work is large enough for them: small tiles leave little work undone
/// when a helper is preempted.
const TILES_PER_THREAD: usize = 4;

/// Most runs of tiles that an output is cut into. Each thread begins with a run of its own, so that
/// the rows it reads are mostly those it wrote in the operation before; with more threads than runs
/// several begin with the same.
const MAX_TILE_RUNS: usize = 8;

/// How much a core does in a nanosecond, for estimates of what work takes. Roughly what our kernels
/// reach with wide vectors; on other machines work takes longer, and is worth sharing all the more.
pub(crate) mod speed {
    /// Multiplications of floats, added up, in matrix products.
    pub(crate) const FLOAT_PRODUCTS: usize = 64;
    /// Multiplications of depthwise convolutions.
    pub(crate) const CHANNEL_PRODUCTS: usize = 12;
    /// Bytes read and written one after the other.
    pub(crate) const BYTES: usize = 8;

    /// How much of the work on quantized values.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct OfBytes {
        /// Multiplications, added up, in matrix products.
        pub(crate) products: usize,
        /// Multiplications of depthwise convolutions.
        pub(crate) channel_products: usize,
        /// Sums of a product that become stored values: where a sum has few products, that is most of the work.
        pub(crate) values: usize,
    }

    /// With vectors of 512 bits, or of 256 at most.
    #[must_use]
    pub(crate) fn of_bytes(wide: bool) -> OfBytes {
        match wide {
            true => OfBytes { products: 160, channel_products: 12, values: 12 },
            false => OfBytes { products: 80, channel_products: 6, values: 2 },
        }
    }

    /// What the product of these takes, in nanoseconds, at so many in one.
    #[must_use]
    pub(crate) fn nanos(factors: &[usize], in_a_nanosecond: usize) -> u64 {
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
    /// `None`: a tile begins at a multiple of the step, as it has to where steps are those of packed weights or of cache
    /// lines. Otherwise it may begin at any row, and the rows that a thread begins with are a multiple of this many,
    /// apart from the first thread's.
    pub share_step: Option<usize>,
    /// Least rows of a tile, where the work is shared.
    pub least: usize,
    /// Most rows of a tile, rounded up to the step. The deadline and the cancel
    /// flag are checked between tiles.
    pub most: usize,
    /// What all rows take one core, in nanoseconds, by estimate.
    pub nanos: u64,
}

impl Tiling {
    /// Tiling for an elementwise operation: each value depends on those at the same index of other
    /// tensors; `bytes` are read and written in all.
    #[must_use]
    pub fn values(bytes: usize) -> Self {
        /// Whole cache lines, so that no two threads write to one, and enough for vectors.
        const STEP: usize = 1024;
        /// Far below a millisecond.
        const MOST: usize = 1 << 18;
        Tiling {
            row_len: 1,
            step: STEP,
            share_step: None,
            least: STEP,
            most: MOST,
            nanos: speed::nanos(&[bytes], speed::BYTES),
        }
    }

    /// Rows of a tile when `threads` share `rows` of them.
    fn shared_rows(&self, rows: usize, threads: usize, least_nanos: u64) -> usize {
        let own = rows.div_ceil(threads);
        let by_time = least_nanos.saturating_mul(rows as u64).div_ceil(self.nanos.max(1));
        let by_time = usize::try_from(by_time).unwrap_or(usize::MAX);
        let wanted = own.div_ceil(TILES_PER_THREAD).max(self.least).max(by_time).min(self.most);
        // All of a thread's own tiles alike: what is left over would take its time for a few rows.
        let tiles = own.div_ceil(wanted.max(1)).max(1);
        self.whole_steps(own.div_ceil(tiles).max(self.least.min(self.most)))
    }

    fn whole_steps(&self, rows: usize) -> usize {
        rows.clamp(1, usize::MAX / 2).next_multiple_of(self.step.max(1))
    }
}

/// The threads that an execution may use.
#[derive(Debug, Clone, Copy)]
pub struct Parallelism<'a> {
    /// `None`: the calling thread alone.
    scope: Option<&'a Scope<'a>>,
    least_shared: u64,
    least_tile: u64,
}

impl<'a> Parallelism<'a> {
    /// The calling thread, alone.
    pub(crate) const ALONE: Parallelism<'static> =
        Parallelism { scope: None, least_shared: LEAST_SHARED, least_tile: LEAST_TILE };

    /// The calling thread and the helpers of a pool.
    pub(crate) fn of(scope: Option<&'a Scope<'a>>) -> Self {
        Parallelism { scope, ..Parallelism::ALONE }
    }

    /// As [`Parallelism::of`], but shares even the smallest work.
    #[cfg(test)]
    pub(crate) fn eager(scope: &'a Scope<'a>) -> Self {
        Parallelism { scope: Some(scope), least_shared: 0, least_tile: 0 }
    }

    /// How many threads there are, at least 1.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.scope.map_or(1, Scope::threads)
    }

    /// Whether work cut like this is given to several threads, as far as that depends on how much it is.
    #[must_use]
    pub(crate) fn shares(&self, tiling: &Tiling) -> bool {
        self.scope.is_some() && tiling.nanos >= self.least_shared
    }

    /// Computes every tile of `out`: `compute` gets the number of the tile's first row, the tile,
    /// and working memory of the thread it runs on. Checks `stop` before each tile.
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
        if let Some(scope) = self.scope.filter(|_| tiling.nanos >= self.least_shared) {
            let tile = tiling.shared_rows(rows, scope.threads(), self.least_tile);
            if tile < rows {
                let runs = TileRuns::new(out, tiling, tile, scope.threads());
                return runs.share(scope, tiling.nanos, scratch, stop, &compute);
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

/// Runs the tiles of an output: the threads, working memory of the calling one, and when to give up.
#[derive(Debug)]
pub struct TileRunner<'r> {
    /// The threads.
    pub parallelism: Parallelism<'r>,
    /// Working memory of the calling thread.
    pub scratch: &'r mut Scratch,
    /// When to give up.
    pub stop: Stop<'r>,
}

impl TileRunner<'_> {
    /// See [`Parallelism::tiles`].
    ///
    /// # Errors
    /// As [`Parallelism::tiles`].
    pub fn tiles<T: Send>(
        &mut self,
        tiling: &Tiling,
        out: &mut [T],
        compute: impl Fn(usize, &mut [T], &mut Scratch) -> Result<(), OpError> + Sync,
    ) -> Result<(), OpError> {
        self.parallelism.tiles(tiling, out, self.scratch, self.stop, compute)
    }

    /// Writes `compute(value)` to `out` for each value of `input`, which has as many; each takes
    /// about `nanos`.
    ///
    /// # Errors
    /// [`OpError::Internal`] for another number of values, and as [`Parallelism::tiles`].
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
struct TileRun<'o, T> {
    next_row: usize,
    tiles: ChunksMut<'o, T>,
}

/// An output cut into runs of tiles.
struct TileRuns<'o, T> {
    tile_rows: usize,
    runs: SmallVec<[Mutex<TileRun<'o, T>>; MAX_TILE_RUNS]>,
    failed: AtomicBool,
    failure: Mutex<Option<OpError>>,
}

/// Locks. No code here panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'o, T: Send> TileRuns<'o, T> {
    fn new(out: &'o mut [T], tiling: &Tiling, tile_rows: usize, threads: usize) -> Self {
        let (row_len, step) = (tiling.row_len.max(1), tiling.step.max(1));
        let rows = out.len().div_ceil(row_len);
        let count = threads.min(MAX_TILE_RUNS).min(rows.div_ceil(tile_rows)).max(1);
        let (mut runs, mut rest, mut first) = (SmallVec::new(), out, 0);
        for run in 1..=count {
            // Of nearly equal length, in whole steps; not in whole tiles, which may be half of the work each. What is not a
            // whole step is left to the first run where that can be: its thread is there before any helper.
            let whole = |rows: usize, step: usize| (rows + step / 2) / step * step;
            let end = match (run == count, tiling.share_step) {
                (true, _) => rows,
                (_, Some(step)) => {
                    rows - whole(rows * (count - run) / count, step.max(1)).min(rows)
                }
                (_, None) => whole(rows * run / count, step),
            }
            .max(first);
            let (own, others) = rest.split_at_mut(((end - first) * row_len).min(rest.len()));
            rest = others;
            runs.push(Mutex::new(TileRun {
                next_row: first,
                tiles: own.chunks_mut(tile_rows * row_len),
            }));
            first = end;
        }
        TileRuns { tile_rows, runs, failed: AtomicBool::new(false), failure: Mutex::default() }
    }

    /// Takes the next tile of a run: its first row, and the tile.
    fn take(&self, run: usize) -> Option<(usize, &'o mut [T])> {
        let mut run = lock(self.runs.get(run)?);
        let tile = run.tiles.next()?;
        let row = run.next_row;
        run.next_row += self.tile_rows;
        Some((row, tile))
    }

    fn share(
        &self,
        scope: &Scope<'_>,
        nanos: u64,
        scratch: &mut Scratch,
        stop: Stop,
        compute: &(impl Fn(usize, &mut [T], &mut Scratch) -> Result<(), OpError> + Sync),
    ) -> Result<(), OpError> {
        let work = |number: usize, scratch: &mut Scratch| {
            for offset in 0..self.runs.len() {
                let run = (number + offset) % self.runs.len();
                // Relaxed: once a tile has failed, it does not matter whether another one is still computed.
                while !self.failed.load(Ordering::Relaxed)
                    && let Some((row, tile)) = self.take(run)
                {
                    if let Err(error) = stop.check().and_then(|()| compute(row, tile, scratch)) {
                        lock(&self.failure).get_or_insert(error);
                        self.failed.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        scope
            .share(&work, nanos >= LEAST_WOKEN, scratch)
            .map_err(|_| OpError::Internal { what: "a thread that helped to compute panicked" })?;
        lock(&self.failure).take().map_or(Ok(()), Err)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "threads/tests.rs"]
mod tests;
