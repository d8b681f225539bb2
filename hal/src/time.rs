//! Points in time on the steady clock, and how long an execution took.

use std::time::Duration;

/// A point on the steady clock (`CLOCK_MONOTONIC`), in nanoseconds since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimePoint {
    /// Nanoseconds since boot.
    pub nanos: u64,
}

impl TimePoint {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        TimePoint { nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos) }
    }

    /// The point `delay` from now, saturating at the latest that can be represented.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        TimePoint { nanos: Self::now().nanos.saturating_add(delay) }
    }

    /// Whether the clock has reached this point.
    #[must_use]
    pub fn has_passed(self) -> bool {
        Self::now() >= self
    }

    /// Time from `earlier` until this point; zero when it lies before.
    #[must_use]
    pub fn since(self, earlier: TimePoint) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }
}

/// Loop time-out that holds when the client names none: 2 s.
pub const LOOP_TIMEOUT_DEFAULT: Duration = Duration::from_secs(2);
/// Longest loop time-out a client may name: 15 s.
pub const LOOP_TIMEOUT_MAXIMUM: Duration = Duration::from_secs(15);

/// How long an execution took, in microseconds; `u64::MAX` where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// In the hardware.
    pub time_on_device_us: u64,
    /// In the driver, hardware included; never shorter than the time on the device.
    pub time_in_driver_us: u64,
}

impl Timing {
    /// Not measured, or withheld because the execution failed.
    pub const UNAVAILABLE: Timing =
        Timing { time_on_device_us: u64::MAX, time_in_driver_us: u64::MAX };
}

impl Default for Timing {
    fn default() -> Self {
        Timing::UNAVAILABLE
    }
}
