//! Accounts: what one user has in use over all of its clients, and what all users have together.

use std::sync::Arc;

use super::budget::Budget;
use super::limit::Limit;
use super::limits::Limits;
use super::meters::LimitMeters;

/// What one holder has in use of each resource. A user's account shares in that of the service: what
/// is charged to the first is charged to the second, too.
#[derive(Debug)]
pub(crate) struct Account {
    /// Connections.
    pub(super) clients: Arc<Budget>,
    /// Bytes that devices and the service hold.
    pub(super) memory: Arc<Budget>,
    /// Bytes that are mapped, in whole pages.
    pub(super) address_space: Arc<Budget>,
    pub(super) threads: Arc<Budget>,
    pub(super) descriptors: Arc<Budget>,
    pub(super) slow_calls: Arc<Budget>,
}

/// One line of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Balance {
    /// Of what, by the name that it has in both kinds of account.
    pub(crate) resource: &'static str,
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Account {
    /// The account of a service.
    pub(super) fn of_service(limits: &Limits, meters: &Arc<LimitMeters>) -> Self {
        let budget = |what, limit| Budget::new(what, limit, meters);
        Account {
            clients: budget(Limit::Clients, limits.clients),
            memory: budget(Limit::MemoryBytes, limits.memory_bytes),
            address_space: budget(Limit::AddressSpaceBytes, limits.address_space_bytes),
            threads: budget(Limit::Threads, limits.threads),
            descriptors: budget(Limit::Descriptors, limits.descriptors),
            slow_calls: budget(Limit::AllSlowCalls, limits.all_slow_calls),
        }
    }

    /// The account of one user of a service.
    pub(super) fn of_user(limits: &Limits, service: &Account, meters: &Arc<LimitMeters>) -> Self {
        let share = |what, limit, whole| Budget::within(what, limit, &[whole], meters);
        let mapped = limits.address_space_bytes_per_user;
        Account {
            clients: share(Limit::ClientsPerUser, limits.clients_per_user, &service.clients),
            memory: share(Limit::MemoryBytesPerUser, limits.memory_bytes_per_user, &service.memory),
            address_space: share(Limit::AddressSpaceBytesPerUser, mapped, &service.address_space),
            threads: share(Limit::ThreadsPerUser, limits.threads_per_user, &service.threads),
            descriptors: share(
                Limit::DescriptorsPerUser,
                limits.descriptors_per_user,
                &service.descriptors,
            ),
            slow_calls: share(
                Limit::SlowCallsPerUser,
                limits.slow_calls_per_user,
                &service.slow_calls,
            ),
        }
    }

    /// Every line of it.
    pub(crate) fn balances(&self) -> [Balance; 6] {
        [
            ("clients", &self.clients),
            ("memory_bytes", &self.memory),
            ("address_space_bytes", &self.address_space),
            ("threads", &self.threads),
            ("descriptors", &self.descriptors),
            ("slow_calls", &self.slow_calls),
        ]
        .map(|(resource, budget)| {
            let (_, used, limit) = budget.state();
            Balance { resource, used, limit }
        })
    }

    /// Whether nothing is in use.
    pub(super) fn owes_nothing(&self) -> bool {
        self.balances().iter().all(|balance| balance.used == 0)
    }
}
