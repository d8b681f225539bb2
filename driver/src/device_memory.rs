//! What all models of a device share of its memory: buffers, and contexts that no execution uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burst_hal::MemoryCharge;

use crate::buffers::Buffers;
use crate::context::Context;

/// Contexts that one model keeps for the next execution when several threads ran at once. More are
/// dropped: they are large, and only as many as run at the same time are of use.
const MAX_IDLE_CONTEXTS: usize = 4;

/// Memory of a device, as its models know it.
#[derive(Debug, Default)]
pub(crate) struct DeviceMemory {
    pub(crate) buffers: Buffers,
    /// Of every model that lives. They are found here by who else needs their memory.
    idle: Mutex<Vec<Weak<IdleContexts>>>,
}

/// Contexts of one model that no execution uses.
#[derive(Debug)]
pub(crate) struct IdleContexts {
    list: Mutex<List>,
    /// Empty, to the account that pays for the contexts.
    payer: MemoryCharge,
}

/// Contexts, and what the list of them takes for itself.
#[derive(Debug)]
struct List {
    contexts: Vec<Context>,
    charge: MemoryCharge,
}

impl DeviceMemory {
    /// A place for the idle contexts of one more model, which this account pays for.
    pub(crate) fn idle_contexts(&self, payer: MemoryCharge) -> Arc<IdleContexts> {
        let list = List { contexts: Vec::new(), charge: payer.same_account() };
        let idle = Arc::new(IdleContexts { list: Mutex::new(list), payer });
        let mut all = lock(&self.idle);
        all.retain(|model| model.strong_count() > 0);
        all.push(Arc::downgrade(&idle));
        idle
    }

    /// Lets every context go that no execution uses and that the account of this charge pays for, of all
    /// models: their next executions make them again. Says whether there were any.
    pub(crate) fn release_idle(&self, payer: &MemoryCharge) -> bool {
        let models: Vec<Arc<IdleContexts>> =
            lock(&self.idle).iter().filter_map(Weak::upgrade).collect();
        let of_payer = models.iter().filter(|model| model.payer.shares_account(payer));
        // Each list is emptied under its own lock alone, and its contexts are dropped under none.
        let released: Vec<_> = of_payer.map(|model| model.lock().take_all()).collect();
        released.iter().any(|list| !list.contexts.is_empty())
    }
}

impl IdleContexts {
    pub(crate) fn take(&self) -> Option<Context> {
        self.lock().contexts.pop()
    }

    /// Keeps a context for the next execution, where there are not enough and the account has room for a longer list.
    pub(crate) fn give_back(&self, context: Context) {
        let mut list = self.lock();
        if list.has_room() {
            list.contexts.push(context);
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        lock(&self.list)
    }
}

impl List {
    /// Whether one more context has a place, which is made, and charged, where there is none.
    fn has_room(&mut self) -> bool {
        let length = self.contexts.len();
        if length < self.contexts.capacity() {
            return true;
        }
        let is_paid =
            length < MAX_IDLE_CONTEXTS && self.charge.grow(size_of::<Context>() as u64).is_ok();
        if is_paid {
            self.contexts.reserve_exact(1);
        }
        is_paid
    }

    fn take_all(&mut self) -> List {
        List { contexts: std::mem::take(&mut self.contexts), charge: self.charge.take() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
