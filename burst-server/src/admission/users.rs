//! Users: each has one account, whichever of its connections something is charged to, and one rate at
//! which it may ask for things to be set up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use burst_hal::{Failure, MemoryAccount};

use super::account::Account;
use super::budget::{Budget, Charge};
use super::limit::{Limit, LimitError};
use super::limits::Limits;
use super::meters::LimitMeters;
use crate::lines::Lines;
use crate::panics::lock;
use crate::rate::Bucket;

/// One user.
#[derive(Debug)]
pub(crate) struct User {
    account: Account,
    ungreeted: Arc<Budget>,
    buffers: Arc<Budget>,
    pub(super) pending_executions: Arc<Budget>,
    /// `None` where there is no limit.
    set_up_calls: Option<Mutex<Bucket>>,
    rate: u64,
    /// In the log, about what its clients do wrong.
    lines: Lines,
    start: Instant,
    meters: Arc<LimitMeters>,
}

impl User {
    /// What a new connection takes until its client is gone: a place, the thread that reads it, its
    /// descriptor. Connecting is a set-up call, too.
    pub(super) fn connect(&self) -> Result<Charge, LimitError> {
        self.set_up()?;
        let Account { clients, threads, descriptors, .. } = &self.account;
        Ok(clients.charge(1)?.and(threads.charge(1)?).and(descriptors.charge(1)?))
    }

    /// What a connection takes in addition until it has greeted.
    pub(super) fn wait_for_greeting(&self) -> Result<Charge, LimitError> {
        self.ungreeted.charge(1)
    }

    /// How many buffers of drivers it has.
    pub(super) fn buffers(&self) -> &Arc<Budget> {
        &self.buffers
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

    /// Lines of the log about what its clients do wrong. A line names the client, and how many were left out.
    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// What it has in use, and its limits.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether it is as a user who never connected: nothing in use, its rates as at the start.
    fn owes_nothing(&self) -> bool {
        let is_full = |bucket: &Mutex<Bucket>| lock(bucket).is_full(self.now());
        let (_, buffers, _) = self.buffers.state();
        let has_nothing = buffers == 0 && self.account.owes_nothing();
        self.set_up_calls.as_ref().is_none_or(is_full)
            && self.lines.is_fresh()
            && has_nothing
            && self.pending_executions.state().1 == 0
    }
}

/// A user pays for what devices hold for its clients.
impl MemoryAccount for User {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        self.account.memory.take(bytes).map_err(|error| Failure::new(error.status(), error))
    }

    fn give_back(&self, bytes: u64) {
        self.account.memory.give_back(bytes);
    }
}

/// All users that have something in use, or had so recently that their rate is remembered.
#[derive(Debug)]
pub(crate) struct Users {
    limits: Limits,
    meters: Arc<LimitMeters>,
    service: Account,
    known: Mutex<HashMap<u32, Arc<User>>>,
}

impl Users {
    pub(crate) fn new(limits: &Limits) -> Self {
        let meters = Arc::new(LimitMeters::default());
        let service = Account::of_service(limits, &meters);
        Users { limits: *limits, meters, service, known: Mutex::default() }
    }

    /// What is counted over all users.
    pub(crate) fn meters(&self) -> &Arc<LimitMeters> {
        &self.meters
    }

    /// What all users have together.
    pub(crate) fn service(&self) -> &Account {
        &self.service
    }

    /// The user with this number.
    pub(crate) fn find(&self, uid: u32) -> Arc<User> {
        let mut known = lock(&self.known);
        forget(&mut known, Some(uid));
        Arc::clone(known.entry(uid).or_insert_with(|| Arc::new(self.new_user())))
    }

    /// Every user there is, in order.
    pub(crate) fn all(&self) -> Vec<(u32, Arc<User>)> {
        let mut known = lock(&self.known);
        forget(&mut known, None);
        let mut users: Vec<_> = known.iter().map(|(uid, user)| (*uid, Arc::clone(user))).collect();
        drop(known);
        users.sort_unstable_by_key(|(uid, _)| *uid);
        users
    }

    fn new_user(&self) -> User {
        let Limits { setup_rate, setup_burst, ungreeted_per_user, buffers_per_user, .. } =
            self.limits;
        let (pending, executions) =
            (Limit::PendingExecutionsPerUser, self.limits.pending_executions_per_user);
        User {
            account: Account::of_user(&self.limits, &self.service, &self.meters),
            ungreeted: Budget::new(Limit::UngreetedPerUser, ungreeted_per_user, &self.meters),
            buffers: Budget::new(Limit::BuffersPerUser, buffers_per_user, &self.meters),
            pending_executions: Budget::new(pending, executions, &self.meters),
            set_up_calls: (setup_rate > 0)
                .then(|| Mutex::new(Bucket::new(setup_rate, setup_burst))),
            rate: setup_rate,
            lines: Lines::new(),
            start: Instant::now(),
            meters: Arc::clone(&self.meters),
        }
    }
}

/// Forgets the users that are gone and owe nothing, all but this one: so that the table is as long
/// as the list of users that have something, were seen within `setup_burst / setup_rate` seconds, or caused a line of
/// the log within half a minute.
///
/// Whoever may still charge something to a user holds it, and whatever was charged shows in its
/// account; so no user is made anew while the old one owes something.
fn forget(known: &mut HashMap<u32, Arc<User>>, except: Option<u32>) {
    known.retain(|uid, user| {
        Some(*uid) == except || Arc::strong_count(user) > 1 || !user.owes_nothing()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(users: &Users) -> Vec<u32> {
        users.all().iter().map(|(uid, _)| *uid).collect()
    }

    #[test]
    fn a_user_is_remembered_while_connected_or_in_debt_and_then_forgotten() {
        let mut limits = Limits { setup_rate: 1, setup_burst: 1, ..Limits::default() };
        let users = Users::new(&limits);
        // However slow this machine is, it asks more often than once a second; and hanging up in
        // between does not help.
        let refused = std::iter::repeat_with(|| users.find(7).set_up()).find_map(Result::err);
        assert!(matches!(refused, Some(LimitError::TooFast { rate: 1, .. })));
        assert_eq!(users.meters().refusals(Limit::SetupRate), 1);
        users.find(8).set_up().unwrap();

        limits.setup_rate = 0;
        let users = Users::new(&limits);
        let seven = users.find(7);
        for _ in 0..100 {
            seven.set_up().unwrap();
        }
        drop(users.find(8));
        users.find(9);
        let mut table: Vec<u32> = users.known.lock().unwrap().keys().copied().collect();
        table.sort_unstable();
        assert_eq!(table, [7, 9], "whoever owes nothing is forgotten with the next one that comes");
        drop(seven);
        assert!(known(&users).is_empty());
    }

    #[test]
    fn a_user_that_is_gone_is_remembered_while_anything_is_charged_to_it() {
        let limits = Limits { setup_rate: 0, memory_bytes_per_user: 10, ..Limits::default() };
        let users = Users::new(&limits);
        let connection = users.find(7).connect().unwrap();
        assert_eq!(known(&users), [7], "nobody holds the user, and its connection is charged");
        // A device keeps the account with what it charged.
        let account: Arc<dyn MemoryAccount> = users.find(7);
        account.charge(8).unwrap();
        drop(connection);
        assert_eq!(known(&users), [7]);
        assert!(users.find(7).charge(3).is_err(), "the account is the one that owes 8");
        assert_eq!(users.service().memory.state().1, 8);
        account.give_back(8);
        drop(account);
        assert!(known(&users).is_empty());
        assert!(users.service().owes_nothing());
    }
}
