//! What is counted per user, over all of the user's connections: how many there are, and how
//! fast they ask for things to be set up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ServerError;
use crate::admission::limits::{Budget, Charge, Limit, Limits};
use crate::metrics::LimitMeters;

/// A rate with room for bursts, as one number: the time at which everything taken so far would
/// have been due at the steady rate (the generic cell rate algorithm). Nothing has to run for it
/// to recover.
#[derive(Debug)]
struct Bucket {
    /// Nanoseconds that one takes at the steady rate.
    interval: u64,
    /// How far the due time may run ahead of the clock.
    tolerance: u64,
    due: u64,
}

impl Bucket {
    /// `rate` per second, `depth` at once.
    fn new(rate: u64, depth: u64) -> Self {
        let interval = 1_000_000_000 / rate.max(1);
        Bucket { interval, tolerance: interval.saturating_mul(depth.max(1)), due: 0 }
    }

    /// Takes one at this time, in nanoseconds of any steady clock.
    ///
    /// # Errors
    /// How many nanoseconds too early it is.
    fn take(&mut self, now: u64) -> Result<(), u64> {
        let due = self.due.max(now).saturating_add(self.interval);
        let latest = now.saturating_add(self.tolerance);
        if due > latest {
            return Err(due - latest);
        }
        self.due = due;
        Ok(())
    }

    /// Whether it is as good as new.
    fn is_full(&self, now: u64) -> bool {
        self.due <= now
    }
}

/// One user.
#[derive(Debug)]
pub(crate) struct User {
    clients: Arc<Budget>,
    /// `None` where there is no limit.
    bucket: Option<Mutex<Bucket>>,
    rate: u64,
    start: Instant,
    meters: Arc<LimitMeters>,
}

impl User {
    /// A place for one more connection.
    pub(crate) fn admit(&self) -> Result<Charge, ServerError> {
        self.clients.charge(1)
    }

    /// Takes the right to one set-up call.
    ///
    /// # Errors
    /// [`ServerError::TooFast`].
    pub(crate) fn set_up(&self) -> Result<(), ServerError> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        let taken = bucket.lock().unwrap_or_else(PoisonError::into_inner).take(self.now());
        taken.map_err(|early| {
            self.meters.refused(Limit::SetupRate);
            ServerError::TooFast { rate: self.rate, wait: Duration::from_nanos(early) }
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn is_as_good_as_new(&self) -> bool {
        self.bucket.as_ref().is_none_or(|bucket| {
            bucket.lock().unwrap_or_else(PoisonError::into_inner).is_full(self.now())
        })
    }
}

/// All users that have a connection, or had one so recently that their rate is remembered.
#[derive(Debug)]
pub(crate) struct Users {
    limits: Limits,
    meters: Arc<LimitMeters>,
    known: Mutex<HashMap<u32, Arc<User>>>,
}

impl Users {
    pub(crate) fn new(limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        Users { limits: *limits, meters: Arc::clone(meters), known: Mutex::default() }
    }

    /// The user with this number.
    pub(crate) fn find(&self, uid: u32) -> Arc<User> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Users without connections are forgotten once their bucket is full again, so that the
        // table is as long as the list of users seen within `setup_burst / setup_rate` seconds.
        known.retain(|other, user| {
            *other == uid || Arc::strong_count(user) > 1 || !user.is_as_good_as_new()
        });
        Arc::clone(known.entry(uid).or_insert_with(|| Arc::new(self.new_user())))
    }

    fn new_user(&self) -> User {
        let Limits { setup_rate, setup_burst, clients_per_user, .. } = self.limits;
        User {
            clients: Budget::new(Limit::ClientsPerUser, clients_per_user, &self.meters),
            bucket: (setup_rate > 0).then(|| Mutex::new(Bucket::new(setup_rate, setup_burst))),
            rate: setup_rate,
            start: Instant::now(),
            meters: Arc::clone(&self.meters),
        }
    }
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
        // A long pause fills it, and not beyond its depth.
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

    #[test]
    fn a_user_is_remembered_while_connected_or_in_debt_and_then_forgotten() {
        let mut limits = Limits { setup_rate: 1, setup_burst: 1, ..Limits::default() };
        let meters = Arc::new(LimitMeters::default());
        let users = Users::new(&limits, &meters);
        // However slow this machine is, it asks more often than once a second; and hanging up in
        // between does not help.
        let refused = std::iter::repeat_with(|| users.find(7).set_up()).find_map(Result::err);
        assert!(matches!(refused, Some(ServerError::TooFast { rate: 1, .. })));
        assert_eq!(meters.refusals(Limit::SetupRate), 1);
        users.find(8).set_up().unwrap();

        limits.setup_rate = 0;
        let users = Users::new(&limits, &meters);
        let seven = users.find(7);
        for _ in 0..100 {
            seven.set_up().unwrap();
        }
        drop(users.find(8));
        users.find(9);
        let mut known: Vec<u32> = users.known.lock().unwrap().keys().copied().collect();
        known.sort_unstable();
        assert_eq!(known, [7, 9]);
    }
}
