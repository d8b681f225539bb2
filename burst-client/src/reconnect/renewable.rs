//! A value that is lost with its connection and made again by one thread at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::ClientError;
use crate::waiting::{Patience, lock, remaining};

/// A value that one thread at a time makes again, without the lock: meanwhile every other one reads the
/// value there is, or waits for the next one until a deadline of its own.
#[derive(Debug)]
pub(super) struct Renewable<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    is_being_renewed: bool,
}

impl<T: Clone + Send + 'static> Renewable<T> {
    pub(super) fn new(value: T) -> Self {
        let state = State { value, is_being_renewed: false };
        Renewable(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// The value there is, good or not. Never waits for its renewal.
    pub(super) fn current(&self) -> T {
        self.lock().value.clone()
    }

    /// The value, made again with `make` where it is not good any more. `make` gets the old one.
    ///
    /// # Errors
    /// Those of `make`, which is called once at most; [`ClientError::Timeout`] where another thread is
    /// making it and has not come to an end by the deadline; [`ClientError::Cancelled`].
    pub(super) fn renew<'a>(
        &self,
        patience: impl Into<Patience<'a>>,
        is_good: impl Fn(&T) -> bool,
        make: impl FnOnce(&T) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let patience = patience.into();
        let left = remaining(patience.until());
        let until = left.and_then(|left| Instant::now().checked_add(left));
        let _hook = patience.when_cancelled(&self.0, Shared::look_again);
        let mut state = self.lock();
        while !is_good(&state.value) && state.is_being_renewed {
            patience.check()?;
            state = match until {
                None => self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(ClientError::Timeout);
                    }
                    let waited = self.0.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        if is_good(&state.value) {
            return Ok(state.value.clone());
        }
        state.is_being_renewed = true;
        let old = state.value.clone();
        drop(state);
        let mut renewal = Renewal { shared: &self.0, made: None };
        let value = make(&old)?;
        renewal.made = Some(value.clone());
        Ok(value)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.0.state)
    }
}

impl<T> Shared<T> {
    /// Wakes who waits, one of whom called it off.
    fn look_again(&self) {
        // Under the lock, so that this cannot fall between somebody's last look and the wait.
        let _guard = lock(&self.state);
        self.changed.notify_all();
    }
}

/// The right to make the value; given up when dropped, also where making it failed or panicked.
struct Renewal<'a, T> {
    shared: &'a Shared<T>,
    made: Option<T>,
}

impl<T> Drop for Renewal<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_being_renewed = false;
        let lost = self.made.take().map(|value| std::mem::replace(&mut state.value, value));
        drop(state);
        self.shared.changed.notify_all();
        drop(lost); // after the lock: what goes with it may take a while
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use burst_hal::{Caller, CancelWord};
    use fmq::Deadline;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn others_read_the_old_value_or_time_out_while_one_makes_it_again() {
        let renewable = Renewable::new(1);
        let ((begin, begun), (give, given)) = (channel(), channel());
        let is_good = |value: &i32| *value > 1;
        std::thread::scope(|scope| {
            let renewable = &renewable;
            let maker = scope.spawn(move || {
                renewable.renew(Deadline::never(), is_good, |old| {
                    begin.send(*old).unwrap();
                    Ok(given.recv_timeout(LONG).unwrap())
                })
            });
            assert_eq!(begun.recv_timeout(LONG), Ok(1));
            assert_eq!(renewable.current(), 1, "no lock is held meanwhile");
            let soon = Deadline::after(Duration::from_millis(1));
            let late = renewable.renew(soon, is_good, |_| panic!("one at a time"));
            assert!(matches!(late, Err(ClientError::Timeout)));
            let word = CancelWord::default();
            let caller = Caller::new(&word);
            let gone = scope.spawn(move || {
                let patience = Patience::of(&caller, Deadline::after(LONG));
                renewable.renew(patience, is_good, |_| panic!("one at a time"))
            });
            word.cancel();
            assert!(matches!(gone.join().unwrap(), Err(ClientError::Cancelled)));
            let waiting = scope.spawn(move || {
                renewable.renew(Deadline::after(LONG), is_good, |_| panic!("it was made"))
            });
            give.send(7).unwrap();
            assert_eq!(maker.join().unwrap().unwrap(), 7);
            assert_eq!(waiting.join().unwrap().unwrap(), 7);
        });
        assert_eq!(renewable.current(), 7);
    }

    #[test]
    fn whoever_fails_or_panics_leaves_it_to_the_next() {
        let renewable = Renewable::new(1);
        let is_good = |value: &i32| *value > 1;
        let failed = renewable.renew(Deadline::never(), is_good, |_| Err(ClientError::Timeout));
        assert!(failed.is_err());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = renewable.renew(Deadline::never(), is_good, |_| panic!("over it"));
        }));
        assert!(panicked.is_err());
        assert_eq!(renewable.renew(Deadline::never(), is_good, |old| Ok(old + 1)).unwrap(), 2);
    }
}
