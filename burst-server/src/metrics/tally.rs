//! Counts of requests: by status, executed, and by how long they took.

use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::ErrorStatus;

/// Statuses a request can end with, by code.
pub(crate) const STATUSES: usize = 9;

/// Upper bounds of the buckets, in nanoseconds: one, two and five of each power of ten from one
/// microsecond to five seconds.
pub(crate) const BOUNDS_NS: [u64; 21] = bounds();
const BUCKETS: usize = BOUNDS_NS.len() + 1;

const fn bounds() -> [u64; 21] {
    let mut bounds = [0; 21];
    let mut power = 1_000;
    let mut index = 0;
    while index < bounds.len() {
        bounds[index] = power;
        bounds[index + 1] = 2 * power;
        bounds[index + 2] = 5 * power;
        index += 3;
        power *= 10;
    }
    bounds
}

/// Counts that one thread or several write, and any may read.
///
/// Every access is relaxed: a reader sees each number as it was at some moment, and no other
/// memory depends on it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    statuses: [AtomicU64; STATUSES],
    executions: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// The counts at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) statuses: [u64; STATUSES],
    pub(crate) executions: u64,
    pub(crate) buckets: [u64; BUCKETS],
    pub(crate) nanos: u64,
}

impl Tally {
    /// Counts an answered request where the calling thread is the only one that ever counts here.
    pub(crate) fn count_alone(&self, status: ErrorStatus, nanos: Option<u64>) {
        bump(&self.statuses[index(status)], 1);
        if let Some(nanos) = nanos {
            bump(&self.buckets[bucket(nanos)], 1);
            bump(&self.nanos, nanos);
        }
    }

    /// Counts a request handed to the device, under the same condition.
    pub(crate) fn executing_alone(&self) {
        bump(&self.executions, 1);
    }

    /// Counts an answered request, from any thread.
    pub(crate) fn count(&self, status: ErrorStatus, nanos: Option<u64>) {
        self.statuses[index(status)].fetch_add(1, Ordering::Relaxed);
        if let Some(nanos) = nanos {
            self.buckets[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
            self.nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Counts a request handed to the device, from any thread.
    pub(crate) fn executing(&self) {
        self.executions.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what another tally counted.
    pub(crate) fn add(&self, other: &Tally) {
        let other = other.look();
        let add = |to: &[AtomicU64], from: &[u64]| {
            for (to, from) in to.iter().zip(from) {
                to.fetch_add(*from, Ordering::Relaxed);
            }
        };
        add(&self.statuses, &other.statuses);
        add(&self.buckets, &other.buckets);
        self.executions.fetch_add(other.executions, Ordering::Relaxed);
        self.nanos.fetch_add(other.nanos, Ordering::Relaxed);
    }

    pub(crate) fn look(&self) -> Counts {
        let mut counts = Counts::default();
        let read = |to: &mut [u64], from: &[AtomicU64]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.load(Ordering::Relaxed);
            }
        };
        read(&mut counts.statuses, &self.statuses);
        read(&mut counts.buckets, &self.buckets);
        counts.executions = self.executions.load(Ordering::Relaxed);
        counts.nanos = self.nanos.load(Ordering::Relaxed);
        counts
    }
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
        let add = |to: &mut [u64], from: &[u64]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.wrapping_add(*from);
            }
        };
        add(&mut self.statuses, &other.statuses);
        add(&mut self.buckets, &other.buckets);
        self.executions = self.executions.wrapping_add(other.executions);
        self.nanos = self.nanos.wrapping_add(other.nanos);
    }

    /// Requests that were timed.
    pub(crate) fn timed(&self) -> u64 {
        self.buckets.iter().sum()
    }

    #[cfg(test)]
    pub(crate) fn requests(&self) -> u64 {
        self.statuses.iter().sum()
    }
}

/// Adds without the cost of an atomic read-modify-write: no other thread writes here.
#[inline]
fn bump(counter: &AtomicU64, by: u64) {
    let next = counter.load(Ordering::Relaxed).wrapping_add(by);
    counter.store(next, Ordering::Relaxed);
}

fn index(status: ErrorStatus) -> usize {
    usize::try_from(status.code()).unwrap_or(STATUSES).min(STATUSES - 1)
}

/// The first bucket whose bound is not below; the last one has none.
fn bucket(nanos: u64) -> usize {
    BOUNDS_NS.partition_point(|bound| *bound < nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_the_bucket_that_holds_them() {
        for (nanos, want) in [
            (0, 0),
            (1_000, 0),
            (1_001, 1),
            (2_000, 1),
            (4_999, 2),
            (5_001, 3),
            (5_000_000_000, 20),
            (5_000_000_001, 21),
            (u64::MAX, 21),
        ] {
            assert_eq!(bucket(nanos), want, "{nanos}");
        }
        assert!(BOUNDS_NS.is_sorted());
    }

    #[test]
    fn every_status_has_a_counter_of_its_own() {
        let tally = Tally::default();
        for code in 0..9 {
            tally.count(ErrorStatus::from_code(code).unwrap(), None);
        }
        assert_eq!(tally.look().statuses, [1; STATUSES]);
        assert_eq!(tally.look().timed(), 0);
    }
}
