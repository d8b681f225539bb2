//! Budgets: an amount is taken before the work and given back after it, within every quota that the
//! amount counts against.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limit::{Limit, LimitError};
use super::meters::LimitMeters;

/// How much of something one holder (a client, a user, the service) has in use, against its limit.
#[derive(Debug)]
struct Quota {
    what: Limit,
    limit: u64,
    used: AtomicU64,
}

/// The quotas that one kind of charge counts against, the narrowest first: those of the client, of
/// its user and of the service. An amount is taken from all of them or from none.
#[derive(Debug)]
pub(crate) struct Budget {
    quotas: Vec<Arc<Quota>>,
    meters: Arc<LimitMeters>,
}

/// What was taken from a [`Budget`], or from several, given back when dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    amount: u64,
    also: Vec<Charge>,
}

// Every ordering is relaxed: these are counts, which order no other memory.
impl Quota {
    fn take(&self, amount: u64) -> Result<(), LimitError> {
        let Quota { what, limit, .. } = *self;
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= limit)
            })
            .map(|_| ())
            .map_err(|_| LimitError::Exhausted { what, limit })
    }

    /// Gives back at most what is in use, and says how much that was.
    fn give_back(&self, amount: u64) -> u64 {
        let used = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used.saturating_sub(amount))
        });
        used.unwrap_or_else(|unchanged| unchanged).min(amount)
    }
}

impl Budget {
    /// One quota.
    pub(crate) fn new(what: Limit, limit: u64, meters: &Arc<LimitMeters>) -> Arc<Self> {
        Self::within(what, limit, &[], meters)
    }

    /// A quota whose holder shares in those of `payers`.
    pub(super) fn within(
        what: Limit,
        limit: u64,
        payers: &[&Arc<Budget>],
        meters: &Arc<LimitMeters>,
    ) -> Arc<Self> {
        let own = Arc::new(Quota { what, limit, used: AtomicU64::new(0) });
        let shared = payers.iter().flat_map(|payer| payer.quotas.iter().cloned());
        let quotas = std::iter::once(own).chain(shared).collect();
        Arc::new(Budget { quotas, meters: Arc::clone(meters) })
    }

    /// Takes `amount` until the charge is dropped.
    ///
    /// # Errors
    /// [`LimitError::NeverAllowed`] when it is over a limit by itself,
    /// [`LimitError::Exhausted`] when it would fit once others have given back.
    pub(crate) fn charge(self: &Arc<Self>, amount: u64) -> Result<Charge, LimitError> {
        self.take(amount)?;
        Ok(Charge { budget: Arc::clone(self), amount, also: Vec::new() })
    }

    /// As [`Budget::charge`], for a caller that gives back by itself.
    pub(super) fn take(&self, amount: u64) -> Result<(), LimitError> {
        for quota in &self.quotas {
            self.meters.within(quota.what, amount, quota.limit)?;
        }
        for (taken, quota) in self.quotas.iter().enumerate() {
            if let Err(error) = quota.take(amount) {
                self.meters.refused(quota.what);
                self.quotas[..taken].iter().for_each(|quota| {
                    quota.give_back(amount);
                });
                return Err(error);
            }
        }
        self.quotas.iter().for_each(|quota| self.meters.took(quota.what, amount));
        Ok(())
    }

    /// Gives back what was taken: at most what the narrowest quota has in use, so that a holder that
    /// gives back more than it took widens no quota that it shares with others.
    pub(super) fn give_back(&self, amount: u64) {
        let mut amount = amount;
        for quota in &self.quotas {
            amount = quota.give_back(amount);
            self.meters.gave_back(quota.what, amount);
        }
    }

    /// What its narrowest quota limits, how much of that is in use, and the limit.
    pub(super) fn state(&self) -> (Limit, u64, u64) {
        let Quota { what, limit, used } = &*self.quotas[0]; // every constructor makes one
        (*what, used.load(Ordering::Relaxed), *limit)
    }
}

