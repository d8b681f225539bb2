//! What this machine offers for waiting: how many threads may spin, and what a sleep costs.

#[cfg(not(loom))]
mod measured {
    use std::num::NonZeroU32;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    use crate::clock::{self, Deadline};
    use crate::futex;

    /// Used where the cost cannot be measured (no thread can be started).
    const USUAL_SLEEP_NS: u64 = 50_000;
    /// A measurement outside this range was disturbed.
    const PLAUSIBLE_NS: std::ops::RangeInclusive<u64> = 4_000..=200_000;
    const ROUNDS: usize = 9;

    static SPINNERS: AtomicUsize = AtomicUsize::new(0);

    /// How many threads of this process may spin at once: one CPU is left for those they wait for.
    /// Read once: later changes of the affinity are not seen.
    pub fn max_spinners() -> usize {
        static MAX: OnceLock<usize> = OnceLock::new();
        *MAX.get_or_init(|| std::thread::available_parallelism().map_or(0, |n| n.get() - 1))
    }

    /// What it costs that both sides of a conversation sleep, in nanoseconds: two wakes. Measured
    /// at the first call (about a millisecond).
    pub fn sleep_cost_ns() -> u64 {
        static COST: OnceLock<u64> = OnceLock::new();
        *COST.get_or_init(|| measure().unwrap_or(USUAL_SLEEP_NS))
    }

    /// The right to spin, given back on drop.
    #[derive(Debug)]
    pub struct SpinSlot(());

    impl SpinSlot {
        /// A slot, if one is left.
        pub fn take() -> Option<SpinSlot> {
            if SPINNERS.fetch_add(1, Ordering::Relaxed) < max_spinners() {
                return Some(SpinSlot(()));
            }
            SPINNERS.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }

    impl Drop for SpinSlot {
        fn drop(&mut self) {
            SPINNERS.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Two threads hand a word to and fro, sleeping in between; the median round trip.
    fn measure() -> Option<u64> {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let echo = std::thread::Builder::new()
            .name("fmq-measure".into())
            .spawn(move || (0..ROUNDS).for_each(|_| hand_over(&theirs, 1, 0)))
            .ok()?;
        let mut trips = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = clock::now_ns();
            word.store(1, Ordering::Release);
            wake(&word);
            sleep_while(&word, 1);
            trips.push(clock::now_ns() - start);
        }
        echo.join().ok()?;
        trips.sort_unstable();
        let median = trips[ROUNDS / 2];
        Some(median.clamp(*PLAUSIBLE_NS.start(), *PLAUSIBLE_NS.end()))
    }

    /// Waits for `from`, answers `to`.
    fn hand_over(word: &AtomicU32, from: u32, to: u32) {
        while word.load(Ordering::Acquire) != from {
            sleep_while(word, to);
        }
        word.store(to, Ordering::Release);
        wake(word);
    }

    fn sleep_while(word: &AtomicU32, value: u32) {
        while word.load(Ordering::Acquire) == value {
            // A failed call is a spurious wake: the loop looks at the word.
            let _ = futex::wait(word, value, NonZeroU32::MAX, Deadline::never());
        }
    }

    fn wake(word: &AtomicU32) {
        let _ = futex::wake(word, NonZeroU32::MAX);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_cost_of_sleeping_is_plausible_and_measured_once() {
            let cost = sleep_cost_ns();
            assert!(PLAUSIBLE_NS.contains(&cost), "{cost}");
            assert_eq!(sleep_cost_ns(), cost);
        }

        #[test]
        fn no_more_slots_than_cpus_less_one() {
            let slots: Vec<SpinSlot> = std::iter::from_fn(SpinSlot::take).collect();
            assert!(slots.len() <= max_spinners(), "{}", slots.len());
            drop(slots);
            assert!(max_spinners() == 0 || SpinSlot::take().is_some(), "they come back");
        }
    }
}

#[cfg(loom)]
mod measured {
    /// Models do not spin.
    pub fn max_spinners() -> usize {
        0
    }

    /// Not used without spinning.
    pub fn sleep_cost_ns() -> u64 {
        1
    }

    /// Never given.
    #[derive(Debug)]
    pub struct SpinSlot(());

    impl SpinSlot {
        /// None.
        pub fn take() -> Option<SpinSlot> {
            None
        }
    }
}

pub use measured::{SpinSlot, max_spinners, sleep_cost_ns};

/// Reads the number of CPUs and measures the cost of a sleep now rather than at the first wait.
///
/// Call it once at start: it takes about a millisecond, reads files of the control group and
/// starts a short-lived thread, none of which suits the first request or a locked-down process.
pub fn warm_up() {
    if max_spinners() > 0 {
        sleep_cost_ns();
    }
}
