//! A burst's life besides its requests: what it counts, its idle time, its wish for speed.

use std::time::Duration;

use burst_hal::{Burst, ExecutionPreference};
use fmq::{Consumer, Deadline, QueueError};

use crate::burst::worker::End;
use crate::metrics::GivenUp;
use crate::metrics::counts::BurstCounts;
use crate::process::Hold;
use crate::session::dispatch::guarded;

/// Kept by the burst's own thread, which is the watchdog too (decision B7): whoever waits for
/// requests knows best how long none came, and nobody else may touch the driver's resources.
pub(crate) struct Life {
    counts: BurstCounts,
    /// After which time without requests the driver's resources go; `None` for never.
    idle_time: Option<Duration>,
    wants_speed: bool,
    hold: Option<Hold>,
    is_released: bool,
}

impl Life {
    /// The life of a burst that begins now.
    pub(crate) fn begin(
        counts: BurstCounts,
        idle_time: Option<Duration>,
        preference: ExecutionPreference,
    ) -> Self {
        let wants_speed = preference != ExecutionPreference::LowPower;
        let hold = wants_speed.then(|| counts.metrics().performance().hold());
        Life { counts, idle_time, wants_speed, hold, is_released: false }
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
                        self.hold = Some(self.counts.metrics().performance().hold());
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
        self.counts.metrics().resources_released();
        guarded(|| burst.release_resources()).map_err(|_| End::Panicked)
    }

    /// Where this burst's requests are counted.
    pub(crate) fn counts(&mut self) -> &mut BurstCounts {
        &mut self.counts
    }

    /// The burst ends before its client wished it.
    pub(crate) fn given_up(&mut self, end: &End) {
        match end {
            End::Closed => {}
            End::Queue(_) | End::Framing(_) => self.counts.given_up(GivenUp::Queue),
            End::ResultsNotTaken => self.counts.given_up(GivenUp::ResultsNotTaken),
            End::Panicked => self.counts.given_up(GivenUp::Panicked),
        }
    }
}
