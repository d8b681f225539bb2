//! What has been freed goes back to the system, so that what accounts have in use is what the process takes.
//!
//! The heap of the C library keeps freed memory, for each of its arenas by itself, and a thread takes the arena that
//! is free just then. A user who has much at once, again and again, from many threads would leave the process with
//! several times what a limit allows, of which no account has anything in use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_shm::give_back_freed_memory;

use crate::panics::lock;
use crate::threads;

/// After so many bytes that accounts gave back, the heap is tidied: less is not worth the time.
const WORTH_TIDYING: u64 = 64 << 20;

/// After so many it is when a client is gone.
const WORTH_TIDYING_AT_AN_END: u64 = 1 << 20;

/// It is tidied so long after there was a reason. Much that one client frees comes together in it, and no client can
/// have the heap tidied more often.
const DELAY: Duration = Duration::from_secs(1);

/// The heap of this process, as far as it is tidied.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Bytes that accounts gave back since it was tidied. Relaxed: a count, which orders nothing.
    freed: AtomicU64,
    tidying: Mutex<Tidying>,
}

#[derive(Debug, Default)]
struct Tidying {
    /// A thread waits to do it, or is doing it.
    is_under_way: bool,
    /// There has been a reason since it began the last time.
    is_wanted: bool,
}

impl Heap {
    /// An account has given back so much.
    pub(crate) fn freed(self: &Arc<Self>, bytes: u64) {
        let before = self.freed.fetch_add(bytes, Ordering::Relaxed);
        // Once per time: what comes after that is tidied with it.
        if before < WORTH_TIDYING && before.saturating_add(bytes) >= WORTH_TIDYING {
            self.tidy_soon();
        }
    }

    /// A client is gone, and all that was held for it.
    pub(crate) fn client_is_gone(self: &Arc<Self>) {
        if self.freed.load(Ordering::Relaxed) >= WORTH_TIDYING_AT_AN_END {
            self.tidy_soon();
        }
    }

    /// On a thread of its own, which ends when there is no further reason.
    fn tidy_soon(self: &Arc<Self>) {
        let mut tidying = lock(&self.tidying);
        tidying.is_wanted = true;
        if tidying.is_under_way {
            return;
        }
        tidying.is_under_way = true;
        drop(tidying);
        let started = threads::start("heap".to_owned(), Arc::clone(self), |heap| {
            while heap.is_wanted() {
                std::thread::sleep(DELAY);
                heap.tidy();
            }
        });
        if started.is_err() {
            // Whoever gives back next tries again.
            self.freed.store(0, Ordering::Relaxed);
            *lock(&self.tidying) = Tidying::default();
        }
    }

    /// Whether to go on; if not, the next one with a reason starts a thread.
    fn is_wanted(&self) -> bool {
        let mut tidying = lock(&self.tidying);
        tidying.is_under_way = tidying.is_wanted;
        tidying.is_wanted
    }

    fn tidy(&self) {
        // What is freed from here on is a reason for the next time.
        lock(&self.tidying).is_wanted = false;
        self.freed.store(0, Ordering::Relaxed);
        let began = Instant::now();
        let gave_back = give_back_freed_memory();
        tracing::debug!(gave_back, took = ?began.elapsed(), "freed memory goes back to the system");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until the thread has ended.
    fn wait_for(heap: &Arc<Heap>) {
        let until = Instant::now() + Duration::from_secs(60);
        while Arc::strong_count(heap) > 1 {
            assert!(Instant::now() < until, "it is not tidied");
            std::thread::yield_now();
        }
        assert!(!lock(&heap.tidying).is_under_way);
    }

    #[test]
    fn it_is_tidied_for_what_is_worth_it_by_one_thread_at_a_time() {
        let heap = Arc::new(Heap::default());
        let freed = || heap.freed.load(Ordering::Relaxed);
        heap.freed(WORTH_TIDYING_AT_AN_END - 1);
        heap.client_is_gone();
        assert_eq!(Arc::strong_count(&heap), 1, "too little");
        heap.freed(1);
        heap.client_is_gone();
        wait_for(&heap);
        assert_eq!(freed(), 0);
        for _ in 0..3 {
            heap.freed(WORTH_TIDYING);
            heap.client_is_gone();
            assert!(Arc::strong_count(&heap) <= 2, "one thread for all of it");
        }
        wait_for(&heap);
        assert_eq!(freed(), 0);
    }

    #[test]
    fn what_is_freed_while_it_is_tidied_is_a_reason_to_do_it_again() {
        let heap = Arc::new(Heap::default());
        heap.freed(WORTH_TIDYING);
        heap.tidy();
        heap.freed(WORTH_TIDYING);
        assert!(lock(&heap.tidying).is_wanted);
        wait_for(&heap);
        assert_eq!(heap.freed.load(Ordering::Relaxed), 0);
    }
}
