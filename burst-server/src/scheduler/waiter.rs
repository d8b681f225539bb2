//! A run as those who hand out tokens know it: what it is given, and how the thread that waits learns of it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use burst_hal::{CancelWord, TimePoint};

use super::bell::{Bell, Bells};
use crate::panics::lock;

/// Why a run does not get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoToken {
    /// Its client is gone, its burst was closed, or the service stops.
    CalledOff,
    /// The deadline passed while it waited.
    MissedDeadline,
}

/// A run as the scheduler knows it: who can end its waiting, and how.
#[derive(Debug)]
pub(super) struct Waiter {
    cancel: CancelWord,
    /// Nothing further begins.
    called_off: AtomicBool,
    granted: Mutex<Grant>,
    /// There is something in it, for who only looks.
    is_granted: AtomicBool,
    /// Of a thread that waits without a bell.
    changed: Condvar,
}

/// What is called when a run that no thread waits for gets its token. It must not wait: the thread is
/// somebody else's.
pub(crate) type Granted = Box<dyn FnOnce() + Send>;

/// What a run waits for.
#[derive(Default)]
struct Grant {
    /// What it was given.
    given: Option<Given>,
    /// Whom to tell, where no thread waits.
    then: Option<Granted>,
    /// What wakes the thread that waits, where it has one.
    bell: Option<Arc<Bell>>,
}

/// The right to compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub(super) since: u64,
    /// Without a token.
    pub(super) is_beside: bool,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("given", &self.given).finish_non_exhaustive()
    }
}

/// Two are equal when they are the same.
impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Waiter {
    pub(super) fn new(cancel: &CancelWord) -> Self {
        Waiter {
            cancel: cancel.clone(),
            called_off: AtomicBool::new(false),
            granted: Mutex::default(),
            is_granted: AtomicBool::new(false),
            changed: Condvar::new(),
        }
    }

    pub(super) fn grant(&self, now: u64, is_beside: bool) {
        let mut granted = lock(&self.granted);
        granted.given = Some(Given { since: now, is_beside });
        self.is_granted.store(true, Ordering::Relaxed);
        let (then, bell) = (granted.then.take(), granted.bell.clone());
        drop(granted);
        match (then, bell) {
            (Some(then), _) => then(),
            (None, Some(bell)) => bell.ring(),
            (None, None) => self.changed.notify_one(),
        }
    }

    /// Makes it look again whether it was called off.
    pub(super) fn look_again(&self) {
        // Under the lock: a thread that looked just before has begun to wait by now.
        let granted = lock(&self.granted);
        match &granted.bell {
            Some(bell) => bell.ring(),
            None => self.changed.notify_one(),
        }
    }

    /// `granted` is called where nobody waits, with what it is given.
    pub(super) fn tell(&self, granted: Granted) {
        lock(&self.granted).then = Some(granted);
    }

    pub(super) fn forget_to_tell(&self) {
        let forgotten = lock(&self.granted).then.take();
        drop(forgotten); // the lock is let go of by now
    }

    /// What it was given, once.
    pub(super) fn take_given(&self) -> Option<Given> {
        self.take(&mut lock(&self.granted))
    }

    fn take(&self, granted: &mut Grant) -> Option<Given> {
        let given = granted.given.take();
        // Relaxed, as all of it: under the lock but for those who only look.
        self.is_granted.store(false, Ordering::Relaxed);
        given
    }

    /// Whether it was given something that nobody has taken so far.
    pub(super) fn is_granted(&self) -> bool {
        self.is_granted.load(Ordering::Relaxed)
    }

    /// Waits until it is given something, until `deadline` (in nanoseconds), or until it `gives_up`. In the
    /// latter two `leave` tells those who hand out tokens, at that time; false where it was given one in
    /// this very instant and is about to hear of it.
    ///
    /// # Errors
    /// It has left.
    pub(super) fn wait(
        &self,
        bells: &Bells,
        deadline: u64,
        gives_up: fn(&Waiter) -> bool,
        leave: impl Fn(u64) -> bool,
    ) -> Result<Given, NoToken> {
        let bell = bells.take();
        let mut granted = lock(&self.granted);
        granted.bell = bell.as_ref().map(|taken| Arc::clone(taken.bell()));
        let mut is_given = false;
        loop {
            if let Some(given) = self.take(&mut granted) {
                granted.bell = None;
                return Ok(given);
            }
            let now = TimePoint::now().nanos;
            let mut left = Duration::from_nanos(deadline.saturating_sub(now));
            if is_given {
                left = Duration::MAX;
            } else if gives_up(self) || left.is_zero() {
                drop(granted);
                is_given = !leave(now);
                granted = lock(&self.granted);
                if !is_given {
                    granted.bell = None;
                    let missed = left.is_zero() && !gives_up(self);
                    return Err(if missed { NoToken::MissedDeadline } else { NoToken::CalledOff });
                }
                continue;
            }
            granted = self.wait_for_change(granted, left);
        }
    }

    fn wait_for_change<'a>(
        &'a self,
        granted: MutexGuard<'a, Grant>,
        at_most: Duration,
    ) -> MutexGuard<'a, Grant> {
        let Some(bell) = granted.bell.clone() else {
            let waited = self.changed.wait_timeout(granted, at_most);
            return waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(granted);
        bell.wait(at_most);
        lock(&self.granted)
    }

    /// Nothing further begins.
    pub(super) fn call_off(&self) {
        self.called_off.store(true, Ordering::Relaxed);
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(super) fn is_called_off(&self) -> bool {
        // Relaxed: who sets it makes the waiting threads look again, under the lock of the claims.
        self.called_off.load(Ordering::Relaxed) || self.is_cancelled()
    }
}
