//! What one client may use, so that none can take the service from the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ServerError;

/// Limits of a service. The defaults suit a machine with some GiB of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once. Each costs a thread or two and its descriptors.
    pub clients: u64,
    /// Prepared models of one client. Each may hold hundreds of MiB of packed weights.
    pub models: u64,
    /// Bursts of one client. Each is a thread with an execution context.
    pub bursts: u64,
    /// Memories of one client: shared ones, those in slots, those of models. Each keeps a
    /// descriptor open, of which a process often has no more than 1024.
    pub memories: u64,
    /// Bytes of all these memories together. They are the client's own, but mapping them takes
    /// page tables and address space here.
    pub mapped_bytes: u64,
    /// Bytes of one model, constants included.
    pub model_bytes: u64,
    /// Datums of a queue. A packet can be as long as the queue, and is copied.
    pub queue_datums: u64,
    /// Bytes that the service allocates for a client (output memories it makes), in all.
    pub allocated_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            clients: 256,
            models: 64,
            bursts: 256,
            memories: 512,
            mapped_bytes: 8 << 30,
            model_bytes: 2 << 30,
            queue_datums: 64 << 10,
            allocated_bytes: 1 << 30,
        }
    }
}

/// How much of something is in use, against a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    what: &'static str,
    limit: u64,
    used: AtomicU64,
}

/// A part of a [`Budget`], given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(what: &'static str, limit: u64) -> Arc<Self> {
        Arc::new(Budget { what, limit, used: AtomicU64::new(0) })
    }

    /// Takes `amount`.
    ///
    /// # Errors
    /// [`ServerError::NeverAllowed`] when it is over the limit by itself,
    /// [`ServerError::Exhausted`] when it would fit once others have given back.
    pub(crate) fn charge(self: &Arc<Self>, amount: u64) -> Result<Charge, ServerError> {
        let Budget { what, limit, .. } = **self;
        if amount > limit {
            return Err(ServerError::NeverAllowed { what, asked: amount, limit });
        }
        // Relaxed: a count, which orders no other memory.
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= limit)
            })
            .map_err(|_| ServerError::Exhausted { what, limit })?;
        Ok(Charge { budget: Arc::clone(self), amount })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

/// The budgets of one client.
#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) models: Arc<Budget>,
    pub(crate) bursts: Arc<Budget>,
    pub(crate) memories: Arc<Budget>,
    pub(crate) mapped_bytes: Arc<Budget>,
    pub(crate) allocated_bytes: Arc<Budget>,
    pub(crate) slow_calls: Arc<Budget>,
}

impl Budgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Budgets {
            models: Budget::new("prepared models", limits.models),
            bursts: Budget::new("bursts", limits.bursts),
            memories: Budget::new("memories", limits.memories),
            mapped_bytes: Budget::new("mapped bytes", limits.mapped_bytes),
            allocated_bytes: Budget::new("allocated bytes", limits.allocated_bytes),
            slow_calls: Budget::new(
                "slow calls at once",
                burst_wire::control::SLOW_CALLS_MAX as u64,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_charged_is_given_back_and_the_limit_says_which_kind_it_is() {
        let budget = Budget::new("things", 10);
        let six = budget.charge(6).unwrap();
        assert!(matches!(
            budget.charge(5),
            Err(ServerError::Exhausted { what: "things", limit: 10 })
        ));
        assert!(matches!(
            budget.charge(11),
            Err(ServerError::NeverAllowed { what: "things", asked: 11, limit: 10 })
        ));
        let four = budget.charge(4).unwrap();
        drop(six);
        let _again = budget.charge(6).unwrap();
        drop(four);
    }
}
