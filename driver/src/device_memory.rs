//! What all models of a device share of its memory: buffers, and contexts that no execution uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use burst_hal::MemoryCharge;

use crate::buffers::Buffers;
use crate::context::Context;

/// Contexts that one model keeps for the next execution when several threads ran at once. More are
/// dropped: they are large, and only as many as run at the same time are of use.
pub(crate) const MAX_IDLE_CONTEXTS: usize = 4;

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
    contexts: Mutex<Vec<Context>>,
    /// Empty, to the account that pays for the contexts.
    payer: MemoryCharge,
}

impl DeviceMemory {
    /// A place for the idle contexts of one more model, which this account pays for.
    pub(crate) fn idle_contexts(&self, payer: MemoryCharge) -> Arc<IdleContexts> {
        let contexts = Mutex::new(Vec::with_capacity(MAX_IDLE_CONTEXTS));
        let idle = Arc::new(IdleContexts { contexts, payer });
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
        let released: Vec<_> = of_payer.map(|model| std::mem::take(&mut *model.lock())).collect();
        released.iter().any(|contexts| !contexts.is_empty())
    }
}

impl IdleContexts {
    pub(crate) fn take(&self) -> Option<Context> {
        self.lock().pop()
    }

    pub(crate) fn give_back(&self, context: Context) {
        let mut contexts = self.lock();
        if contexts.len() < MAX_IDLE_CONTEXTS {
            contexts.push(context);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Context>> {
        lock(&self.contexts)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
