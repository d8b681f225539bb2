//! What executes the requests of a burst: a plain [`Burst`] of the device, or a [`BurstExecutor`], which
//! keeps what it prepared for each memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, TryLockError, Weak};

use burst_hal::{
    Burst, BurstExecutor, Caller, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Memory,
    Pool, PreparedModel, Request, RequestPool,
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
    notes: Mutex<Notes>,
}

/// Which slots the executor has to hear of. A client may free slots as fast as it likes while an execution runs; what
/// is kept of that is bounded: `in_use` by the slots of one packet, `given` by the memories that the burst has
/// (whose number is limited and charged) and those of them that were freed since the request under way began,
/// `freed` by both together.
#[derive(Default)]
struct Notes {
    /// Slots of the request under way, from before their memories are looked up: one that is freed after that is
    /// given to the executor all the same, and has to be taken back.
    in_use: Vec<i32>,
    /// Slots that the executor was given, with their memories, and was not told the end of.
    given: BTreeMap<i32, Weak<dyn Memory>>,
    /// Of both, those that were freed and that the executor has not been told of yet.
    freed: BTreeSet<i32>,
}

impl Notes {
    /// Notes that a slot was freed, where the executor may know it.
    fn free(&mut self, slot: i32) {
        if self.given.contains_key(&slot) || self.in_use.contains(&slot) {
            self.freed.insert(slot);
        }
    }

    /// Whether this memory is what the executor was given for a slot.
    fn has(&self, slot: i32, memory: &Pool) -> bool {
        // The address is no other memory's: that which it had is kept for as long as the reference is.
        let given = self.given.get(&slot);
        given.is_some_and(|given| std::ptr::addr_eq(given.as_ptr(), Arc::as_ptr(memory)))
    }

    /// The freed slots of which the executor can be told.
    fn take_freed(&mut self) -> Vec<i32> {
        let Notes { in_use, given, freed } = self;
        let is_free = |slot: &i32| !in_use.contains(slot);
        let told: Vec<i32> = freed.iter().copied().filter(is_free).collect();
        for slot in &told {
            freed.remove(slot);
            given.remove(slot);
        }
        told
    }

    fn may_tell(&self) -> bool {
        self.freed.iter().any(|slot| !self.in_use.contains(slot))
    }
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

    /// A request begins whose memories lie in these slots and are going to be looked up.
    pub(super) fn begin(&self, slots: &[i32]) {
        if let Runner::Caching(executor) = self {
            executor.begin(slots);
        }
    }

    /// That request has ended, executed or not.
    pub(super) fn end(&self) {
        if let Runner::Caching(executor) = self {
            executor.end();
        }
    }

    /// Runs a request whose pools have these slots, of which [`begin`](Runner::begin) was told.
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
            Runner::Caching(executor) => executor.release_resources(),
        }
    }
}

impl SharedExecutor {
    fn new(executor: Box<dyn BurstExecutor>) -> Self {
        SharedExecutor { executor: Mutex::new(executor), notes: Mutex::default() }
    }

    fn begin(&self, slots: &[i32]) {
        let in_use = &mut lock(&self.notes).in_use;
        in_use.clear();
        in_use.extend_from_slice(slots);
    }

    fn end(&self) {
        lock(&self.notes).in_use.clear();
        self.tell_if_idle(); // what was freed meanwhile
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
        match self.add_missing(&mut **executor, request, slots) {
            Ok(()) => executor.execute(request, slots, options, result),
            Err(status) => result.reset(status),
        }
    }

    fn release_resources(&self) {
        lock(&self.executor).release_resources();
        self.tell_if_idle();
    }

    /// Adds the memories of the request that the executor does not have.
    fn add_missing(
        &self,
        executor: &mut dyn BurstExecutor,
        request: &Request,
        slots: &[i32],
    ) -> Result<(), ErrorStatus> {
        for (slot, pool) in slots.iter().zip(&request.pools) {
            let RequestPool::Memory(memory) = pool else { continue };
            let is_same = lock(&self.notes).has(*slot, memory);
            if executor.is_cached(*slot) {
                if is_same {
                    continue;
                }
                executor.remove(*slot); // the slot was freed and filled again since
            }
            executor.add(*slot, memory).map_err(|failure| {
                tracing::debug!(slot, %failure, "memory refused by the executor");
                failure.status
            })?;
            lock(&self.notes).given.insert(*slot, Arc::downgrade(memory));
        }
        Ok(())
    }

    /// Tells the executor that a slot was freed: at once where it is idle, otherwise after its
    /// execution, for which the calling thread does not wait.
    pub(super) fn free(&self, slot: i32) {
        lock(&self.notes).free(slot);
        self.tell_if_idle();
    }

