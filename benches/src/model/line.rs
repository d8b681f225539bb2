//! What two cache lines, one each way, take between two CPUs: what threads that share a model meet at every operation. On a
//! virtual machine it changes by itself, for minutes at a time, when the host moves CPUs
//! (`docs/decisions/0037-two-lines-near-and-far.md`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Round trips that are timed together, and how often.
const TRIPS: u64 = 50;
const BATCHES: u64 = 40;
/// After so long two threads evidently share a CPU.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
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
    let (there, back) = (Word::default(), Word::default());
    std::thread::scope(|scope| {
        scope.spawn(|| echo(&there, &back));
        let found = burst_harness::engine::median(batches(&there, &back, patience));
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
