//! What one prepared model takes from the account of its client's user.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{Failure, MemoryAccount};

use super::users::User;

/// The account with which a device pays for one model: all of it is the user's, and how much the model has
/// of that can be looked at.
#[derive(Debug)]
pub(crate) struct ModelAccount {
    user: Arc<User>,
    /// Relaxed everywhere: a figure for people.
    bytes: AtomicU64,
}

impl ModelAccount {
    pub(crate) fn new(user: &Arc<User>) -> Arc<Self> {
        Arc::new(ModelAccount { user: Arc::clone(user), bytes: AtomicU64::new(0) })
    }

    /// The service itself keeps so much of the model, until the end of both; charged elsewhere.
    pub(crate) fn also(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How much memory it holds.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl MemoryAccount for ModelAccount {
    fn charge(&self, bytes: u64) -> Result<(), Failure> {
        self.user.charge(bytes)?;
        self.also(bytes);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        // A driver that gives back more than it took wraps nothing.
        let less = |held: u64| Some(held.saturating_sub(bytes));
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.user.give_back(bytes);
    }

    fn payer(&self) -> Option<Arc<dyn MemoryAccount>> {
        Some(Arc::clone(&self.user) as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Limits, Users};

    #[test]
    fn what_a_model_takes_is_its_own_figure_and_the_user_pays() {
        let limits = Limits { memory_bytes_per_user: 100, ..Limits::default() };
        let user = Users::new(&limits).find(7);
        let [one, other] = [(); 2].map(|()| ModelAccount::new(&user));
        let charge = |account: &Arc<ModelAccount>, bytes| {
            burst_hal::Caller::default().with_account(Arc::clone(account) as _).charge(bytes)
        };
        let sixty = charge(&one, 60).unwrap();
        let thirty = charge(&other, 30).unwrap();
        assert!(charge(&other, 11).is_err(), "both are one user's");
        assert_eq!((one.bytes(), other.bytes()), (60, 30), "what was refused does not count");
        assert!(sixty.shares_account(&thirty), "what one gives up the other can have");
        one.also(5);
        drop((sixty, thirty));
        assert_eq!((one.bytes(), other.bytes()), (5, 0));
        assert!(charge(&other, 100).is_ok(), "nothing is owed");
        one.give_back(50);
        assert_eq!(one.bytes(), 0, "more than it had");
    }
}
