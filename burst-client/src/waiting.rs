//! What every wait needs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::{Caller, CancelHook, CancelWord, TimePoint};
use fmq::{Deadline, clock};

use crate::ClientError;

/// How long a client waits beyond the deadline of what it asked for. Whether that was missed for good or for
/// the moment is the service's to say, which knows how long the model takes; its word needs a moment
/// to get here. Where none has come by then, the client says the one thing that it knows: missed this time.
pub const ANSWER_GRACE: Duration = Duration::from_secs(1);

/// A deadline of the HAL as the waits of queues take it: both count from the machine's start. None is never.
#[must_use]
pub fn deadline_at(at: Option<TimePoint>) -> Deadline {
    at.map_or(Deadline::never(), |at| Deadline::at_ns(at.nanos))
}

/// Until when a client waits for the service's word on what is wanted by then: [a grace](ANSWER_GRACE) longer, counted
/// from now where the deadline has passed before anything was asked. None is never.
#[must_use]
pub fn answer_by(deadline: Option<TimePoint>) -> Deadline {
    let Some(at) = deadline else { return Deadline::never() };
    let grace = u64::try_from(ANSWER_GRACE.as_nanos()).unwrap_or(u64::MAX);
    Deadline::at_ns(at.nanos.max(clock::now_ns()).saturating_add(grace))
}

/// Time left until a deadline; `None` for never.
pub(crate) fn remaining(deadline: Deadline) -> Option<Duration> {
    let at = deadline.as_ns()?;
    Some(Duration::from_nanos(at.saturating_sub(clock::now_ns())))
}

/// Locks, also after a thread panicked with the lock: what these locks guard is never half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long somebody waits: until a deadline, or until the work is called off, where it can be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience<'a> {
    until: Deadline,
    cancel: Option<&'a CancelWord>,
}

impl From<Deadline> for Patience<'_> {
    fn from(until: Deadline) -> Self {
        Patience { until, cancel: None }
    }
}

impl<'a> Patience<'a> {
    /// Until then, or until this caller calls the work off.
    pub(crate) fn of(caller: &'a Caller, until: Deadline) -> Self {
        Patience { until, cancel: Some(caller.cancel_word()) }
    }

    /// Until then, or until the work is called off by this word, where there is one.
    pub(crate) fn by(cancel: Option<&'a CancelWord>, until: Deadline) -> Self {
        Patience { until, cancel }
    }

    /// The deadline.
    pub(crate) fn until(self) -> Deadline {
        self.until
    }

    /// Likewise, and no longer than this.
    pub(crate) fn at_most(self, until: Deadline) -> Self {
        Patience { until: self.until.min(until), ..self }
    }

    /// Likewise, with this deadline in place of its own.
    pub(crate) fn with_deadline(self, until: Deadline) -> Self {
        Patience { until, ..self }
    }

    /// Whether somebody might call the work off.
    pub(crate) fn can_be_cancelled(self) -> bool {
        self.cancel.is_some()
    }

    /// Whether the work was called off.
    pub(crate) fn is_cancelled(self) -> bool {
        self.cancel.is_some_and(CancelWord::is_cancelled)
    }

    /// Refuses to begin what was called off.
    pub(crate) fn check(self) -> Result<(), ClientError> {
        if self.is_cancelled() { Err(ClientError::Cancelled) } else { Ok(()) }
    }

    /// Does nothing for so long.
    ///
    /// # Errors
    /// [`ClientError::Cancelled`], as soon as the work is called off.
    pub(crate) fn pause(self, pause: Duration) -> Result<(), ClientError> {
        if !self.can_be_cancelled() {
            std::thread::sleep(pause);
            return Ok(());
        }
        let bell = Arc::new((Mutex::new(()), Condvar::new()));
        let _hook = self.when_cancelled(&bell, |(mutex, changed)| {
            // Under the lock, so that this cannot fall between the last look and the wait.
            let _guard = lock(mutex);
            changed.notify_all();
        });
        let waits = |(): &mut ()| !self.is_cancelled();
        drop(bell.1.wait_timeout_while(lock(&bell.0), pause, waits));
        self.check()
    }

    /// Calls `wake` with `what` once the work is called off, for as long as the hook lives.
    pub(crate) fn when_cancelled<T: Send + Sync + 'static>(
        self,
        what: &Arc<T>,
        wake: impl FnOnce(&T) + Send + 'static,
    ) -> Option<CancelHook> {
        let cancel = self.cancel?;
        let what = Arc::clone(what);
        Some(cancel.when_cancelled(move || wake(&what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: u64 = 1_000_000_000;

    #[test]
    fn an_answer_is_waited_for_a_grace_beyond_the_deadline_and_from_now_where_that_has_passed() {
        assert_eq!(answer_by(None), Deadline::never());
        let later = TimePoint::after(Duration::from_secs(1_000));
        assert_eq!(answer_by(Some(later)), Deadline::at_ns(later.nanos + GRACE));
        let before = clock::now_ns();
        let passed = answer_by(Some(TimePoint { nanos: 1 })).as_ns().unwrap();
        assert!((before + GRACE..=clock::now_ns() + GRACE).contains(&passed));
        let never = answer_by(Some(TimePoint { nanos: u64::MAX }));
        assert_eq!(never, Deadline::at_ns(u64::MAX));
    }

    #[test]
    fn who_may_call_work_off_is_looked_at_and_a_shorter_time_does_not_change_that() {
        let word = CancelWord::default();
        let caller = Caller::new(&word);
        let patience = Patience::of(&caller, Deadline::at_ns(10)).at_most(Deadline::at_ns(5));
        assert_eq!(patience.until(), Deadline::at_ns(5));
        assert!(patience.check().is_ok());
        let woken = Arc::new(Mutex::new(0));
        let hook = patience.when_cancelled(&woken, |woken| *lock(woken) += 1);
        word.cancel();
        drop(hook);
        assert!(matches!(patience.check(), Err(ClientError::Cancelled)));
        assert_eq!(*lock(&woken), 1);
        let at_once = patience.pause(Duration::from_secs(60));
        assert!(matches!(at_once, Err(ClientError::Cancelled)));
        assert!(Patience::from(Deadline::never()).check().is_ok());
        assert!(Patience::from(Deadline::never()).when_cancelled(&woken, |_| ()).is_none());
    }
}
