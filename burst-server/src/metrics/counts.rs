//! What the server of one burst counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use burst_hal::ErrorStatus;

use super::{BurstMeter, GivenUp, Metrics};

/// The counters of one burst in the service's metrics: the counts of its model and of the service
/// are sums over these. There is one writer at a time, so that counting a request is a handful of
/// plain loads and stores.
#[derive(Debug)]
pub struct BurstCounts {
    metrics: Arc<Metrics>,
    meter: BurstMeter,
}

impl BurstCounts {
    pub(crate) fn new(metrics: &Arc<Metrics>, meter: BurstMeter) -> Self {
        BurstCounts { metrics: Arc::clone(metrics), meter }
    }

    /// Waits for room for a result, with `wait`, which is shown meanwhile.
    pub(crate) fn while_waiting_for_room<T>(&self, wait: impl FnOnce() -> T) -> T {
        let waits = |waits| {
            if let Some(probe) = self.meter.probe.get() {
                // Relaxed: a hint for people.
                probe.waits_for_room.store(waits, Ordering::Relaxed);
            }
        };
        waits(true);
        let waited = wait();
        waits(false);
        waited
    }

    /// The burst let go of the driver's resources after its idle time.
    pub(crate) fn resources_released(&self) {
        self.metrics.resources_released();
    }

    /// A packet could not be decoded. It is answered all the same, and so counted by
    /// [`answered`](BurstCounts::answered) too.
    pub fn malformed(&mut self) {
        self.metrics.malformed_packet();
    }

    /// A request goes to the device.
    pub fn executing(&mut self) {
        self.meter.counts.executing_alone();
    }

    /// A packet that arrived at `arrived` was answered with this status. This reads the clock only
    /// where the service times all requests.
    pub fn answered(&mut self, status: ErrorStatus, arrived: Instant) {
        self.answered_after(status, arrived, None);
    }

    /// The same; with `nanos` where its time was measured already.
    pub(crate) fn answered_after(
        &mut self,
        status: ErrorStatus,
        arrived: Instant,
        nanos: Option<u64>,
    ) {
        let measured = || u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let nanos = nanos.or_else(|| self.metrics.timed().then(measured));
        self.meter.counts.count_alone(status, nanos);
    }

    /// The burst ends before its client closed it.
    pub fn given_up(&mut self, why: GivenUp) {
        self.metrics.burst_given_up(why);
    }
}