impl Charge {
    /// Both, given back together.
    pub(crate) fn and(mut self, other: Charge) -> Charge {
        self.also.push(other);
        self
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_given_back_and_the_limit_says_which_kind_it_is() {
        let meters = Arc::new(LimitMeters::default());
        let budget = Budget::new(Limit::Models, 10, &meters);
        let six = budget.charge(6).unwrap();
        assert_eq!(
            budget.charge(5).unwrap_err(),
            LimitError::Exhausted { what: Limit::Models, limit: 10 }
        );
        assert_eq!(
            budget.charge(11).unwrap_err(),
            LimitError::NeverAllowed { what: Limit::Models, asked: 11, limit: 10 }
        );
        assert_eq!((meters.used(Limit::Models), meters.refusals(Limit::Models)), (6, 2));
        let four = budget.charge(4).unwrap();
        drop(six);
        let _again = budget.charge(6).unwrap();
        drop(four);
        assert_eq!(meters.used(Limit::Models), 6);
    }

    /// A service for two users, each with a share, and a client of each.
    fn three_levels() -> ([Arc<Budget>; 2], Arc<Budget>, Arc<LimitMeters>) {
        let meters = Arc::new(LimitMeters::default());
        let service = Budget::new(Limit::MemoryBytes, 15, &meters);
        let client = || {
            let user = Budget::within(Limit::MemoryBytesPerUser, 10, &[&service], &meters);
            Budget::within(Limit::MappedBytes, 100, &[&user], &meters)
        };
        ([client(), client()], service, meters)
    }

    #[test]
    fn an_amount_is_taken_at_every_level_or_at_none_and_the_refusal_names_the_level() {
        let ([one, other], service, meters) = three_levels();
        let never = |what, asked, limit| LimitError::NeverAllowed { what, asked, limit };
        let later = |what, limit| LimitError::Exhausted { what, limit };
        assert_eq!(one.charge(101).unwrap_err(), never(Limit::MappedBytes, 101, 100));
        assert_eq!(one.charge(11).unwrap_err(), never(Limit::MemoryBytesPerUser, 11, 10));
        let eight = one.charge(8).unwrap();
        assert_eq!(one.charge(3).unwrap_err(), later(Limit::MemoryBytesPerUser, 10));
        assert_eq!(other.charge(8).unwrap_err(), later(Limit::MemoryBytes, 15));
        assert_eq!(other.state().1, 0, "what the refused charge had taken by then is given back");
        let seven = other.charge(7).unwrap();
        assert_eq!(service.state(), (Limit::MemoryBytes, 15, 15));
        assert_eq!(meters.used(Limit::MemoryBytes), 15);
        drop(eight.and(seven));
        assert_eq!((one.state().1, other.state().1, service.state().1), (0, 0, 0));
        assert_eq!(meters.used(Limit::MappedBytes), 0);
    }

    #[test]
    fn who_gives_back_more_than_was_taken_widens_no_quota_of_others() {
        let ([one, other], service, meters) = three_levels();
        let _five = other.charge(5).unwrap();
        one.take(3).unwrap();
        one.give_back(4);
        assert_eq!(one.state().1, 0);
        assert!(service.charge(11).is_err(), "the service's quota is no wider than before");
        assert!(meters.used(Limit::MemoryBytes) <= 5);
    }

    #[test]
    fn however_many_threads_take_and_give_back_no_limit_is_passed_and_nothing_is_lost() {
        let ([one, other], service, meters) = three_levels();
        std::thread::scope(|scope| {
            for (thread, budget) in [&one, &other, &one, &other].into_iter().enumerate() {
                let service = &service;
                scope.spawn(move || {
                    let mut seed = thread as u64 + 1;
                    let mut held = Vec::new();
                    for _ in 0..20_000 {
                        // A step of a linear congruential generator; its upper bits are mixed well.
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let draw = seed >> 59;
                        match budget.charge(draw % 12) {
                            Ok(charge) => held.push(charge),
                            Err(LimitError::NeverAllowed { asked, .. }) => assert_eq!(asked, 11),
                            Err(_) => held.clear(),
                        }
                        assert!(budget.quotas[1].used.load(Ordering::Relaxed) <= 10);
                        assert!(service.state().1 <= 15);
                    }
                });
            }
        });
        for budget in [&one, &other, &service] {
            assert!(budget.quotas.iter().all(|quota| quota.used.load(Ordering::Relaxed) == 0));
        }
        for what in [Limit::MemoryBytes, Limit::MemoryBytesPerUser, Limit::MappedBytes] {
            assert_eq!(meters.used(what), 0, "{what}");
        }
        let whole = [one.charge(10).unwrap(), other.charge(5).unwrap()];
        assert!(other.charge(1).is_err());
        drop(whole);
    }
}
