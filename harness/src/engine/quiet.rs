//! Whether this process has the core of its CPU to itself.
//!
//! On a rented machine, and on any with two hardware threads per core, a CPU shares its core with one
//! that somebody else uses. While that one is busy everything which is limited by computing takes 1.3
//! to 2 times as long, for a millisecond or for a second. A floor that does nothing but wait for a cache
//! line hardly notices; so the floors of a round agree although the peer between them had half a core.
//! A loop that keeps all of a core's adders busy does notice: it takes the same time to a hundredth
//! where the core is ours.

use std::hint::black_box;
use std::time::Instant;

/// Iterations of the loop: about five microseconds.
const ITERATIONS: u32 = 4_000;
/// Loops of which the quickest counts: an interrupt falls into one of them at most.
const LOOPS: usize = 3;
/// Independent sums: more than a core can add at once, so that the loop is limited by its adders and
/// not by the time one addition takes.
const SUMS: usize = 8;
/// A core is shared where the loop takes longer than it can by more than this part.
const SHARED_ABOVE: f64 = 0.15;

/// How long the loop takes now, in nanoseconds.
#[must_use]
pub fn compute_ns() -> f64 {
    let times = (0..LOOPS).map(|_| {
        let start = Instant::now();
        black_box(compute(black_box([1; SUMS])));
        start.elapsed().as_secs_f64() * 1e9
    });
    times.fold(f64::INFINITY, f64::min)
}

fn compute(mut sums: [u64; SUMS]) -> [u64; SUMS] {
    for iteration in 0..ITERATIONS {
        for sum in &mut sums {
            *sum = sum.rotate_left(5).wrapping_add(u64::from(iteration));
        }
    }
    sums
}

/// Whether a loop that took `compute_ns` had to share its core, if it takes `least_ns` at best.
#[must_use]
pub fn was_shared(compute_ns: f64, least_ns: f64) -> bool {
    compute_ns > least_ns * (1.0 + SHARED_ABOVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_takes_time_and_its_sums_differ() {
        assert!(compute_ns() > 0.0);
        let one = compute([1; SUMS]);
        assert_ne!(one, compute([2; SUMS]), "it is computed");
    }

    #[test]
    fn a_core_is_shared_where_the_loop_takes_a_good_deal_longer() {
        assert!(!was_shared(100.0, 100.0) && !was_shared(114.0, 100.0));
        assert!(was_shared(116.0, 100.0) && was_shared(200.0, 100.0));
        assert!(!was_shared(100.0, f64::INFINITY), "nothing to compare with");
    }
}
