//! The budgets of one client, each within the account of its user.

use std::sync::Arc;

use burst_hal::MemoryAccount;

use super::account::Account;
use super::budget::{Budget, Charge};
use super::limit::{Limit, LimitError};
use super::limits::Limits;
use super::meters::LimitMeters;
use super::users::User;

/// The budgets of one client.
#[derive(Debug)]
pub(crate) struct ClientBudgets {
    /// Whoever holds a budget keeps the user's account.
    user: Arc<User>,
    pub(crate) models: Arc<Budget>,
    pub(crate) buffers: Arc<Budget>,
    /// Each is a thread.
    pub(crate) bursts: Arc<Budget>,
    /// Each keeps a descriptor.
    pub(crate) memories: Arc<Budget>,
    /// Whole pages of address space.
    pub(crate) mapped_bytes: Arc<Budget>,
    pub(crate) allocated_bytes: Arc<Budget>,
    /// Each occupies a thread that reads the client's socket; of these all but the first are charged by
    /// themselves ([`ClientBudgets::thread`]).
    pub(crate) slow_calls: Arc<Budget>,
    /// Executions that were started and are not waited for.
    pending_executions: Arc<Budget>,
}

impl ClientBudgets {
    pub(crate) fn new(limits: &Limits, user: &Arc<User>, meters: &Arc<LimitMeters>) -> Self {
        let Account { address_space, threads, descriptors, slow_calls, .. } = user.account();
        let budget =
            |what, limit, payers: &[&Arc<Budget>]| Budget::within(what, limit, payers, meters);
        ClientBudgets {
            models: budget(Limit::Models, limits.models, &[]),
            buffers: budget(Limit::Buffers, limits.buffers, &[user.buffers()]),
            bursts: budget(Limit::Bursts, limits.bursts, &[threads]),
            memories: budget(Limit::Memories, limits.memories, &[descriptors]),
            mapped_bytes: budget(Limit::MappedBytes, limits.mapped_bytes, &[address_space]),
            allocated_bytes: budget(Limit::AllocatedBytes, limits.allocated_bytes, &[]),
            slow_calls: budget(Limit::SlowCalls, limits.slow_calls, &[slow_calls]),
            pending_executions: budget(
                Limit::PendingExecutions,
                limits.pending_executions,
                &[&user.pending_executions],
            ),
            user: Arc::clone(user),
        }
    }

    /// A memory of the client's that keeps a descriptor and `mapped` bytes of address space.
    pub(crate) fn shared_memory(&self, mapped: u64) -> Result<Charge, LimitError> {
        Ok(self.memories.charge(1)?.and(self.mapped_bytes.charge(mapped)?))
    }

    /// A memory of `length` bytes in `pages` bytes of whole pages that the service makes: it keeps two
    /// descriptors, one of them for the client.
    pub(crate) fn allocated_memory(&self, length: u64, pages: u64) -> Result<Charge, LimitError> {
        let Account { memory, address_space, descriptors, .. } = self.user.account();
        let of_client = self.memories.charge(1)?.and(self.allocated_bytes.charge(length)?);
        let of_user = memory.charge(pages)?.and(address_space.charge(pages)?);
        Ok(of_client.and(of_user).and(descriptors.charge(1)?))
    }

    /// Queues that keep so many descriptors and map so many bytes, and `copies` bytes of room for the
    /// packets that are copied out of them.
    pub(crate) fn queues(
        &self,
        descriptors: u64,
        mapped: u64,
        copies: u64,
    ) -> Result<Charge, LimitError> {
        let account = self.user.account();
        let mapped = account.address_space.charge(mapped)?;
        Ok(mapped.and(account.descriptors.charge(descriptors)?).and(self.memory(copies)?))
    }

    /// A memory of the client's that spans are written to, `mapped` bytes of whole pages: each may be there
    /// only because the service writes it.
    pub(crate) fn trace(&self, mapped: u64) -> Result<Charge, LimitError> {
        Ok(self.mapped_bytes.charge(mapped)?.and(self.memory(mapped)?))
    }

    /// A place for an execution that is not waited for.
    pub(crate) fn pending_execution(&self) -> Result<Charge, LimitError> {
        self.pending_executions.charge(1)
    }

