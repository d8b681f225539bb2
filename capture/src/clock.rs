//! When a frame was taken, as far as its time stamp can be believed.

use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::kernel::abi::{BUF_FLAG_TIMESTAMP_MASK, BUF_FLAG_TIMESTAMP_MONOTONIC, Buffer};

/// Why the time at which a frame arrived is taken for the time at which it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust {
    /// The driver does not say that its time stamps are of the monotonic clock.
    OtherClock,
    /// The time stamp is not set, or no time.
    Unset,
    /// The time stamp is before that of an earlier frame.
    Backwards,
    /// The time stamp is in the future.
    Future,
}

impl fmt::Display for Distrust {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Distrust::OtherClock => "its time stamps are of another clock than the monotonic one",
            Distrust::Unset => "its time stamps are not set",
            Distrust::Backwards => "its time stamps go backwards",
            Distrust::Future => "its time stamps are in the future",
        })
    }
}

/// What a driver says of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) is_monotonic: bool,
    /// On its clock; `None` where it is not set, or no time.
    pub(crate) at: Option<Duration>,
}

impl Stamp {
    pub(crate) fn of(buffer: &Buffer) -> Self {
        let whole = u64::try_from(buffer.seconds).ok();
        let micros = u32::try_from(buffer.microseconds).ok().filter(|micros| *micros < 1_000_000);
        let at = whole.zip(micros).map(|(whole, micros)| Duration::new(whole, micros * 1000));
        Stamp {
            is_monotonic: buffer.flags & BUF_FLAG_TIMESTAMP_MASK == BUF_FLAG_TIMESTAMP_MONOTONIC,
            at: at.filter(|at| !at.is_zero()),
        }
    }
}

/// The same moment on both of its scales: what the kernel counts, and what this program counts with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) monotonic: Duration,
}

impl Now {
    pub(crate) fn read() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Now { instant: Instant::now(), monotonic: Duration::new(seconds, nanos) }
    }
}

/// The times of a camera's frames, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The latest time stamp so far.
    latest: Option<Duration>,
}

impl Clock {
    /// When a frame was taken that arrived now: by its time stamp, or else now and why.
    pub(crate) fn taken(&mut self, stamp: Stamp, now: Now) -> (Instant, Option<Distrust>) {
        match self.age(stamp, now.monotonic) {
            // A machine that has run for less than the frame's age has no such instant.
            Ok(age) => (now.instant.checked_sub(age).unwrap_or(now.instant), None),
            Err(distrust) => (now.instant, Some(distrust)),
        }
    }

    fn age(&mut self, stamp: Stamp, now: Duration) -> Result<Duration, Distrust> {
        if !stamp.is_monotonic {
            return Err(Distrust::OtherClock);
        }
        let at = stamp.at.ok_or(Distrust::Unset)?;
        let age = now.checked_sub(at).ok_or(Distrust::Future)?;
        if self.latest.is_some_and(|latest| at < latest) {
            return Err(Distrust::Backwards);
        }
        self.latest = Some(at);
        Ok(age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Stamp {
        Stamp { is_monotonic: true, at: Some(Duration::from_millis(millis)) }
    }

    #[test]
    fn a_time_stamp_that_cannot_be_is_told_and_the_time_of_arrival_counts() {
        let now = Now { instant: Instant::now(), monotonic: Duration::from_millis(1000) };
        let mut clock = Clock::default();
        let mut taken = |stamp| {
            let (when, distrust) = clock.taken(stamp, now);
            (now.instant.duration_since(when).as_millis(), distrust)
        };
        assert_eq!(taken(at(900)), (100, None));
        assert_eq!(taken(at(899)), (0, Some(Distrust::Backwards)));
        assert_eq!(taken(at(1001)), (0, Some(Distrust::Future)));
        assert_eq!(taken(at(950)), (50, None), "one that was wrong does not spoil those after it");
        assert_eq!(
            taken(Stamp { is_monotonic: false, ..at(960) }),
            (0, Some(Distrust::OtherClock))
        );
        assert_eq!(taken(Stamp { is_monotonic: true, at: None }), (0, Some(Distrust::Unset)));
    }

    #[test]
    fn what_a_driver_writes_is_a_time_or_none() {
        let mut buffer = <Buffer as zerocopy::FromZeros>::new_zeroed();
        buffer.flags = BUF_FLAG_TIMESTAMP_MONOTONIC;
        assert_eq!(Stamp::of(&buffer), Stamp { is_monotonic: true, at: None });
        (buffer.seconds, buffer.microseconds) = (3, 5);
        assert_eq!(Stamp::of(&buffer).at, Some(Duration::from_micros(3_000_005)));
        for (seconds, microseconds) in [(-1, 0), (3, -1), (3, 1_000_000)] {
            (buffer.seconds, buffer.microseconds) = (seconds, microseconds);
            assert_eq!(Stamp::of(&buffer).at, None, "{seconds} {microseconds}");
        }
    }
}
