//! How full a queue is, for who only looks.

use burst_shm::Shared;

use crate::sync::{AtomicU64, Ordering};

/// Says how many items lie in a queue, from any thread, while the ends of the queue go on. Made by
/// [`Consumer::gauge`](crate::Consumer::gauge) and [`Producer::gauge`](crate::Producer::gauge); keeps the queue's
/// memory mapped.
///
/// It reads words that the peer can write, and neither believes nor changes them: what it says is what the
/// words say, never more than the capacity. To look costs both ends a cache miss.
#[derive(Debug, Clone)]
pub struct Gauge {
    pub(crate) read: Shared<AtomicU64>,
    pub(crate) write: Shared<AtomicU64>,
    pub(crate) quantum: usize,
    pub(crate) capacity: usize,
}

impl Gauge {
    /// Items that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Items that were written and not yet read.
    #[must_use]
    pub fn items(&self) -> usize {
        // Relaxed: no payload is looked at. The reading end's counter first: it never passes the other.
        let read = self.read.load(Ordering::Relaxed);
        let written = self.write.load(Ordering::Relaxed).saturating_sub(read);
        let bytes = usize::try_from(written).unwrap_or(usize::MAX);
        (bytes / self.quantum.max(1)).min(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use crate::{QueueConfig, pair};

    #[test]
    fn it_says_what_lies_in_the_queue_and_never_more_than_fits() {
        let (mut producer, mut consumer) = pair(&QueueConfig::new(8, 4)).unwrap();
        let gauges = [producer.gauge(), consumer.gauge()];
        let items = || gauges.each_ref().map(super::Gauge::items);
        assert_eq!((items(), gauges[0].capacity()), ([0, 0], 4));
        producer.write(&[7; 24]).unwrap();
        assert_eq!(items(), [3, 3]);
        let mut out = [0; 8];
        consumer.read(&mut out).unwrap();
        assert_eq!(items(), [2, 2]);
        // A peer that writes nonsense to its word.
        gauges[0].write.store(u64::MAX, super::Ordering::Relaxed);
        assert_eq!(items(), [4, 4]);
        gauges[0].write.store(0, super::Ordering::Relaxed);
        assert_eq!(items(), [0, 0]);
    }
}
