//! Which bursts may poll without a pause. Each takes a core while it does, whether it has requests or
//! not, so there are fewer places than cores, and users have equal shares of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::panics::lock;

/// Cores on which no burst polls: the clients' and the system's.
const CORES_LEFT: usize = 1;

/// The places of a service.
#[derive(Debug)]
pub(crate) struct SpinShares {
    places: usize,
    users: Mutex<Vec<User>>,
}

#[derive(Debug)]
struct User {
    uid: u32,
    /// Its bursts that want to poll, the oldest wish first.
    wishes: Vec<Arc<AtomicBool>>,
}

/// A burst that wants to poll, unless it is idle.
#[derive(Debug)]
pub(super) struct SpinWish {
    shares: Arc<SpinShares>,
    uid: u32,
    /// Whether it has a place. Its thread looks here when it goes to wait.
    granted: Arc<AtomicBool>,
    /// Whether it wants one now.
    is_pending: bool,
}

impl SpinShares {
    /// Places for a service on so many cores.
    pub(crate) fn new(cores: usize) -> Arc<Self> {
        let places = cores.saturating_sub(CORES_LEFT);
        Arc::new(SpinShares { places, users: Mutex::default() })
    }

    /// A burst of this user wants to poll from now on.
    pub(super) fn wish(self: &Arc<Self>, uid: u32) -> SpinWish {
        let mut wish = SpinWish {
            shares: Arc::clone(self),
            uid,
            granted: Arc::new(AtomicBool::new(false)),
            is_pending: false,
        };
        wish.renew();
        wish
    }

    /// Gives every user one place, then every user that wants more a second one, and so on, as long as
    /// there are enough for all of them. What is left over is nobody's, so that no share depends on who
    /// came first.
    fn share_out(&self, users: &[User]) {
        let mut left = self.places;
        let mut each = 0;
        loop {
            let unsatisfied = users.iter().filter(|user| user.wishes.len() > each).count();
            if unsatisfied == 0 || unsatisfied > left {
                break;
            }
            left -= unsatisfied;
            each += 1;
        }
        for user in users {
            for (at, granted) in user.wishes.iter().enumerate() {
                // Relaxed: a hint on how to wait, which orders nothing.
                granted.store(at < each, Ordering::Relaxed);
            }
        }
    }
}

impl SpinWish {
    /// Whether the burst may poll now.
    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Relaxed)
    }

    /// The same, for others to look at.
    pub(super) fn granted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.granted)
    }

    /// It has requests again.
    pub(super) fn renew(&mut self) {
        if std::mem::replace(&mut self.is_pending, true) {
            return;
        }
        let mut users = lock(&self.shares.users);
        let granted = Arc::clone(&self.granted);
        match users.iter_mut().find(|user| user.uid == self.uid) {
            Some(user) => user.wishes.push(granted),
            None => users.push(User { uid: self.uid, wishes: vec![granted] }),
        }
        self.shares.share_out(&users);
    }

    /// It has none, and sleeps: its place is for others.
    pub(super) fn withdraw(&mut self) {
        if !std::mem::replace(&mut self.is_pending, false) {
            return;
        }
        let mut users = lock(&self.shares.users);
        for user in users.iter_mut().filter(|user| user.uid == self.uid) {
            user.wishes.retain(|one| !Arc::ptr_eq(one, &self.granted));
        }
        users.retain(|user| !user.wishes.is_empty());
        self.granted.store(false, Ordering::Relaxed);
        self.shares.share_out(&users);
    }
}

impl Drop for SpinWish {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(wishes: &[SpinWish]) -> usize {
        wishes.iter().filter(|wish| wish.is_granted()).count()
    }

    #[test]
    fn users_have_equal_shares_whoever_came_first_and_however_many_bursts_they_have() {
        let shares = SpinShares::new(5);
        let mut many: Vec<SpinWish> = (0..64).map(|_| shares.wish(1)).collect();
        assert_eq!(granted(&many), 4, "alone it has all places, and a core is left");
        let one = shares.wish(2);
        assert_eq!((granted(&many), one.is_granted()), (3, true), "what one does not want");
        let others: Vec<SpinWish> = (0..9).map(|_| shares.wish(3)).collect();
        assert_eq!((granted(&many), granted(&others)), (1, 1), "one each, and one is left over");
        assert!(one.is_granted() && many[0].is_granted());
        drop(many.remove(0));
        assert!(many[0].is_granted(), "the next of the same user");
        drop(others);
        assert_eq!(granted(&many), 3, "shares move when a user goes");
    }

    #[test]
    fn an_idle_burst_has_no_place_and_gets_one_again() {
        let shares = SpinShares::new(2);
        let (mut idle, other) = (shares.wish(1), shares.wish(1));
        assert_eq!((idle.is_granted(), other.is_granted()), (true, false));
        idle.withdraw();
        idle.withdraw();
        assert_eq!((idle.is_granted(), other.is_granted()), (false, true));
        idle.renew();
        assert_eq!((idle.is_granted(), other.is_granted()), (false, true));
        drop(other);
        assert!(idle.is_granted());
    }

    #[test]
    fn where_users_outnumber_places_nobody_polls() {
        let shares = SpinShares::new(2);
        let wishes: Vec<SpinWish> = (0..2).map(|uid| shares.wish(uid)).collect();
        assert_eq!(granted(&wishes), 0);
        assert!(!SpinShares::new(1).wish(1).is_granted(), "one core is for clients");
    }
}
