//! What this machine offers for waiting: how many threads may spin, and what a sleep costs.

#[cfg(not(loom))]
mod measured {
    use std::num::NonZeroU32;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::thread::JoinHandle;

    use rustix::process::getpid;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use crate::clock::{self, Deadline};
    use crate::futex;

    /// Used where the cost cannot be measured (no thread can be started).
    const USUAL_SLEEP_NS: u64 = 50_000;
    /// A measurement outside this range was disturbed.
    const PLAUSIBLE_NS: std::ops::RangeInclusive<u64> = 4_000..=200_000;
    const ROUNDS: usize = 9;

    static SPINNERS: AtomicUsize = AtomicUsize::new(0);

    /// How many threads of this process may spin at once. Read once: later changes are not seen.
    ///
    /// None where the machine has one CPU: the peer could not run while this end spins. A process that is
    /// tied to some of several CPUs may still spin, as its peer may well be on another.
    pub fn max_spinners() -> usize {
        static MAX: OnceLock<usize> = OnceLock::new();
        *MAX.get_or_init(|| {
            let (online, ours) = (cpus_online().len(), cpus_of_process().len());
            match online {
                0 | 1 => 0,
                _ => ours.min(online).saturating_sub(1).max(1),
            }
        })
    }

    /// CPUs of the machine; those of the process where the machine does not tell.
    fn cpus_online() -> Vec<usize> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let cpus = parse_cpu_list(text.trim());
        if cpus.is_empty() { cpus_of_process() } else { cpus }
    }

    /// CPUs that the main thread may use; other threads may be tied to one each.
    fn cpus_of_process() -> Vec<usize> {
        let allowed = sched_getaffinity(Some(getpid()));
        let is_set = |cpu: &usize| allowed.as_ref().is_ok_and(|set| set.is_set(*cpu));
        (0..CpuSet::MAX_CPU).filter(is_set).collect()
    }

    /// The kernel's form of a list of CPUs: `0-3,8`.
    fn parse_cpu_list(text: &str) -> Vec<usize> {
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        };
        text.split(',').filter_map(range).flatten().take(CpuSet::MAX_CPU).collect()
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

    /// Two threads on two CPUs hand a word to and fro, sleeping in between; the median round trip.
    ///
    /// Threads of their own, because they are tied to their CPUs: on a busy machine both would
    /// otherwise end up on one, where a sleep costs a tenth, and the budget would be too small to
    /// ever see an answer that comes from another CPU.
    fn measure() -> Option<u64> {
        let word = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&word);
        let [here, there] = two_cpus();
        let echo = spawn(there, move || (0..ROUNDS).for_each(|_| hand_over(&theirs, 1, 0)))?;
        let timer = spawn(here, move || (0..ROUNDS).map(|_| round_trip(&word)).collect());
        let trips: Option<Vec<u64>> = timer.and_then(|timer| timer.join().ok());
        // Without a timer the echo would wait for ever: it is left behind then, asleep.
        let mut trips = trips?;
        echo.join().ok()?;
        trips.sort_unstable();
        let median = trips[ROUNDS / 2];
        Some(median.clamp(*PLAUSIBLE_NS.start(), *PLAUSIBLE_NS.end()))
    }

    /// Two CPUs to measure on: of the process where it has two, else of the machine.
    fn two_cpus() -> [Option<usize>; 2] {
        let ours = cpus_of_process();
        let first = ours.first().copied();
        let others = ours.into_iter().chain(cpus_online()).find(|cpu| Some(*cpu) != first);
        [first, others]
    }

    fn spawn<T: Send + 'static>(
        cpu: Option<usize>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        let pinned_work = move || {
            if let Some(cpu) = cpu {
                let mut only = CpuSet::new();
                only.set(cpu);
                // Refused: measured where the scheduler puts us.
                let _ = sched_setaffinity(None, &only);
            }
            work()
        };
        std::thread::Builder::new().name("fmq-measure".into()).spawn(pinned_work).ok()
    }

    fn round_trip(word: &AtomicU32) -> u64 {
        let start = clock::now_ns();
        word.store(1, Ordering::Release);
        wake(word);
        sleep_while(word, 1);
        clock::now_ns() - start
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
            // A failed call is a spurious wake-up: the loop reads the word.
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
        fn lists_of_cpus_are_understood() {
            assert_eq!(parse_cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
            assert_eq!(parse_cpu_list("5"), [5]);
            for nonsense in ["", "x", "3-", "4-2"] {
                assert!(parse_cpu_list(nonsense).is_empty(), "{nonsense}");
            }
        }

        #[test]
        fn a_thread_tied_to_one_cpu_may_still_spin() {
            let tied = std::thread::spawn(|| {
                let mut one = CpuSet::new();
                one.set(cpus_of_process()[0]);
                sched_setaffinity(None, &one).unwrap();
                max_spinners()
            });
            let cpus = cpus_online().len();
            assert_eq!(tied.join().unwrap() > 0, cpus > 1, "{cpus} CPUs");
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
