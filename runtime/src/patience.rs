//! How long a service may keep this process waiting.
//!
//! An application that sets no deadline waits for as long as its devices need. A service that has stopped
//! answering, stuck or stopped, would keep it waiting for ever: so every call to a service has a limit, also
//! where nobody set one. It is far beyond what a model takes; `BURST_NN_SERVICE_TIMEOUT` sets another one, or none.
//!
//! When a call has taken that long, the service is asked something that needs no work. One that answers is busy:
//! only this call has missed its time. One that does not is hung up on, and counts as dead from then on.

use std::time::Duration;

use burst_hal::TimePoint;

/// The limit of a call to a service where nobody sets one.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a service may take to answer whether it is there: it does nothing for that but read its socket.
pub(crate) const ANSWER_LONGEST: Duration = Duration::from_secs(2);

/// The limit of calls to a service; `None`: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience(Option<Duration>);

impl Default for Patience {
    fn default() -> Self {
        Patience(Some(LONGEST))
    }
}

impl Patience {
    /// So long; 0 for any time.
    pub(crate) fn of(longest: Duration) -> Self {
        Patience(Some(longest).filter(|longest| !longest.is_zero()))
    }

    /// When a call that begins now has taken too long; `None` where it may take any time.
    pub(crate) fn end(self) -> Option<TimePoint> {
        self.0.map(TimePoint::after)
    }

    /// The same, or the caller's deadline where that comes first.
    pub(crate) fn until(self, deadline: Option<TimePoint>) -> Option<TimePoint> {
        match (self.end(), deadline) {
            (Some(end), Some(deadline)) => Some(end.min(deadline)),
            (end, deadline) => end.or(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_ends_counts_and_zero_is_no_end() {
        let soon = Some(TimePoint { nanos: 1 });
        let (some, none) = (Patience::default(), Patience::of(Duration::ZERO));
        assert_eq!((some.until(soon), none.until(soon)), (soon, soon));
        assert_eq!((none.end(), none.until(None)), (None, None));
        let late = Some(TimePoint { nanos: u64::MAX });
        let end = some.until(late).unwrap();
        assert!(end < TimePoint { nanos: u64::MAX } && !end.has_passed());
        assert!(some.until(None).is_some());
    }
}
