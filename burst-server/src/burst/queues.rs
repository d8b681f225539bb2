//! A client's two queues, checked and attached.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use burst_wire::control::{QueueDescriptor, QueueGrantor};
use burst_wire::{DATUM_BYTES, DATUM_QUANTUM};
use fmq::{
    Closer, Consumer, Descriptor, DescriptorError, Gauge, Grantor, Producer, QueueError, Wait,
};

use crate::ServerError;
use crate::admission::{Charge, ClientBudgets, Limit, LimitMeters};
use crate::scheduler::Run;

/// Grantors of a queue with an event flag word.
const GRANTORS_WITH_EVENT_FLAG: usize = 4;
/// Datums of the shortest result: a failure.
const SHORTEST_RESULT: usize = 2;

/// The service's ends of a burst's queues.
pub(crate) struct QueueEnds {
    pub(super) requests: Consumer,
    pub(super) results: Producer,
}

/// Ends a burst: what is being executed goes on, and nothing further begins.
#[derive(Debug, Clone)]
pub(crate) struct Closers {
    queues: [Closer; 2],
    run: Arc<Run>,
}

impl Closers {
    /// Closes both queues, which wakes the threads that wait there, and ends waiting for a turn.
    pub(crate) fn close(&self) {
        self.run.call_off();
        self.queues.iter().for_each(Closer::close);
    }

    /// Whether it was called.
    pub(super) fn is_closed(&self) -> bool {
        self.queues.iter().any(Closer::is_closed)
    }
}

impl QueueEnds {
    /// Attaches to the queues that a message describes; requests first. Gives what the client pays for
    /// them as long as anybody holds one of their ends.
    pub(super) fn attach(
        queues: &[QueueDescriptor; 2],
        descriptors: Vec<OwnedFd>,
        datums_max: u64,
        meters: &LimitMeters,
        budgets: &ClientBudgets,
    ) -> Result<(Self, Charge), ServerError> {
        let mut descriptors = descriptors.into_iter();
        let mut next = |queue| descriptor(queue, &mut descriptors, datums_max, meters);
        let (request_queue, result_queue) = (next(&queues[0])?, next(&queues[1])?);
        let charge = charge(&[&request_queue, &result_queue], budgets)?;
        let requests = Consumer::attach(request_queue)?;
        let results = Producer::attach(result_queue)?;
        if results.capacity() < SHORTEST_RESULT {
            return Err(ServerError::QueueTooShort { datums: results.capacity() });
        }
        Ok((QueueEnds { requests, results }, charge))
    }

    pub(super) fn set_wait(&mut self, wait: Wait) {
        self.requests.set_wait(wait);
        self.results.set_wait(wait);
    }

    /// Say how full these queues are: requests, results.
    pub(super) fn gauges(&self) -> (Gauge, Gauge) {
        (self.requests.gauge(), self.results.gauge())
    }

    /// Closes these queues, of the burst that this run serves.
    pub(super) fn closers(&self, run: &Arc<Run>) -> Closers {
        let queues = [self.requests.closer(), self.results.closer()];
        Closers { queues, run: Arc::clone(run) }
    }
}

/// Bytes that the server of a burst keeps for each byte of a queue: a packet can fill the queue, and is
/// copied, decoded and made into a request, of which every part is a few times as long as its datums.
const COPIES: u64 = 4;

/// Charges what attaching to these queues takes.
fn charge(queues: &[&Descriptor], budgets: &ClientBudgets) -> Result<Charge, ServerError> {
    let sum = |of: fn(&Descriptor) -> u64| {
        queues.iter().map(|queue| of(queue)).fold(0, u64::saturating_add)
    };
    let ring = |queue: &Descriptor| queue.grantors.get(2).map_or(0, |ring| ring.extent);
    let copies = sum(ring).saturating_mul(COPIES);
    Ok(budgets.queues(
        sum(|queue| queue.fds.len() as u64),
        sum(Descriptor::mapped_bytes),
        copies,
    )?)
}

/// A queue's descriptor with its share of the message's file descriptors.
fn descriptor(
    queue: &QueueDescriptor,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
    datums_max: u64,
    meters: &LimitMeters,
) -> Result<Descriptor, ServerError> {
    let grantor = |grantor: &QueueGrantor| Grantor {
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
    descriptor.expect_quantum(DATUM_QUANTUM).map_err(QueueError::from)?;
    let Some(ring) = descriptor.grantors.get(2) else {
        let grantors = descriptor.grantors.len();
        return Err(QueueError::from(DescriptorError::TooFewGrantors { grantors }).into());
    };
    meters.within(Limit::QueueDatums, ring.extent / DATUM_BYTES as u64, datums_max)?;
    if descriptor.grantors.len() < GRANTORS_WITH_EVENT_FLAG {
        return Err(ServerError::NoEventFlag);
    }
    Ok(descriptor)
}