    /// What such an execution keeps until it has ended: so many descriptors, so many bytes.
    pub(crate) fn kept(&self, descriptors: u64, bytes: u64) -> Result<Charge, LimitError> {
        let descriptors = self.user.account().descriptors.charge(descriptors)?;
        Ok(descriptors.and(self.memory(bytes)?))
    }

    /// A thread that works for the client.
    pub(crate) fn thread(&self) -> Result<Charge, LimitError> {
        self.user.account().threads.charge(1)
    }

    /// Memory that the service itself holds for the client.
    pub(crate) fn memory(&self, bytes: u64) -> Result<Charge, LimitError> {
        self.user.account().memory.charge(bytes)
    }

    /// Pays for what a device holds for the client.
    pub(crate) fn device_account(&self) -> Arc<dyn MemoryAccount> {
        Arc::clone(&self.user) as Arc<dyn MemoryAccount>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::Users;

    /// Two clients of one user.
    fn two_clients(set: impl FnOnce(&mut Limits)) -> [ClientBudgets; 2] {
        let mut limits = Limits::default();
        set(&mut limits);
        let users = Users::new(&limits);
        let user = users.find(7);
        [(); 2].map(|()| ClientBudgets::new(&limits, &user, users.meters()))
    }

    #[test]
    fn clients_of_one_user_have_one_account() {
        let [one, other] = two_clients(|limits| {
            limits.threads_per_user = 3;
            limits.slow_calls_per_user = 2;
            limits.memory_bytes_per_user = 100;
            limits.address_space_bytes_per_user = 8192;
            limits.descriptors_per_user = 4;
        });
        let exhausted = |what, limit| LimitError::Exhausted { what, limit };
        let threads = [one.bursts.charge(1).unwrap(), one.thread().unwrap()];
        let last = other.bursts.charge(1).unwrap();
        let refused = exhausted(Limit::ThreadsPerUser, 3);
        assert_eq!(one.bursts.charge(1).unwrap_err(), refused);
        assert_eq!(other.thread().unwrap_err(), refused);
        drop((threads, last));
        let slow = [one.slow_calls.charge(1).unwrap(), other.slow_calls.charge(1).unwrap()];
        let refused = exhausted(Limit::SlowCallsPerUser, 2);
        assert_eq!(one.slow_calls.charge(1).unwrap_err(), refused);
        drop(slow);

        let shared = one.shared_memory(4096).unwrap();
        let queues = other.queues(2, 4096, 10).unwrap();
        let refused = exhausted(Limit::AddressSpaceBytesPerUser, 8192);
        assert_eq!(one.shared_memory(4096).unwrap_err(), refused);
        drop(queues);
        let never = other.allocated_memory(200, 4096).unwrap_err();
        let (what, asked, limit) = (Limit::MemoryBytesPerUser, 4096, 100);
        assert_eq!(never, LimitError::NeverAllowed { what, asked, limit });
        let three = [(); 3].map(|()| one.shared_memory(0).unwrap());
        assert_eq!(other.shared_memory(0).unwrap_err(), exhausted(Limit::DescriptorsPerUser, 4));
        drop((shared, three));
        assert!(one.user.account().owes_nothing());
    }

    #[test]
    fn what_a_device_holds_is_charged_to_the_user_and_the_refusal_names_the_limit() {
        let [one, other] = two_clients(|limits| {
            limits.memory_bytes_per_user = 100;
            limits.memory_bytes = 120;
        });
        let caller = burst_hal::Caller::default().with_account(one.device_account());
        let held = caller.charge(60).unwrap();
        let own = other.memory(30).unwrap();
        let refused = caller.charge(11).unwrap_err();
        assert_eq!(refused.status, burst_hal::ErrorStatus::ResourceExhaustedTransient);
        let said = refused.cause.to_string();
        assert_eq!(said, "the limit of 100 on bytes of memory for one user is reached");
        let never = caller.charge(101).unwrap_err();
        assert_eq!(never.status, burst_hal::ErrorStatus::ResourceExhaustedPersistent);
        drop((held, own));
        assert!(one.user.account().owes_nothing());
    }
}
