//! Absolute deadlines on the monotonic clock.

use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC` now. No system call: the kernel maps the clock into the process.
#[cfg(not(loom))]
#[inline]
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // Never negative: the clock starts at boot.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Time stands still in a model.
#[cfg(loom)]
pub fn now_ns() -> u64 {
    0
}

/// When a blocking call gives up: an absolute time of `CLOCK_MONOTONIC` in nanoseconds, or never.
///
/// Absolute, so that it can be handed on through several calls without growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deadline(Option<u64>);

impl Deadline {
    /// Waits as long as it takes.
    pub const fn never() -> Deadline {
        Deadline(None)
    }

    /// Gives up at this time.
    pub const fn at_ns(monotonic_ns: u64) -> Deadline {
        Deadline(Some(monotonic_ns))
    }

    /// Gives up this long from now. A duration beyond the clock's range is as good as never.
    pub fn after(duration: Duration) -> Deadline {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Deadline(now_ns().checked_add(ns))
    }

    /// The time, if there is one.
    pub const fn as_ns(self) -> Option<u64> {
        self.0
    }

    /// The earlier of two.
    #[must_use]
    pub fn min(self, other: Deadline) -> Deadline {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Deadline(Some(a.min(b))),
            (a, b) => Deadline(a.or(b)),
        }
    }

    /// Whether it lies at or before `now_ns`.
    #[inline]
    pub fn has_passed(self, now_ns: u64) -> bool {
        self.0.is_some_and(|at| at <= now_ns)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn deadlines_pass_when_their_time_has_come() {
        assert!(!Deadline::never().has_passed(u64::MAX));
        assert!(Deadline::at_ns(5).has_passed(5) && !Deadline::at_ns(5).has_passed(4));
        let (one, two, never) = (Deadline::at_ns(1), Deadline::at_ns(2), Deadline::never());
        assert_eq!((two.min(one), never.min(two), two.min(never)), (one, two, two));
        let soon = Deadline::after(Duration::from_secs(1));
        assert!(!soon.has_passed(now_ns()));
        assert!(soon.has_passed(now_ns() + 1_000_000_001));
        assert_eq!(Deadline::after(Duration::MAX), Deadline::never());
    }
}
