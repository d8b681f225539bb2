//! How long a burst has had no request: when it stops polling, and what it releases after the idle time.

use std::sync::Arc;
use std::time::Duration;

use burst_hal::ExecutionPreference;
use fmq::{Consumer, Deadline, QueueError};

use super::end_reason::EndReason;
use super::waiting::Waiting;
use crate::metrics::BurstCounts;
use crate::process::{Hold, Performance};

/// Waits for a burst's requests. It runs on the burst's own thread: that thread knows how long no
/// request came, and no other thread may touch the driver's resources.
#[derive(Debug)]
pub(super) struct IdleMonitor {
    waiting: Waiting,
    /// After this time without requests the driver's resources are released; `None` for never.
    idle_time: Option<Duration>,
    /// Where to request the system's high-performance state; `None` for a model that is to save
    /// energy.
    performance: Option<Arc<Performance>>,
    hold: Option<Hold>,
    is_released: bool,
}

impl IdleMonitor {
    /// A monitor for a burst that begins now.
    pub(super) fn begin(
        waiting: Waiting,
        idle_time: Option<Duration>,
        performance: &Arc<Performance>,
        preference: ExecutionPreference,
    ) -> Self {
        let wants_speed = preference != ExecutionPreference::LowPower;
        let performance = wants_speed.then(|| Arc::clone(performance));
        let hold = performance.as_ref().map(Performance::hold);
        IdleMonitor { waiting, idle_time, performance, hold, is_released: false }
    }

    /// Waits for datums; gives how many there are. Where none come for the idle time, `release` lets
    /// go of what can be allocated again, once.
    pub(super) fn next_request(
        &mut self,
        requests: &mut Consumer,
        counts: &BurstCounts,
        mut release: impl FnMut() -> Result<(), EndReason>,
    ) -> Result<usize, EndReason> {
        loop {
            self.waiting.prepare(requests);
            match requests.wait(1, self.patience()) {
                Err(QueueError::Timeout) => {
                    if !self.waiting.fall_asleep() {
                        self.is_released = true;
                        self.hold = None;
                        counts.resources_released();
                        release()?;
                    }
                }
                other => {
                    self.waiting.wake_up();
                    self.is_released = false;
                    if self.hold.is_none() {
                        self.hold = self.performance.as_ref().map(Performance::hold);
                    }
                    return Ok(other?);
                }
            }
        }
    }

    fn patience(&self) -> Deadline {
        match self.waiting.patience().or(self.idle_time.filter(|_| !self.is_released)) {
            Some(patience) => Deadline::after(patience),
            None => Deadline::never(),
        }
    }
}
