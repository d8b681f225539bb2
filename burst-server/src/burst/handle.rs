//! What a session keeps of a burst: how to reach its slots, and how to end it.

use std::sync::{Arc, Mutex, Weak};

use super::contexts::BurstContext;
use super::ending::{Ending, Reply, Served};
use super::executor::SharedExecutor;
use super::memory_cache::MemoryCache;
use super::queues::Closers;
use crate::panics::{Panicked, catch_panic, lock};
use crate::threads;

/// A burst, as its session knows it.
pub(crate) struct BurstHandle {
    pub(super) cache: Arc<MemoryCache>,
    pub(super) closers: Closers,
    pub(super) server: Server,
    pub(super) buffers: BuffersInSlots,
    pub(super) ending: Arc<Ending>,
}

/// Whether buffers of a driver may lie in a burst's slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BuffersInSlots {
    /// The client did not ask for that.
    NotNegotiated,
    /// Who serves the burst takes memories only.
    MemoryOnly,
    /// Those of the device with this name.
    Of(String),
}

/// Who serves a burst.
pub(super) enum Server {
    /// A thread of this crate. The executor is the thread's, and dropped there.
    Thread { executor: Option<Weak<SharedExecutor>> },
    /// A context of the driver's.
    Context { context: Arc<SharedContext>, thread_name: String, served: Served },
}

/// A context. The threads that read the socket report freed slots to it; one thread drops it.
pub(crate) struct SharedContext(Mutex<Option<Box<dyn BurstContext>>>);

impl SharedContext {
    pub(super) fn new(context: Box<dyn BurstContext>) -> Arc<Self> {
        Arc::new(SharedContext(Mutex::new(Some(context))))
    }

    fn free_memory(&self, slot: i32) {
        if let Some(context) = &mut *lock(&self.0) {
            context.free_memory(slot);
        }
    }

    /// Drops the context, which may take as long as the execution that is under way on it.
    fn end(&self) {
        let context = lock(&self.0).take();
        if catch_panic(|| drop(context)).is_err() {
            tracing::error!("a burst's context panicked when it was dropped");
        }
    }
}

/// A holder of resources for a burst's slots besides the [`MemoryCache`].
pub(crate) enum SlotKeeper {
    None,
    Executor(Weak<SharedExecutor>),
    Context(Arc<SharedContext>),
}

impl SlotKeeper {
    /// Reports a freed slot to it.
    pub(crate) fn free(&self, slot: i32) -> Result<(), Panicked> {
        match self {
            SlotKeeper::None => Ok(()),
            SlotKeeper::Executor(executor) => catch_panic(|| {
                if let Some(executor) = executor.upgrade() {
                    executor.free(slot);
                }
            }),
            SlotKeeper::Context(context) => catch_panic(|| context.free_memory(slot)),
        }
    }
}

impl BurstHandle {
    pub(crate) fn cache(&self) -> Arc<MemoryCache> {
        Arc::clone(&self.cache)
    }

    pub(crate) fn closers(&self) -> Closers {
        self.closers.clone()
    }

    /// Which buffers its slots take.
    pub(crate) fn buffers(&self) -> BuffersInSlots {
        self.buffers.clone()
    }

    /// To whom freed slots have to be reported.
    pub(crate) fn slot_keeper(&self) -> SlotKeeper {
        match &self.server {
            Server::Thread { executor: None } => SlotKeeper::None,
            Server::Thread { executor: Some(executor) } => {
                SlotKeeper::Executor(Weak::clone(executor))
            }
            Server::Context { context, .. } => SlotKeeper::Context(Arc::clone(context)),
        }
    }

    /// Ends the burst without waiting for it: `reply` is called when it has ended, after the execution
    /// that is under way.
    ///
    /// # Errors
    /// The system has no thread on which to drop the driver's context; the burst goes on then.
    pub(crate) fn close(self, reply: Reply) -> Result<(), Box<Self>> {
        let BurstHandle { cache, closers, server, buffers, ending } = self;
        match server {
            Server::Thread { .. } => {
                drop(cache); // before the reply: what lies in its slots is given back with the burst
                closers.close();
                ending.close(reply);
                Ok(())
            }
            Server::Context { ref thread_name, .. } => {
                let name = thread_name.clone();
                let parcel = (BurstHandle { cache, closers, server, buffers, ending }, reply);
                threads::start(name, parcel, |(handle, reply)| {
                    let ending = Arc::clone(&handle.ending);
                    ending.close(reply);
                    handle.abandon();
                })
                .map_err(|(handle, _)| Box::new(handle))
            }
        }
    }

    /// Ends the burst without a reply. It drops the driver's context, where there is one, and waits for
    /// nothing else.
    pub(crate) fn abandon(self) {
        let BurstHandle { cache, closers, server, ending, .. } = self;
        closers.close();
        drop((cache, ending));
        if let Server::Context { context, served, .. } = server {
            context.end();
            drop(served);
        }
    }
}
