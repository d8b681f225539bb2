//! Budgets: an amount is reserved before the work and returned after it, within a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limits::{Limit, LimitError, Limits};
use super::meters::LimitMeters;

/// How much of something is in use, against a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    what: Limit,
    limit: u64,
    used: AtomicU64,
    meters: Arc<LimitMeters>,
}

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(what: Limit, limit: u64, meters: &Arc<LimitMeters>) -> Arc<Self> {
        Arc::new(Budget { what, limit, used: AtomicU64::new(0), meters: Arc::clone(meters) })
    }

    /// Takes `amount`.
    ///
    /// # Errors
    /// [`LimitError::NeverAllowed`] when it is over the limit by itself,
    /// [`LimitError::Exhausted`] when it would fit once others have given back.
    pub(crate) fn charge(self: &Arc<Self>, amount: u64) -> Result<Charge, LimitError> {
        let Budget { what, limit, .. } = **self;
        self.meters.within(what, amount, limit)?;
        // Relaxed: a count, which orders no other memory.
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= limit)
            })
            .map_err(|_| {
                self.meters.refused(what);
                LimitError::Exhausted { what, limit }
            })?;
        self.meters.took(what, amount);
        Ok(Charge { budget: Arc::clone(self), amount })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.amount, Ordering::Relaxed);
        self.budget.meters.gave_back(self.budget.what, self.amount);
    }
}

/// The budgets of one client.
#[derive(Debug)]
pub(crate) struct ClientBudgets {
    pub(crate) models: Arc<Budget>,
    pub(crate) bursts: Arc<Budget>,
    pub(crate) memories: Arc<Budget>,
    pub(crate) mapped_bytes: Arc<Budget>,
    pub(crate) allocated_bytes: Arc<Budget>,
    pub(crate) slow_calls: Arc<Budget>,
}

impl ClientBudgets {
    pub(crate) fn new(limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        let budget = |what, limit| Budget::new(what, limit, meters);
        ClientBudgets {
            models: budget(Limit::Models, limits.models),
            bursts: budget(Limit::Bursts, limits.bursts),
            memories: budget(Limit::Memories, limits.memories),
            mapped_bytes: budget(Limit::MappedBytes, limits.mapped_bytes),
            allocated_bytes: budget(Limit::AllocatedBytes, limits.allocated_bytes),
            slow_calls: budget(Limit::SlowCalls, limits.slow_calls),
        }
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
}