    fn tell_if_idle(&self) {
        // A thread that holds the executor looks at the notes again after letting go of it, so it
        // finds a slot that was put there while `try_lock` failed.
        while lock(&self.notes).may_tell() {
            match self.executor.try_lock() {
                Ok(mut executor) => self.tell(&mut **executor),
                Err(TryLockError::Poisoned(error)) => self.tell(&mut **error.into_inner()),
                Err(TryLockError::WouldBlock) => return,
            }
        }
    }

    fn tell(&self, executor: &mut dyn BurstExecutor) {
        let freed = lock(&self.notes).take_freed();
        freed.into_iter().for_each(|slot| executor.remove(slot));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use burst_hal::HeapMemory;

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
                let freeing = std::thread::spawn(move || {
                    shared.free(5);
                    // What a client may do as long as the execution takes.
                    (100..10_000).for_each(|slot| shared.free(slot));
                    lock(&shared.notes).freed.len()
                });
                let noted = freeing.join().unwrap();
                self.log.send(format!("freed, {noted} noted")).unwrap();
            }
            result.reset(ErrorStatus::None);
        }
    }

    fn keeper(refuse: bool) -> (Keeper, mpsc::Receiver<String>) {
        let (log, said) = mpsc::channel();
        (Keeper { slots: Vec::new(), refuse, log, shared: Arc::default() }, said)
    }

    fn memories() -> [Pool; 2] {
        [(); 2].map(|()| Arc::new(HeapMemory::new(vec![1])) as Pool)
    }

    /// A request on slots 5 and 7; `looked_up` is called when their memories are.
    fn run_when(shared: &SharedExecutor, pools: &[Pool; 2], looked_up: impl Fn()) -> ErrorStatus {
        let mut result = ExecutionResult::of(ErrorStatus::GeneralFailure);
        shared.begin(&[5, 7]);
        let pools = pools.iter().map(|pool| RequestPool::Memory(Pool::clone(pool))).collect();
        looked_up();
        let request = Request { pools, ..Request::default() };
        shared.run(&request, &[5, 7], &ExecutionOptions::default(), &mut result);
        shared.end();
        result.status
    }

    fn run(shared: &SharedExecutor, pools: &[Pool; 2]) -> ErrorStatus {
        run_when(shared, pools, || ())
    }

    #[test]
    fn memories_are_added_once_and_freed_ones_removed_without_waiting_for_an_execution() {
        let (keeper, said) = keeper(false);
        let hook = Arc::clone(&keeper.shared);
        let shared = Arc::new(SharedExecutor::new(Box::new(keeper)));
        let pools = memories();
        assert_eq!(run(&shared, &pools), ErrorStatus::None);
        shared.free(7); // idle: at once
        *lock(&hook) = Some(Arc::clone(&shared));
        assert_eq!(run(&shared, &pools), ErrorStatus::None);
        let said: Vec<String> = said.try_iter().collect();
        let want = [
            "add 5",
            "add 7",
            "execute [5, 7]", // the first request
            "remove 7",
            "add 7",
            "execute [5, 7]",
            "freed, 1 noted", // of many, which the executor does not know
            "remove 5",
        ];
        assert_eq!(said, want);
        let notes = lock(&shared.notes);
        assert_eq!((notes.in_use.len(), notes.given.len(), notes.freed.len()), (0, 1, 0));
    }

    #[test]
    fn a_slot_that_is_freed_between_the_look_at_it_and_the_execution_is_taken_back() {
        let (keeper, said) = keeper(false);
        let shared = SharedExecutor::new(Box::new(keeper));
        assert_eq!(run_when(&shared, &memories(), || shared.free(5)), ErrorStatus::None);
        let said: Vec<String> = said.try_iter().collect();
        assert_eq!(said, ["add 5", "add 7", "execute [5, 7]", "remove 5"]);
    }

    #[test]
    fn a_slot_that_is_filled_again_meanwhile_is_its_new_memory() {
        let (keeper, said) = keeper(false);
        let shared = SharedExecutor::new(Box::new(keeper));
        let [five, seven] = memories();
        assert_eq!(run(&shared, &[five, Pool::clone(&seven)]), ErrorStatus::None);
        // Freed and filled once the next request has begun, and before it looks.
        let [other, _] = memories();
        shared.begin(&[5, 7]);
        shared.free(5);
        assert_eq!(run(&shared, &[other, seven]), ErrorStatus::None);
        let said: Vec<String> = said.try_iter().collect();
        let first = ["add 5", "add 7", "execute [5, 7]"];
        assert_eq!(said[..3], first);
        assert_eq!(said[3..], ["remove 5", "add 5", "execute [5, 7]", "remove 5"]);
    }

    #[test]
    fn a_memory_that_the_executor_refuses_fails_the_request_with_its_status() {
        let (keeper, _said) = keeper(true);
        let shared = SharedExecutor::new(Box::new(keeper));
        assert_eq!(run(&shared, &memories()), ErrorStatus::ResourceExhaustedTransient);
    }
}
