//! What two cache lines, one each way, take between two CPUs: what a message and its answer take at least, and what threads that
//! share a model meet at every operation. On a virtual machine it changes by itself, for minutes at a time, when the host moves CPUs
//! (`docs/decisions/0037-two-lines-near-and-far.md`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::median;
use crate::machine::pin;

/// Two CPUs are far from each other where two lines, one each way, take longer than this, in nanoseconds. On machines
/// where both were seen they take 140 to 190 near, also where the cores do other work, and 300 and more far.
pub const FAR_ABOVE_NS: f64 = 230.0;

/// Round trips that are timed together, and how often.
const TRIPS: u64 = 50;
const BATCHES: u64 = 40;
/// After so long two threads evidently share a CPU.
pub const PATIENCE: Duration = Duration::from_millis(20);
/// Looks at the other thread's line between two looks at the clock.
const LOOKS: u32 = 4096;
/// Ends the other thread.
const END: u64 = u64::MAX;

/// A word in a cache line of its own, and of the next one, which processors fetch with it.
#[repr(align(128))]
#[derive(Default)]
struct Word(AtomicU64);

/// A round trip between this thread and another one over two cache lines, in nanoseconds: the median of those that are over by the end of
/// `patience`. `None` where hardly any are, as where both threads share a CPU.
#[must_use]
pub fn two_lines_ns(patience: Duration) -> Option<f64> {
    with_echo(None, patience)
}

/// The same between two CPUs. `None` also where the system lets no thread of this process run on one of them.
#[must_use]
pub fn two_lines_between_ns([here, there]: [usize; 2], patience: Duration) -> Option<f64> {
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            pin(here).ok()?;
            with_echo(Some(there), patience)
        });
        measured.join().ok().flatten()
    })
}

/// A round trip between this thread and one that is kept on a CPU.
fn with_echo(cpu: Option<usize>, patience: Duration) -> Option<f64> {
    let (there, back) = (Word::default(), Word::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if cpu.is_none_or(|cpu| pin(cpu).is_ok()) {
                echo(&there, &back);
            }
        });
        let found = median(batches(&there, &back, patience));
        // Release, and Acquire in `echo`, as for each trip: nothing but the number is handed over.
        there.0.store(END, Ordering::Release);
        found
    })
}

/// Nanoseconds of a trip, of each batch; what there is by the time that patience ends.
fn batches(there: &Word, back: &Word, patience: Duration) -> Vec<f64> {
    let begun = Instant::now();
    let mut found = Vec::new();
    for batch in 0..BATCHES {
        let started = Instant::now();
        for trip in 1..=TRIPS {
            let number = batch * TRIPS + trip;
            there.0.store(number, Ordering::Release);
            let mut looks = 0;
            while back.0.load(Ordering::Acquire) != number {
                looks += 1;
                if looks % LOOKS == 0 && begun.elapsed() > patience {
                    return found;
                }
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "microseconds")]
        found.push(started.elapsed().as_nanos() as f64 / TRIPS as f64);
    }
    found
}

/// Answers each number with itself.
fn echo(there: &Word, back: &Word) {
    let mut last = 0;
    loop {
        let number = there.0.load(Ordering::Acquire);
        if number == END {
            return;
        }
        if number != last {
            back.0.store(number, Ordering::Release);
            last = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::CpuSet;

    use super::*;
    use crate::machine::usable_cpus;

    /// Threads that share a CPU take turns, some milliseconds each: that is time enough for some trips.
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_trip_over_two_lines_takes_some_time() {
        let nanos = two_lines_ns(LONG).unwrap();
        assert!(nanos.is_finite() && nanos > 1.0, "{nanos}");
    }

    #[test]
    fn between_two_cpus_both_threads_run_on_them_and_this_one_where_it_may() {
        let usable = usable_cpus().unwrap();
        let pair = [usable[0], *usable.last().unwrap()];
        let nanos = two_lines_between_ns(pair, LONG).unwrap();
        assert!(nanos.is_finite() && nanos > 1.0, "{nanos}");
        assert_eq!(usable_cpus().unwrap(), usable);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_found_out_from_either_side() {
        let here = usable_cpus().unwrap()[0];
        let nowhere = CpuSet::MAX_CPU - 1;
        assert_eq!(two_lines_between_ns([nowhere, here], LONG), None);
        assert_eq!(two_lines_between_ns([here, nowhere], Duration::from_millis(1)), None);
    }
}
