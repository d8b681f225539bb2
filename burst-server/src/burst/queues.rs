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

/// Bytes that the server of a burst keeps for each byte of the queue of requests. A packet can fill the queue. It is
/// copied whole, kept until the next one, which may say only where it differs, and each datum becomes what is longer than
/// it: an argument, among the inputs or among the outputs; or a pool, its slot, and the buffer that it is. All of this
/// keeps its room for the next request, and so each may have that of another packet than the others. A test adds it up.
const REQUEST_COPIES: u64 = 8;
/// The same of the queue of results: the packet of the last one, and room for as many differences.
const RESULT_COPIES: u64 = 2;

/// Charges what attaching to these queues, requests first, takes.
fn charge(queues: &[&Descriptor; 2], budgets: &ClientBudgets) -> Result<Charge, ServerError> {
    let sum = |of: fn(&Descriptor) -> u64| {
        queues.iter().map(|queue| of(queue)).fold(0, u64::saturating_add)
    };
    let copied = queues.iter().zip([REQUEST_COPIES, RESULT_COPIES]).map(|(queue, copies)| {
        queue.grantors.get(2).map_or(0, |ring| ring.extent).saturating_mul(copies)
    });
    let copies = copied.fold(0, u64::saturating_add);
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

#[cfg(test)]
mod tests {
    use burst_hal::{DataLocation, HeapMemory, Pool, RequestArgument, RequestPool};
    use burst_wire::{Features, RequestDecoder, RequestExtras, RequestPacket};

    use super::super::memory_cache::MemoryCache;
    use super::*;
    use crate::buffers::BufferEntry;

    /// Datums of the queue, and so of each packet.
    const DATUMS: usize = 4096;
    /// Of a packet that are neither arguments nor pools.
    const FIXED: usize = 2;

    fn packet(arguments: [&[RequestArgument]; 2], slots: &[i32]) -> Vec<u8> {
        let [inputs, outputs] = arguments;
        let extras = RequestExtras::default();
        let packet = RequestPacket { inputs, outputs, slots, measure_timing: false, extras };
        let mut bytes = Vec::new();
        packet.encode_into(&mut bytes).unwrap();
        assert!(bytes.len() <= DATUMS * DATUM_BYTES, "it fits the queue");
        bytes
    }

    fn argument(rank: usize) -> RequestArgument {
        let location = DataLocation { pool_index: 0, offset: 0, length: 0 };
        RequestArgument { has_no_value: false, location, dimensions: vec![1; rank].into() }
    }

    /// What a burst's thread keeps of packets, as in [`Worker`](super::super::worker::Worker).
    struct Kept {
        packet: Vec<u8>,
        decoder: RequestDecoder,
        kept: Vec<Arc<BufferEntry>>,
        in_use: Vec<i32>,
    }

    impl Kept {
        fn take(&mut self, packet: &[u8], cache: &MemoryCache) {
            self.packet.reserve_exact(packet.len().saturating_sub(self.packet.len()));
            self.packet.resize(packet.len(), 0);
            self.packet.copy_from_slice(packet);
            self.decoder.decode(&self.packet).unwrap();
            self.in_use.clear();
            self.in_use.extend_from_slice(self.decoder.slots());
            let (slots, pools) = self.decoder.slots_and_pools();
            cache.resolve(slots, pools, &mut self.kept).unwrap();
        }

        fn bytes(&self) -> usize {
            let Kept { packet, decoder, kept, in_use } = self;
            let pools = decoder.request().pools.capacity();
            packet.capacity()
                + decoder.kept_bytes()
                + in_use.capacity() * size_of::<i32>()
                + pools * size_of::<RequestPool>()
                + kept.capacity().max(2 * pools) * size_of::<Arc<BufferEntry>>()
        }
    }

    #[test]
    fn what_is_kept_of_packets_that_fill_the_queue_is_paid_for() {
        let cache = MemoryCache::default();
        cache.insert(0, Arc::new(HeapMemory::new(vec![1])) as Pool).unwrap();
        let most = DATUMS - FIXED;
        let arguments = vec![argument(0); most - 1];
        let half = vec![argument(0); most / 2 - 1];
        let mut packets = vec![
            packet([&half, &half], &[0]),
            packet([&arguments, &[]], &[0]),
            packet([&[], &arguments], &[0]),
            packet([&[], &[]], &vec![0; most]),
        ];
        // Each argument in turn with a long list of dimensions; and as many lists as possible on the heap.
        for long in 0..100 {
            let mut arguments = vec![argument(0); 100];
            arguments[long] = argument(most - 101);
            packets.push(packet([&arguments, &[]], &[0]));
        }
        packets.push(packet([&vec![argument(7); (most - 1) / 8], &[]], &[0]));
        let decoder = RequestDecoder::new(Features::DIFFERENCES);
        let mut kept = Kept { packet: Vec::new(), decoder, kept: Vec::new(), in_use: Vec::new() };
        let mut highest = 0;
        for packet in packets.iter().flat_map(|packet| [packet, packet]) {
            kept.take(packet, &cache);
            highest = highest.max(kept.bytes());
        }
        let queue = DATUMS * DATUM_BYTES;
        println!("{highest} bytes of a queue of {queue}");
        let paid = usize::try_from(REQUEST_COPIES).unwrap() * queue;
        assert!(highest <= paid, "{highest} bytes are kept of a queue of {queue}");
        assert!(highest > paid / 2, "no more is asked for than that");
    }
}
