//! What executes the requests of a burst: a plain [`Burst`] of the device, or a [`BurstExecutor`], which
//! keeps what it prepared for each memory.

use std::sync::{Arc, Mutex, TryLockError, Weak};

use burst_hal::{
    Burst, BurstExecutor, Caller, ErrorStatus, ExecutionOptions, ExecutionResult, Failure,
    PreparedModel, Request, RequestPool,
};

use crate::panics::lock;

/// What executes.
pub(super) enum Runner {
    Plain(Box<dyn Burst>),
    Caching(Arc<SharedExecutor>),
}

/// A shared executor. The burst's thread executes on it; the threads that read the client's socket
/// report freed slots to it.
pub(crate) struct SharedExecutor {
    executor: Mutex<Box<dyn BurstExecutor>>,
    /// Freed slots that have not been reported to the executor yet.
    freed: Mutex<Vec<i32>>,
}

impl Runner {
    /// What the model offers: an executor if it has one, a burst otherwise. It works for `caller`.
    pub(super) fn open(model: &Arc<dyn PreparedModel>, caller: &Caller) -> Result<Self, Failure> {
        if let Some(mut executor) = Arc::clone(model).open_executor()? {
            executor.work_for(caller);
            return Ok(Runner::Caching(Arc::new(SharedExecutor::new(executor))));
        }
        let mut burst = Arc::clone(model).open_burst()?;
        burst.work_for(caller);
        Ok(Runner::Plain(burst))
    }

    /// The executor, where there is one, to report freed slots to. It lives as long as the runner.
    pub(super) fn executor(&self) -> Option<Weak<SharedExecutor>> {
        match self {
            Runner::Plain(_) => None,
            Runner::Caching(executor) => Some(Arc::downgrade(executor)),
        }
    }

    /// Whether buffers of the device may lie in its slots.
    pub(super) fn takes_buffers(&self) -> bool {
        match self {
            Runner::Plain(_) => true,
            Runner::Caching(executor) => lock(&executor.executor).takes_buffers(),
        }
    }

    /// Runs a request whose pools have these slots.
    pub(super) fn run(
        &mut self,
        request: &Request,
        slots: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        match self {
            Runner::Plain(burst) => burst.execute(request, options, result),
            Runner::Caching(executor) => executor.run(request, slots, options, result),
        }
    }

    /// Releases what the next request can allocate again.
    pub(super) fn release_resources(&mut self) {
        match self {
            Runner::Plain(burst) => burst.release_resources(),
            Runner::Caching(executor) => lock(&executor.executor).release_resources(),
        }
    }
}

impl SharedExecutor {
    fn new(executor: Box<dyn BurstExecutor>) -> Self {
        SharedExecutor { executor: Mutex::new(executor), freed: Mutex::default() }
    }

    fn run(
        &self,
        request: &Request,
        slots: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let mut executor = lock(&self.executor);
        self.tell(&mut **executor);
        match add_missing(&mut **executor, request, slots) {
            Ok(()) => executor.execute(request, slots, options, result),
            Err(status) => result.reset(status),
        }
        drop(executor);
        self.tell_if_idle(); // what was freed meanwhile
    }

    /// Tells the executor that a slot was freed: at once where it is idle, otherwise after its
    /// execution, for which the calling thread does not wait.
    pub(super) fn free(&self, slot: i32) {
        lock(&self.freed).push(slot);
        self.tell_if_idle();
    }

    fn tell_if_idle(&self) {
        // A thread that holds the executor looks at the list again after letting go of it, so it
        // finds a slot that was put there while `try_lock` failed.
        while !lock(&self.freed).is_empty() {
            match self.executor.try_lock() {
                Ok(mut executor) => self.tell(&mut **executor),
                Err(TryLockError::Poisoned(error)) => self.tell(&mut **error.into_inner()),
                Err(TryLockError::WouldBlock) => return,
            }
        }
    }

