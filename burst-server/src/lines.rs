//! How many lines of the log clients may cause.
//!
//! What a client does wrong is said in the log by name. A client can do it again and again, as fast as it likes, and
//! must neither fill the disk with that nor bury what is said of others: so each user has a number of lines at
//! once and then some per second. The next line that is written says how many were left out before it; the metrics
//! count all.

use std::sync::Mutex;

use burst_hal::TimePoint;

use crate::panics::lock;
use crate::rate::Bucket;

/// Lines at once after a pause: more than an honest client ever causes.
const LINES_AT_ONCE: u64 = 32;
/// Lines per second over time: some hundred bytes each, so that a day of them is some ten megabytes.
const LINES_PER_SECOND: u64 = 1;

/// The lines of one cause.
#[derive(Debug)]
pub(crate) struct Lines(Mutex<State>);

#[derive(Debug)]
struct State {
    bucket: Bucket,
    left_out: u64,
}

impl Lines {
    pub(crate) const fn new() -> Self {
        let bucket = Bucket::new(LINES_PER_SECOND, LINES_AT_ONCE);
        Lines(Mutex::new(State { bucket, left_out: 0 }))
    }

    /// Asks for a line: how many were left out before it; `None` where it is left out, too.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next_at(TimePoint::now().nanos)
    }

    fn next_at(&self, now: u64) -> Option<u64> {
        let State { bucket, left_out } = &mut *lock(&self.0);
        if bucket.take(now).is_err() {
            *left_out = left_out.saturating_add(1);
            return None;
        }
        Some(std::mem::take(left_out))
    }

    /// Whether it is as at the start: to forget it gives nobody a line more.
    pub(crate) fn is_fresh(&self) -> bool {
        lock(&self.0).bucket.is_full(TimePoint::now().nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn so_many_lines_are_written_and_the_next_one_says_how_many_were_not() {
        let lines = Lines::new();
        let now = 7 * SECOND;
        let written = (0..1000).filter_map(|_| lines.next_at(now)).collect::<Vec<_>>();
        assert_eq!(written, [0; 32]);
        assert_eq!(lines.next_at(now + SECOND), Some(1000 - 32));
        assert_eq!(lines.next_at(now + SECOND), None);
        assert_eq!(lines.next_at(now + 2 * SECOND), Some(1));
        assert_eq!(lines.next_at(now + 3 * SECOND), Some(0));
    }
}
