//! What is counted per user, over all of the user's connections: how many there are, and how
//! fast they ask for things to be set up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::budget::{Budget, Charge};
use super::limits::{Limit, LimitError, Limits};
use super::meters::LimitMeters;
use super::rate::Bucket;
use crate::panics::lock;

/// One user.
#[derive(Debug)]
pub(crate) struct User {
    uid: u32,
    connections: Arc<Budget>,
    /// `None` where there is no limit.
    set_up_calls: Option<Mutex<Bucket>>,
    rate: u64,
    start: Instant,
    meters: Arc<LimitMeters>,
}

impl User {
    /// Its number.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// Reserves one of the user's connections.
    pub(super) fn connect(&self) -> Result<Charge, LimitError> {
        self.connections.charge(1)
    }

    /// Takes the right to one set-up call.
    ///
    /// # Errors
    /// [`LimitError::TooFast`].
    pub(crate) fn set_up(&self) -> Result<(), LimitError> {
        let Some(bucket) = &self.set_up_calls else { return Ok(()) };
        lock(bucket).take(self.now()).map_err(|early| {
            self.meters.refused(Limit::SetupRate);
            LimitError::TooFast { rate: self.rate, wait: Duration::from_nanos(early) }
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether its rate limit is that of a user who never connected.
    fn is_out_of_debt(&self) -> bool {
        self.set_up_calls.as_ref().is_none_or(|bucket| lock(bucket).is_full(self.now()))
    }
}

/// All users that have a connection, or had one so recently that their rate is remembered.
#[derive(Debug)]
pub(super) struct Users {
    limits: Limits,
    meters: Arc<LimitMeters>,
    known: Mutex<HashMap<u32, Arc<User>>>,
}

impl Users {
    pub(super) fn new(limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        Users { limits: *limits, meters: Arc::clone(meters), known: Mutex::default() }
    }

    /// The user with this number.
    pub(super) fn find(&self, uid: u32) -> Arc<User> {
        let mut known = lock(&self.known);
        // Users without connections are forgotten once their bucket is full again, so that the
        // table is as long as the list of users seen within `setup_burst / setup_rate` seconds.
        known.retain(|other, user| {
            *other == uid || Arc::strong_count(user) > 1 || !user.is_out_of_debt()
        });
        Arc::clone(known.entry(uid).or_insert_with(|| Arc::new(self.new_user(uid))))
    }

    fn new_user(&self, uid: u32) -> User {
        let Limits { setup_rate, setup_burst, clients_per_user, .. } = self.limits;
        User {
            uid,
            connections: Budget::new(Limit::ClientsPerUser, clients_per_user, &self.meters),
            set_up_calls: (setup_rate > 0)
                .then(|| Mutex::new(Bucket::new(setup_rate, setup_burst))),
            rate: setup_rate,
            start: Instant::now(),
            meters: Arc::clone(&self.meters),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_remembered_while_connected_or_in_debt_and_then_forgotten() {
        let mut limits = Limits { setup_rate: 1, setup_burst: 1, ..Limits::default() };
        let meters = Arc::new(LimitMeters::default());
        let users = Users::new(&limits, &meters);
        // However slow this machine is, it asks more often than once a second; and hanging up in
        // between does not help.
        let refused = std::iter::repeat_with(|| users.find(7).set_up()).find_map(Result::err);
        assert!(matches!(refused, Some(LimitError::TooFast { rate: 1, .. })));
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
