//! What executes the requests of a burst: a plain one of the device's, or an executor that keeps
//! what it made of each memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use burst_hal::{
    Burst, BurstExecutor, CancelWord, ErrorStatus, ExecutionOptions, ExecutionResult, Failure,
    PreparedModel, Request, RequestPool,
};

/// Who executes.
pub(crate) enum Runner {
    Plain(Box<dyn Burst>),
    Caching(Arc<SharedExecutor>),
}

/// An executor, between the burst's thread that executes and the session's that frees slots.
pub(crate) struct SharedExecutor {
    executor: Mutex<Box<dyn BurstExecutor>>,
    /// Slots that were freed and that the executor was not told of yet.
    freed: Mutex<Vec<i32>>,
}

impl Runner {
    /// What the model offers: an executor if it has one, a burst otherwise. What it executes is
    /// given up when `cancel` is set.
    pub(crate) fn open(
        model: &Arc<dyn PreparedModel>,
        cancel: &CancelWord,
    ) -> Result<Self, Failure> {
        if let Some(mut executor) = Arc::clone(model).open_executor()? {
            executor.cancel_with(cancel);
            return Ok(Runner::Caching(Arc::new(SharedExecutor::new(executor))));
        }
        let mut burst = Arc::clone(model).open_burst()?;
        burst.cancel_with(cancel);
        Ok(Runner::Plain(burst))
    }

    /// The executor, where there is one, to be told of freed slots.
    pub(crate) fn executor(&self) -> Option<Arc<SharedExecutor>> {
        match self {
            Runner::Plain(_) => None,
            Runner::Caching(executor) => Some(Arc::clone(executor)),
        }
    }

    /// Runs a request whose pools have these slots.
    pub(crate) fn run(
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
}

/// For the watchdog, which knows bursts.
impl Burst for Runner {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        self.run(request, &[], options, result);
    }

    fn release_resources(&mut self) {
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

    /// The slot is free. An idle executor is told at once, a busy one after its execution: nobody
    /// who frees a slot waits for that.
    pub(crate) fn free(&self, slot: i32) {
        lock(&self.freed).push(slot);
        self.tell_if_idle();
    }

    fn tell_if_idle(&self) {
        // Whoever holds the executor looks at the list again after letting go of it, so a slot
        // that is put there while this fails is seen by them.
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

/// Sees to it that the executor has every memory of the request.
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

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
