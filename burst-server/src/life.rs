//! A burst's life besides its requests: what it counts, its idle time, its wish for speed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::{Burst, ErrorStatus, ExecutionPreference};
use fmq::{Consumer, Deadline, QueueError};

use crate::calls::guarded;
use crate::metrics::{BurstMeter, GivenUp, Metrics};
use crate::performance::Hold;
use crate::serve::End;

/// Kept by the burst's own thread, which is the watchdog too (decision B7): whoever waits for
/// requests knows best how long none came, and nobody else may touch the driver's resources.
pub(crate) struct Life {
    metrics: Arc<Metrics>,
    meter: BurstMeter,
    /// After which time without requests the driver's resources go; `None` for never.
    idle_time: Option<Duration>,
    wants_speed: bool,
    hold: Option<Hold>,
    is_released: bool,
}

impl Life {
    /// The life of a burst that begins now.
    pub(crate) fn begin(
        metrics: &Arc<Metrics>,
        meter: BurstMeter,
        idle_time: Option<Duration>,
        preference: ExecutionPreference,
    ) -> Self {
        let wants_speed = preference != ExecutionPreference::LowPower;
        let hold = wants_speed.then(|| metrics.performance().hold());
        let metrics = Arc::clone(metrics);
        Life { metrics, meter, idle_time, wants_speed, hold, is_released: false }
    }

    /// Waits for datums; gives how many there are. Where none come for the idle time, `burst` lets
    /// go of what it can make again, once.
    pub(crate) fn next_request(
        &mut self,
        requests: &mut Consumer,
        burst: &mut dyn Burst,
    ) -> Result<usize, End> {
        loop {
            match requests.wait(1, self.patience()) {
                Err(QueueError::Timeout) => self.release(burst)?,
                other => {
                    self.is_released = false;
                    if self.wants_speed && self.hold.is_none() {
                        self.hold = Some(self.metrics.performance().hold());
                    }
                    return Ok(other?);
                }
            }
        }
    }

    fn patience(&self) -> Deadline {
        match self.idle_time {
            Some(idle_time) if !self.is_released => Deadline::after(idle_time),
            _ => Deadline::never(),
        }
    }

    fn release(&mut self, burst: &mut dyn Burst) -> Result<(), End> {
        self.is_released = true;
        self.hold = None;
        self.metrics.resources_released();
        guarded(|| burst.release_resources()).map_err(|_| End::Panicked)
    }

    /// The request that came is no packet.
    pub(crate) fn malformed(&self) {
        self.metrics.malformed_packet();
    }

    /// A request goes to the device.
    pub(crate) fn executing(&self) {
        self.meter.counts.executing_alone();
    }

    /// A request was answered; `nanos` where its time was taken already.
    pub(crate) fn answered(&self, status: ErrorStatus, arrived: Instant, nanos: Option<u64>) {
        let taken = || u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let nanos = nanos.or_else(|| self.metrics.timed().then(taken));
        self.meter.counts.count_alone(status, nanos);
    }

    /// The burst ends before its client wished it.
    pub(crate) fn given_up(&self, end: &End) {
        match end {
            End::Closed => {}
            End::Queue(_) | End::Framing(_) => self.metrics.burst_given_up(GivenUp::Queue),
            End::ResultsNotTaken => self.metrics.burst_given_up(GivenUp::ResultsNotTaken),
            End::Panicked => self.metrics.burst_given_up(GivenUp::Panicked),
        }
    }
}
