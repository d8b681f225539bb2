//! How often something may be done: a user's calls that set things up, lines of the log.

/// A rate limit that allows some at once (the generic cell rate algorithm). It is one number, the time
/// at which everything taken so far would have been due at the steady rate, so that no thread and no
/// timer has to refill it.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// Nanoseconds that one takes at the steady rate.
    interval: u64,
    /// How far the due time may run ahead of the clock.
    tolerance: u64,
    due: u64,
}

impl Bucket {
    /// `rate` per second, `depth` at once.
    pub(crate) const fn new(rate: u64, depth: u64) -> Self {
        let interval = 1_000_000_000 / at_least_one(rate);
        Bucket { interval, tolerance: interval.saturating_mul(at_least_one(depth)), due: 0 }
    }

    /// Takes one at this time, in nanoseconds of any steady clock.
    ///
    /// # Errors
    /// How many nanoseconds too early it is.
    pub(crate) fn take(&mut self, now: u64) -> Result<(), u64> {
        let due = self.due.max(now).saturating_add(self.interval);
        let latest = now.saturating_add(self.tolerance);
        if due > latest {
            return Err(due - latest);
        }
        self.due = due;
        Ok(())
    }

    /// Whether its whole burst is available, as if it had never been used.
    pub(crate) fn is_full(&self, now: u64) -> bool {
        self.due <= now
    }
}

const fn at_least_one(count: u64) -> u64 {
    if count == 0 { 1 } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_bucket_gives_its_depth_at_once_and_its_rate_from_then_on() {
        let mut bucket = Bucket::new(10, 3);
        let now = 5 * SECOND;
        for _ in 0..3 {
            assert_eq!(bucket.take(now), Ok(()));
        }
        assert_eq!(bucket.take(now), Err(SECOND / 10), "and it says how long to wait");
        assert_eq!(bucket.take(now + SECOND / 10 - 1), Err(1));
        assert_eq!(bucket.take(now + SECOND / 10), Ok(()));
        assert!(bucket.take(now + SECOND / 10).is_err());
        assert!(!bucket.is_full(now + SECOND / 10));
        // A long pause refills it to its depth, and no further.
        let later = now + 100 * SECOND;
        assert!(bucket.is_full(later));
        assert_eq!((0..9).filter(|_| bucket.take(later).is_ok()).count(), 3);
    }

    #[test]
    fn a_bucket_outlives_every_clock() {
        let mut bucket = Bucket::new(1, u64::MAX);
        assert_eq!(bucket.take(u64::MAX), Ok(()), "saturates");
        let mut bucket = Bucket::new(u64::MAX, 1);
        assert_eq!(bucket.take(0), Ok(()));
    }
}