    fn tell(&self, executor: &mut dyn BurstExecutor) {
        let freed = std::mem::take(&mut *lock(&self.freed));
        freed.into_iter().for_each(|slot| executor.remove(slot));
    }
}

/// Adds the memories of the request that the executor does not have.
fn add_missing(
    executor: &mut dyn BurstExecutor,
    request: &Request,
    slots: &[i32],
) -> Result<(), ErrorStatus> {
    for (slot, pool) in slots.iter().zip(&request.pools) {
        let RequestPool::Memory(memory) = pool else { continue };
        if !executor.is_cached(*slot) {
            executor.add(*slot, memory).map_err(|failure| {
                tracing::debug!(slot, %failure, "memory refused by the executor");
                failure.status
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use burst_hal::{HeapMemory, Pool};

    use super::*;

    /// Keeps slots; frees one of its own in the middle of an execution, from another thread.
    struct Keeper {
        slots: Vec<i32>,
        refuse: bool,
        log: mpsc::Sender<String>,
        shared: Arc<Mutex<Option<Arc<SharedExecutor>>>>,
    }

    impl BurstExecutor for Keeper {
        fn is_cached(&self, slot: i32) -> bool {
            self.slots.contains(&slot)
        }

        fn add(&mut self, slot: i32, _: &Pool) -> Result<(), Failure> {
            if self.refuse {
                return Err(Failure::new(ErrorStatus::ResourceExhaustedTransient, "full"));
            }
            self.log.send(format!("add {slot}")).unwrap();
            self.slots.push(slot);
            Ok(())
        }

        fn remove(&mut self, slot: i32) {
            self.log.send(format!("remove {slot}")).unwrap();
            self.slots.retain(|one| *one != slot);
        }

        fn execute(
            &mut self,
            _: &Request,
            slots: &[i32],
            _: &ExecutionOptions,
            result: &mut ExecutionResult,
        ) {
            self.log.send(format!("execute {slots:?}")).unwrap();
            if let Some(shared) = lock(&self.shared).take() {
                std::thread::spawn(move || shared.free(5)).join().unwrap();
                self.log.send("freed".to_owned()).unwrap();
            }
            result.reset(ErrorStatus::None);
        }
    }

    fn request() -> Request {
        let pool = || RequestPool::Memory(Arc::new(HeapMemory::new(vec![1])));
        Request { pools: vec![pool(), pool()], ..Request::default() }
    }

    fn run(shared: &SharedExecutor) -> ErrorStatus {
        let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
        shared.run(&request(), &[5, 7], &ExecutionOptions::default(), &mut result);
        result.status
    }

    #[test]
    fn memories_are_added_once_and_freed_ones_removed_without_waiting_for_an_execution() {
        let (log, said) = mpsc::channel();
        let hook = Arc::new(Mutex::new(None));
        let keeper = Keeper { slots: Vec::new(), refuse: false, log, shared: Arc::clone(&hook) };
        let shared = Arc::new(SharedExecutor::new(Box::new(keeper)));
        assert_eq!(run(&shared), ErrorStatus::None);
        shared.free(7); // idle: at once
        *lock(&hook) = Some(Arc::clone(&shared));
        assert_eq!(run(&shared), ErrorStatus::None);
        let said: Vec<String> = said.try_iter().collect();
        let want = [
            "add 5",
            "add 7",
            "execute [5, 7]", // the first request
            "remove 7",
            "add 7",
            "execute [5, 7]",
            "freed",
            "remove 5",
        ];
        assert_eq!(said, want);
    }

    #[test]
    fn a_memory_that_the_executor_refuses_fails_the_request_with_its_status() {
        let (log, _said) = mpsc::channel();
        let keeper = Keeper { slots: Vec::new(), refuse: true, log, shared: Arc::default() };
        let shared = SharedExecutor::new(Box::new(keeper));
        assert_eq!(run(&shared), ErrorStatus::ResourceExhaustedTransient);
    }
}
