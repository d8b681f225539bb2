//! A prepared model with memory for its tensors, and what is under way on it.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use burst_client::{Burst, BurstOptions, ClientError, Deadline, RemotePreparedModel, Ticket};
use burst_hal::session::SessionTensors;
use burst_hal::{ErrorStatus, ExecutionOptions, RequestPool, TimePoint};
use pyo3::prelude::*;

use crate::errors::{self, Class};
use crate::waiting::listening;

/// A way to the driver, and the request on it whose result was not taken.
struct Lane {
    burst: Burst,
    under_way: Option<Ticket>,
    takes_deadlines: bool,
    /// Whether that request had a deadline.
    has_deadline: bool,
}

/// A model that runs. Callers that wait and event loops have a burst each: waiting for a descriptor costs a change of
/// threads, which those who wait by themselves should not pay for.
pub(crate) struct Running {
    model: Arc<RemotePreparedModel>,
    waited: Lane,
    polled: Option<Lane>,
    pub(crate) tensors: SessionTensors,
    driver_time: Option<Duration>,
}

impl Lane {
    /// The memories are sent now: a run, which Ctrl-C may end, then waits for nothing but its result.
    fn open(
        model: &Arc<RemotePreparedModel>,
        tensors: &SessionTensors,
    ) -> Result<Self, ClientError> {
        let mut burst = model.configure_burst(&BurstOptions::default())?;
        for pool in &tensors.request(0).pools {
            if let RequestPool::Memory(memory) = pool {
                burst.push_memory(memory)?;
            }
        }
        let takes_deadlines = burst.takes_deadlines();
        Ok(Lane { burst, under_way: None, takes_deadlines, has_deadline: false })
    }

    fn send(&mut self, tensors: &SessionTensors, deadline: Deadline) -> Result<(), ClientError> {
        let until = deadline.as_ns().filter(|_| self.takes_deadlines);
        self.has_deadline = until.is_some();
        let options = ExecutionOptions {
            measure_timing: true,
            deadline: until.map(|nanos| TimePoint { nanos }),
            ..ExecutionOptions::default()
        };
        self.under_way = Some(self.burst.submit(tensors.request(0), &options, deadline)?);
        Ok(())
    }

    /// Waits for what is under way, if anything is.
    fn settle(&mut self, deadline: Deadline) -> PyResult<Result<(), ClientError>> {
        let Some(ticket) = &self.under_way else { return Ok(Ok(())) };
        let burst = &mut self.burst;
        let outcome = listening(deadline, |until| burst.wait(ticket, until).map(drop))?;
        if !matches!(outcome, Err(ClientError::Timeout)) {
            self.under_way = None;
        }
        Ok(outcome)
    }

    /// Whether nothing is under way any more. What it came to is an error too.
    fn is_settled(&mut self) -> Result<bool, ClientError> {
        let Some(ticket) = &self.under_way else { return Ok(true) };
        let is_over = self.burst.try_wait(ticket).map(|result| result.is_some());
        if !matches!(is_over, Ok(false)) {
            self.under_way = None;
        }
        is_over
    }

    /// The failure of an execution that has ended. A deadline that the driver missed is the caller's, who learns of it as
    /// if the answer had not come in time.
    fn outcome(&self) -> PyResult<()> {
        use ErrorStatus::{MissedDeadlinePersistent, MissedDeadlineTransient};
        match self.burst.last_result().status {
            ErrorStatus::None => Ok(()),
            MissedDeadlineTransient | MissedDeadlinePersistent if self.has_deadline => {
                Err(failed(&ClientError::Timeout))
            }
            status => Err(failed(&ClientError::Execution { status })),
        }
    }
}

fn failed(error: &ClientError) -> PyErr {
    errors::of_client(error, Class::Failed)
}

impl Running {
    pub(crate) fn open(
        model: Arc<RemotePreparedModel>,
        tensors: SessionTensors,
    ) -> Result<Self, ClientError> {
        let waited = Lane::open(&model, &tensors)?;
        Ok(Running { model, waited, polled: None, tensors, driver_time: None })
    }

    /// Runs, and waits for the outcome. Once it was interrupted the request goes on; the next run waits for it first.
    pub(crate) fn run(&mut self, deadline: Deadline) -> PyResult<()> {
        if let Some(polled) = &mut self.polled {
            polled.settle(deadline)?.map_err(|error| failed(&error))?;
        }
        let lane = &mut self.waited;
        lane.settle(deadline)?.map_err(|error| failed(&error))?;
        self.driver_time = None;
        lane.send(&self.tensors, deadline).map_err(|error| failed(&error))?;
        lane.settle(deadline)?.map_err(|error| failed(&error))?;
        lane.outcome()?;
        self.driver_time = lane.burst.driver_time();
        self.tensors.advance_states();
        Ok(())
    }

    fn polled(&mut self) -> PyResult<&mut Lane> {
        if self.polled.is_none() {
            let lane = Lane::open(&self.model, &self.tensors);
            self.polled = Some(lane.map_err(|error| failed(&error))?);
        }
        // It was just put there.
        self.polled.as_mut().ok_or_else(|| failed(&ClientError::UnexpectedAnswer))
    }

    /// What can be read while a result of [`Running::start`] is there, or its driver is gone.
    pub(crate) fn descriptor(&mut self) -> PyResult<RawFd> {
        let lane = self.polled()?;
        let descriptor = lane.burst.completion_fd().map_err(|error| failed(&error))?;
        Ok(descriptor.as_raw_fd())
    }

    /// Starts a run that nobody waits for; `false` where an earlier one, whose caller gave up, is not over yet.
    pub(crate) fn start(&mut self, deadline: Deadline) -> PyResult<bool> {
        self.polled()?;
        let lanes = [Some(&mut self.waited), self.polled.as_mut()];
        for lane in lanes.into_iter().flatten() {
            if !lane.is_settled().map_err(|error| failed(&error))? {
                return Ok(false);
            }
        }
        self.driver_time = None;
        if let Some(polled) = &mut self.polled {
            polled.send(&self.tensors, deadline).map_err(|error| failed(&error))?;
        }
        Ok(true)
    }

    /// Whether the run that was started is over.
    pub(crate) fn is_over(&mut self) -> PyResult<bool> {
        let Some(lane) = &mut self.polled else { return Ok(true) };
        let was_under_way = lane.under_way.is_some();
        if !lane.is_settled().map_err(|error| failed(&error))? {
            return Ok(false);
        }
        if was_under_way {
            lane.outcome()?;
            self.driver_time = lane.burst.driver_time();
        }
        Ok(true)
    }

    /// Copies an output of the last run out.
    pub(crate) fn read_output(
        &self,
        index: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), burst_hal::MemoryError> {
        self.tensors.read_output(index, self.waited.burst.last_result(), bytes)
    }

    /// How long the last run took in the driver.
    pub(crate) fn driver_time(&self) -> Option<Duration> {
        self.driver_time
    }

    pub(crate) fn driver_pid(&self) -> u32 {
        self.model.driver_pid()
    }
}
