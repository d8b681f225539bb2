//! From a request of the HAL to an execution, and back to a result.

use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use burst_hal::{
    ErrorStatus, ExecutionInfo, ExecutionOptions, ExecutionResult, Failure, Fence, FenceState,
    FencedInfo, OutputShape, Pool, Request, RequestArgument, RequestPool, ResultCode, TimePoint,
    Timing,
};

use super::buffers::Buffers;
use super::objects::{Compilation, DeviceHandle, Event, Execution, Memory};
use crate::{Error, Result};

/// Where arguments are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// In buffers of this process.
    Pointer,
    /// In memories, at the places where the request has them.
    Memory,
}

/// An execution with everything that its arguments lie in. Fields are dropped in this order: the execution
/// before its buffers.
pub(super) struct Prepared {
    pub(super) execution: Execution,
    /// Memories of the request's pools, as far as they were needed.
    memories: Vec<Option<Memory>>,
    inputs: Vec<Vec<u8>>,
    /// Buffers of outputs, with where in the request's pools they belong.
    outputs: Vec<(Vec<u8>, Pool, u64)>,
}

impl Prepared {
    /// An execution with its arguments and options.
    pub(super) fn new(
        device: &DeviceHandle,
        compilation: &Compilation,
        buffers: &Buffers,
        request: &Request,
        options: &ExecutionOptions,
        by: By,
    ) -> Result<Self> {
        let mut execution = compilation.execution()?;
        if options.measure_timing {
            execution.set_measure_timing(true)?;
        }
        if let Some(nanos) = nanos_left(options.deadline) {
            execution.set_timeout(nanos)?;
        }
        if let Some(timeout) = options.loop_timeout {
            execution.set_loop_timeout(nanos(timeout))?;
        }
        let mut made = Prepared {
            execution,
            memories: request.pools.iter().map(|_| None).collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        for (position, argument) in request.inputs.iter().enumerate() {
            made.input(device, buffers, request, position, argument, by)?;
        }
        for (position, argument) in request.outputs.iter().enumerate() {
            made.output(device, buffers, request, position, argument, by)?;
        }
        Ok(made)
    }

    fn input(
        &mut self,
        device: &DeviceHandle,
        buffers: &Buffers,
        request: &Request,
        position: usize,
        argument: &RequestArgument,
        by: By,
    ) -> Result<()> {
        if argument.has_no_value {
            return self.execution.set_input(position, None);
        }
        let (offset, length) = range(argument);
        match pool_of(request, argument)? {
            RequestPool::Token(token) => {
                let buffer = buffers.find(*token)?;
                self.execution.set_input_from_memory(position, &buffer.memory, (0, 0))
            }
            RequestPool::Memory(pool) if by == By::Memory => {
                let memory = self.memory(device, argument, pool)?;
                let set = self.execution.set_input_from_memory(position, &memory, (offset, length));
                self.keep(argument, memory);
                set
            }
            RequestPool::Memory(pool) => {
                let mut bytes = vec![0; length];
                pool.read(argument.location.offset.into(), &mut bytes)?;
                self.inputs.push(bytes);
                let bytes = self.inputs.last().map_or(&[][..], Vec::as_slice);
                self.execution.set_input(position, Some(bytes))
            }
        }
    }

    fn output(
        &mut self,
        device: &DeviceHandle,
        buffers: &Buffers,
        request: &Request,
        position: usize,
        argument: &RequestArgument,
        by: By,
    ) -> Result<()> {
        let (offset, length) = range(argument);
        match pool_of(request, argument)? {
            RequestPool::Token(token) => {
                let buffer = buffers.find(*token)?;
                self.execution.set_output_from_memory(position, &buffer.memory, (0, 0))
            }
            RequestPool::Memory(pool) if by == By::Memory => {
                let memory = self.memory(device, argument, pool)?;
                let set =
                    self.execution.set_output_from_memory(position, &memory, (offset, length));
                self.keep(argument, memory);
                set
            }
            RequestPool::Memory(pool) => {
                let at = argument.location.offset.into();
                let mut bytes = vec![0; length];
                // What nobody writes has to stay as it is.
                pool.read(at, &mut bytes)?;
                let set = self.execution.set_output(position, &mut bytes);
                // The vector moves; its bytes stay where they are.
                self.outputs.push((bytes, Pool::clone(pool), at));
                set
            }
        }
    }

    /// The memory of an argument's pool, made by the first argument that needs it.
    fn memory(
        &mut self,
        device: &DeviceHandle,
        argument: &RequestArgument,
        pool: &Pool,
    ) -> Result<Memory> {
        let kept = self.memories.get_mut(argument.location.pool_index as usize);
        if let Some(memory) = kept.and_then(Option::take) {
            return Ok(memory);
        }
        let fd = pool.fd().ok_or_else(|| Error::bad_data("a pool without a descriptor"))?;
        let size = usize::try_from(pool.len()).map_err(|_| Error::bad_data("a pool that long"))?;
        device.memory(fd.as_fd(), size)
    }

    fn keep(&mut self, argument: &RequestArgument, memory: Memory) {
        if let Some(kept) = self.memories.get_mut(argument.location.pool_index as usize) {
            *kept = Some(memory);
        }
    }

    /// The result of an execution that has ended so, with its outputs where the request wants them; shapes
    /// and times have to be asked for.
    pub(super) fn result(&self, ended: Result<()>) -> ExecutionResult {
        for (bytes, pool, offset) in &self.outputs {
            if let Err(error) = pool.write(*offset, bytes) {
                tracing::warn!(%error, "an output is lost");
                return ExecutionResult::of(ErrorStatus::GeneralFailure);
            }
        }
        let code = ended.err().map_or(ResultCode::NoError, |error| error.code);
        ExecutionResult::of(code.into())
    }

    /// The shapes of so many outputs.
    pub(super) fn shapes(&self, outputs: usize) -> Result<Vec<OutputShape>> {
        let shape = |position| {
            let (dimensions, is_sufficient) = self.execution.shape(position)?;
            Ok(OutputShape { dimensions: dimensions.into_iter().collect(), is_sufficient })
        };
        (0..outputs).map(shape).collect()
    }

    /// The times under two codes.
    pub(super) fn timing(&self, device: i32, driver: i32) -> Result<Timing> {
        let micros = |nanos| if nanos == u64::MAX { nanos } else { nanos / 1000 };
        Ok(Timing {
            time_on_device_us: micros(self.execution.duration(device)?),
            time_in_driver_us: micros(self.execution.duration(driver)?),
        })
    }
}

fn range(argument: &RequestArgument) -> (usize, usize) {
    (argument.location.offset as usize, argument.location.length as usize)
}

fn pool_of<'a>(request: &'a Request, argument: &RequestArgument) -> Result<&'a RequestPool> {
    let pool = request.pools.get(argument.location.pool_index as usize);
    pool.ok_or_else(|| Error::bad_data("an argument in no pool"))
}

