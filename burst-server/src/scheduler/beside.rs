//! Runs that compute beside those that have a token, because nobody who has one gives way.
//!
//! Their number is bounded, and that of each user is: whoever does not give way keeps its core, but its
//! user's other runs gain nothing by it.

use std::sync::Arc;

use super::meter::TurnMeter;

/// How many runs of all users compute beside those with a token, at most: so many users are answered
/// although no token moves. Each is one more thread than there are cores, and all of them share the cores
/// then, so that more would leave little for each.
pub(super) const BESIDE_MAX: usize = 8;

/// How many of one user's do, at most: its others take turns with that one. So whoever fills all tokens
/// with what does not give way has one core's worth of threads more, and not those of everybody.
pub(super) const BESIDE_PER_USER: usize = 1;

/// The runs that compute without a token: the user of each.
#[derive(Debug, Default)]
pub(super) struct Beside {
    users: Vec<u32>,
    meter: Arc<TurnMeter>,
}

impl Beside {
    pub(super) fn new(meter: Arc<TurnMeter>) -> Self {
        Beside { users: Vec::new(), meter }
    }

    /// Whether one more run of this user may.
    pub(super) fn may(&self, user: u32) -> bool {
        let of_user = self.users.iter().filter(|one| **one == user).count();
        self.users.len() < BESIDE_MAX && of_user < BESIDE_PER_USER
    }

    /// One more does.
    pub(super) fn begin(&mut self, user: u32) {
        self.users.push(user);
        self.meter.note_begun_beside();
        self.note();
    }

    /// One of this user's does no more.
    pub(super) fn end(&mut self, user: u32) {
        if let Some(at) = self.users.iter().position(|one| *one == user) {
            self.users.swap_remove(at);
        }
        self.note();
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.users.len()
    }

    fn note(&self) {
        self.meter.note_beside(self.users.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_and_the_service_so_many() {
        let meter = Arc::new(TurnMeter::default());
        let mut beside = Beside::new(Arc::clone(&meter));
        for user in 0..20 {
            let may = beside.may(user);
            assert_eq!(may, user < 8, "user {user}");
            if may {
                beside.begin(user);
                assert!(!beside.may(user), "a second one of user {user}");
            }
        }
        assert_eq!((meter.begun_beside(), meter.beside()), (8, 8));
        beside.end(3);
        assert!(beside.may(19) && beside.may(3));
        beside.end(3); // it has none: nobody else's is taken
        assert_eq!((meter.begun_beside(), meter.beside()), (8, 7));
    }
}
