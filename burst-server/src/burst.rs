//! Starting and ending a burst: queues attached, a thread for it, its handle in the session.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_hal::ExecutionPreference;
use burst_wire::control::{Answer, QueueDescriptor, WaitStyle};
use burst_wire::{DATUM_BYTES, DATUM_QUANTUM, Features};
use fmq::{Closer, Consumer, Descriptor, Grantor, Producer, Wait};

use crate::ServerError;
use crate::Service;
use crate::calls::{Done, find_model, guarded};
use crate::life::Life;
use crate::limits::{Charge, Limit};
use crate::memory_cache::MemoryCache;
use crate::serve::Worker;
use crate::session::Session;

/// Grantors of a queue with an event flag word.
const GRANTORS_WITH_EVENT_FLAG: usize = 4;
/// Datums of the shortest result: a failure.
const SHORTEST_RESULT: usize = 2;

/// What a session keeps of a burst.
pub(crate) struct BurstHandle {
    cache: Arc<MemoryCache>,
    closers: Closers,
    thread: JoinHandle<()>,
    /// Given back with the handle, not with the thread: a client that breaks its bursts and never
    /// closes them must not heap up handles.
    _charge: Charge,
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

    /// Ends the burst and waits for its thread, and so for an execution that runs just now.
    pub(crate) fn end(self) {
        self.closers.close();
        if self.thread.join().is_err() {
            tracing::error!("a burst's thread panicked");
        }
    }
}

/// Starts a burst on a prepared model.
pub(crate) fn configure(
    session: &Arc<Session>,
    model: u32,
    queues: &[QueueDescriptor; 2],
    features: u64,
    wait: WaitStyle,
    descriptors: Vec<OwnedFd>,
) -> Result<Done, ServerError> {
    let features = Features::from_bits(features);
    if !session.features().contains(features) {
        return Err(ServerError::NotNegotiated);
    }
    let charge = session.budgets.bursts.charge(1)?;
    let entry = find_model(session, model)?;
    let mut descriptors = descriptors.into_iter();
    let mut next = |queue| descriptor(session, queue, &mut descriptors);
    let (request_queue, result_queue) = (next(&queues[0])?, next(&queues[1])?);
    let mut requests = Consumer::attach(request_queue)?;
    let mut results = Producer::attach(result_queue)?;
    if results.capacity() < SHORTEST_RESULT {
        return Err(ServerError::QueueTooShort { datums: results.capacity() });
    }
    let wait = waiting(wait, entry.preference, session.service.options.wait);
    requests.set_wait(wait);
    results.set_wait(wait);
    let burst = guarded(|| Arc::clone(&entry.model).open_burst())??;
    let options = &session.service.options;
    let (metrics, meter) = (&session.service.metrics, entry.meter.burst());
    let life = Life::begin(metrics, meter, options.idle_time, entry.preference);
    let cache = Arc::new(MemoryCache::default());
    let closers = Closers([requests.closer(), results.closer()]);

    let mut state = session.lock();
    if state.closed {
        return Err(burst_wire::WireError::Closed.into());
    }
    let number = state.number();
    let worker = Worker::new(
        Arc::clone(session),
        number,
        (requests, results),
        (entry, burst),
        Arc::clone(&cache),
        features,
        life,
    );
    let thread = std::thread::Builder::new()
        .name(format!("burst-{}-{number}", session.number()))
        .spawn(move || worker.run())
        .map_err(|_| {
            session.service.metrics.limits.refused(Limit::Threads);
            ServerError::NoThread
        })?;
    state.bursts.insert(number, BurstHandle { cache, closers, thread, _charge: charge });
    Ok(Answer::Burst { burst: number }.into())
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
