//! Starting and ending a burst: queues attached, a thread for it, its handle in the session.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use burst_hal::ExecutionPreference;
use burst_wire::control::{Answer, QueueDescriptor, WaitStyle};
use burst_wire::{DATUM_BYTES, DATUM_QUANTUM, Features, PIPELINE_DEPTH_MAX};
use fmq::{Closer, Consumer, Descriptor, Grantor, Producer, Wait};

use crate::ServerError;
use crate::Service;
use crate::admission::limits::{Charge, Limit};
use crate::burst::contexts::{BurstContext, BurstContexts, BurstSetup};
use crate::burst::executor::{Runner, SharedExecutor};
use crate::burst::idle_monitor::Life;
use crate::burst::memories::BurstMemories;
use crate::burst::memory_cache::MemoryCache;
use crate::burst::worker::Worker;
use crate::metrics::counts::BurstCounts;
use crate::session::Session;
use crate::session::dispatch::{Done, find_model, guarded};
use crate::session::models::PreparedEntry;

/// Grantors of a queue with an event flag word.
const GRANTORS_WITH_EVENT_FLAG: usize = 4;
/// Datums of the shortest result: a failure.
const SHORTEST_RESULT: usize = 2;

/// What a session keeps of a burst.
pub(crate) struct BurstHandle {
    cache: Arc<MemoryCache>,
    closers: Closers,
    server: Server,
    /// Given back with the handle, not with the thread: a client that breaks its bursts and never
    /// closes them must not heap up handles.
    _charge: Charge,
}

/// Who serves a burst.
enum Server {
    /// A thread of ours.
    Thread { thread: JoinHandle<()>, executor: Option<Arc<SharedExecutor>> },
    /// Somebody else.
    Context(SharedContext),
}

type SharedContext = Arc<Mutex<Box<dyn BurstContext>>>;

/// Whoever keeps something for a burst's slots besides our cache.
pub(crate) enum SlotKeeper {
    None,
    Executor(Arc<SharedExecutor>),
    Context(SharedContext),
}

impl SlotKeeper {
    pub(crate) fn free(&self, slot: i32) -> Result<(), ServerError> {
        match self {
            SlotKeeper::None => Ok(()),
            SlotKeeper::Executor(executor) => guarded(|| executor.free(slot)),
            SlotKeeper::Context(context) => guarded(|| {
                context.lock().unwrap_or_else(PoisonError::into_inner).free_memory(slot);
            }),
        }
    }
}

/// Ends a burst's waiting on either of its queues.
#[derive(Clone)]
pub(crate) struct Closers([Closer; 2]);

impl Closers {
    pub(crate) fn close(&self) {
        self.0.iter().for_each(Closer::close);
    }
}

impl BurstHandle {
    pub(crate) fn cache(&self) -> Arc<MemoryCache> {
        Arc::clone(&self.cache)
    }

    pub(crate) fn closers(&self) -> Closers {
        self.closers.clone()
    }

    /// Who has to be told that a slot was freed.
    pub(crate) fn slot_keeper(&self) -> SlotKeeper {
        match &self.server {
            Server::Thread { executor: None, .. } => SlotKeeper::None,
            Server::Thread { executor: Some(executor), .. } => {
                SlotKeeper::Executor(Arc::clone(executor))
            }
            Server::Context(context) => SlotKeeper::Context(Arc::clone(context)),
        }
    }

    /// Ends the burst and waits for its thread, and so for an execution that runs just now.
    pub(crate) fn end(self) {
        self.closers.close();
        let ended = match self.server {
            Server::Thread { thread, .. } => thread.join().is_ok(),
            Server::Context(context) => guarded(|| drop(context)).is_ok(),
        };
        if !ended {
            tracing::error!("a burst panicked in the end");
        }
    }
}

/// What a client asks of a burst besides its queues.
pub(crate) struct Wishes {
    pub(crate) features: Features,
    pub(crate) wait: WaitStyle,
    pub(crate) depth: u16,
}

impl Wishes {
    /// Whether the client may wish this.
    fn check(&self, session: &Session) -> Result<(), ServerError> {
        let Wishes { features, depth, .. } = *self;
        let pipelined = features.contains(Features::PIPELINING);
        if !session.features().contains(features) || depth == 0 || (depth > 1 && !pipelined) {
            return Err(ServerError::NotNegotiated);
        }
        let meters = &session.service.metrics.limits;
        meters.within(Limit::PipelineDepth, depth.into(), PIPELINE_DEPTH_MAX.into())
    }
}

/// Starts a burst on a prepared model.
pub(crate) fn configure(
    session: &Arc<Session>,
    model: u32,
    queues: &[QueueDescriptor; 2],
    wishes: &Wishes,
    descriptors: Vec<OwnedFd>,
) -> Result<Done, ServerError> {
    wishes.check(session)?;
    let charge = session.budgets.bursts.charge(1)?;
    let entry = find_model(session, model)?;
    let ends = attach(session, queues, descriptors)?;
    let closers = Closers([ends.0.closer(), ends.1.closer()]);
    let cache = Arc::new(MemoryCache::default());
    let number = session.lock().number();
    let memories =
        BurstMemories { session: Arc::clone(session), number, cache: Arc::clone(&cache) };
    let contexts = session.service.options.contexts.clone();
    let server = match contexts {
        Some(contexts) => start_context(&*contexts, entry, ends, memories, wishes)?,
        None => start_thread(session, entry, ends, memories, wishes)?,
    };
    let handle = BurstHandle { cache, closers, server, _charge: charge };
    let mut state = session.lock();
    if state.closed {
        drop(state);
        handle.end();
        return Err(burst_wire::WireError::Closed.into());
    }
    state.bursts.insert(number, handle);
    session.service.metrics.burst_started();
    Ok(Answer::Burst { burst: number }.into())
}