/// Nanoseconds until then, one at least; `None` for no end.
pub(super) fn nanos_left(deadline: Option<TimePoint>) -> Option<u64> {
    let deadline = deadline.filter(|at| at.nanos != u64::MAX)?;
    Some(nanos(deadline.since(TimePoint::now())).max(1))
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What is left of an execution behind fences.
pub(super) struct Started {
    pub(super) event: Event,
    pub(super) fence: Option<Fence>,
    pub(super) measured: bool,
    /// One asker at a time.
    pub(super) prepared: Mutex<Prepared>,
}

impl FencedInfo for Started {
    fn execution_info(&self) -> std::result::Result<ExecutionInfo, Failure> {
        if self.fence.as_ref().is_some_and(|fence| fence.state() == FenceState::Pending) {
            return Err(Failure::general("the execution has not ended"));
        }
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let status = prepared.result(self.event.wait()).status;
        let times = |device, driver| match self.measured && status == ErrorStatus::None {
            true => prepared.timing(device, driver).map_err(|error| failure(&error)),
            false => Ok(Timing::UNAVAILABLE),
        };
        Ok(ExecutionInfo { status, timing_launched: times(0, 1)?, timing_fenced: times(2, 3)? })
    }
}

/// The same as the HAL says it.
pub(super) fn failure(error: &Error) -> Failure {
    Failure::new(error.code.into(), error.to_string())
}
