//! The threads that the matrix library's products run on.
//!
//! The library splits work over the rayon pool of the calling thread. A thread without a pool would
//! use the global one: every core of the machine, with a wake-up and an allocation per product. In a
//! pool of one the library computes on the calling thread, and never calls the pool.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the global pool is our own pool of one.
static OWNS_GLOBAL_POOL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static ENTERED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread compute products of the library alone. Called before each product.
///
/// Where the [global pool is ours](own_global_pool) there is nothing to do. Elsewhere the thread becomes a pool
/// of one, with its first product; rayon keeps some 8 KiB for such a thread also when it has ended. A thread
/// that already belongs to a pool (an application's own worker) is left there: it is the
/// application's choice.
pub(crate) fn enter() {
    ENTERED.with(|entered| {
        if entered.replace(true) {
            return;
        }
        // Relaxed: a thread that does not see it yet makes its own pool, which does no harm.
        if OWNS_GLOBAL_POOL.load(Ordering::Relaxed) {
            return;
        }
        let alone = rayon_core::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        if let Err(error) = alone.build() {
            tracing::debug!(%error, "this thread keeps the pool it has");
        }
    });
}

/// Makes rayon's global pool one of a single thread, so that every thread of the process computes
/// alone and leaves nothing behind when it ends. Where the pool is there already, nothing changes.
pub(crate) fn own_global_pool() {
    static TRIED: Once = Once::new();
    TRIED.call_once(|| {
        let global = rayon_core::ThreadPoolBuilder::new().num_threads(1);
        match global.thread_name(|_| "burst-rayon".to_owned()).build_global() {
            Ok(()) => OWNS_GLOBAL_POOL.store(true, Ordering::Relaxed),
            Err(error) => tracing::debug!(%error, "the global pool stays as it is"),
        }
    });
}