/// Both queues, found to be such.
fn attach(
    session: &Session,
    queues: &[QueueDescriptor; 2],
    descriptors: Vec<OwnedFd>,
) -> Result<(Consumer, Producer), ServerError> {
    let mut descriptors = descriptors.into_iter();
    let mut next = |queue| descriptor(session, queue, &mut descriptors);
    let (request_queue, result_queue) = (next(&queues[0])?, next(&queues[1])?);
    let requests = Consumer::attach(request_queue)?;
    let results = Producer::attach(result_queue)?;
    if results.capacity() < SHORTEST_RESULT {
        return Err(ServerError::QueueTooShort { datums: results.capacity() });
    }
    Ok((requests, results))
}

/// A thread of ours for a burst.
fn start_thread(
    session: &Session,
    entry: Arc<PreparedEntry>,
    (mut requests, mut results): (Consumer, Producer),
    memories: BurstMemories,
    wishes: &Wishes,
) -> Result<Server, ServerError> {
    let options = &session.service.options;
    let wait = waiting(wishes.wait, entry.preference, options.wait);
    requests.set_wait(wait);
    results.set_wait(wait);
    let runner = guarded(|| Runner::open(&entry.model, &session.cancel))??;
    let metrics = &session.service.metrics;
    let counts = BurstCounts::new(metrics, entry.meter.burst());
    let life = Life::begin(counts, options.idle_time, entry.preference);
    let executor = runner.executor();
    let name = format!("burst-{}-{}", session.number(), memories.number);
    let (ends, run) = ((requests, results), (entry, runner));
    let worker = Worker::new(memories, ends, run, wishes.features, life);
    let started = std::thread::Builder::new().name(name).spawn(move || worker.run());
    let thread = started.map_err(|_| {
        metrics.limits.refused(Limit::Threads);
        ServerError::NoThread
    })?;
    Ok(Server::Thread { thread, executor })
}

/// Hands a burst to whoever serves the bursts of this service.
fn start_context(
    contexts: &dyn BurstContexts,
    entry: Arc<PreparedEntry>,
    (mut requests, mut results): (Consumer, Producer),
    memories: BurstMemories,
    wishes: &Wishes,
) -> Result<Server, ServerError> {
    let wait = waiting(wishes.wait, entry.preference, memories.session.service.options.wait);
    requests.set_wait(wait);
    results.set_wait(wait);
    let Wishes { features, depth, .. } = *wishes;
    let counts = BurstCounts::new(&memories.session.service.metrics, entry.meter.burst());
    let setup = BurstSetup { requests, results, memories, features, depth, counts, entry };
    let context = guarded(|| contexts.configure(setup))??;
    Ok(Server::Context(Arc::new(Mutex::new(context))))
}

/// A queue's descriptor with its share of the message's file descriptors.
fn descriptor(
    session: &Session,
    queue: &QueueDescriptor,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Result<Descriptor, ServerError> {
    let grantor = |grantor: &burst_wire::control::QueueGrantor| Grantor {
        flags: 0,
        fd_index: grantor.fd_index,
        offset: grantor.offset,
        extent: grantor.extent,
    };
    let descriptor = Descriptor {
        grantors: queue.grantors.0.iter().map(grantor).collect(),
        fds: descriptors.take(queue.descriptors.into()).collect(),
        quantum: queue.quantum,
        flags: queue.flags,
    };
    descriptor.expect_quantum(DATUM_QUANTUM).map_err(fmq::QueueError::from)?;
    let Some(ring) = descriptor.grantors.get(2) else {
        return Err(fmq::QueueError::from(fmq::DescriptorError::TooFewGrantors {
            grantors: descriptor.grantors.len(),
        })
        .into());
    };
    let Service { options, metrics, .. } = &*session.service;
    let datums = ring.extent / DATUM_BYTES as u64;
    metrics.limits.within(Limit::QueueDatums, datums, options.limits.queue_datums)?;
    if descriptor.grantors.len() < GRANTORS_WITH_EVENT_FLAG {
        return Err(ServerError::NoEventFlag);
    }
    Ok(descriptor)
}

/// A model that is to save energy is never polled for, unless its client insists.
fn waiting(wish: WaitStyle, preference: ExecutionPreference, default: Wait) -> Wait {
    match wish {
        WaitStyle::Spin => Wait::Spin,
        WaitStyle::Sleep => Wait::Sleep,
        _ if preference == ExecutionPreference::LowPower => Wait::Sleep,
        WaitStyle::Adaptive => Wait::Adaptive { budget_ns: None },
        WaitStyle::Service => default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_saves_energy_is_not_polled_for() {
        let (fast, low) = (ExecutionPreference::FastSingleAnswer, ExecutionPreference::LowPower);
        let adaptive = Wait::Adaptive { budget_ns: None };
        for (wish, preference, want) in [
            (WaitStyle::Service, fast, Wait::Spin),
            (WaitStyle::Service, low, Wait::Sleep),
            (WaitStyle::Adaptive, fast, adaptive),
            (WaitStyle::Adaptive, low, Wait::Sleep),
            (WaitStyle::Spin, low, Wait::Spin),
            (WaitStyle::Sleep, fast, Wait::Sleep),
        ] {
            assert_eq!(waiting(wish, preference, Wait::Spin), want, "{wish:?} {preference:?}");
        }
    }
}
