//! The client's reference to a model that the service prepared, and executions of it over the
//! control socket.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{
    ErrorStatus, ExecutionOptions, ExecutionPreference, ExecutionResult, Memory, Pool, Request,
    RequestPool,
};
use burst_wire::control::{self, Answer, Call, PoolSource, SynchronousRequest, WireArgument};
use fmq::Wait;

use crate::connection::{LateReply, Link};
use crate::waiting::Patience;
use crate::{ClientError, ShmMemory};

mod asynchronous;
mod fenced;

pub(crate) use asynchronous::ExecutedCallback;
pub use fenced::RemoteFenced;

/// A model that the service prepared. The model object and its bursts share one; the service
/// releases the model when the last of them drops it.
#[derive(Debug)]
pub(crate) struct ModelHandle {
    link: Arc<Link>,
    number: u32,
    longest_packet: usize,
    saves_energy: bool,
}

/// What an execution over the socket gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Status, shapes and timing.
    pub result: ExecutionResult,
    /// Time in the driver, in nanoseconds where the service tells; only where it was asked for.
    pub driver_time: Option<Duration>,
}

impl ModelHandle {
    /// `longest_packet` is how many datums a request for it may take.
    pub(crate) fn new(link: &Arc<Link>, number: u32, longest_packet: usize) -> Self {
        ModelHandle { link: Arc::clone(link), number, longest_packet, saves_energy: false }
    }

    /// The same, of a model that was prepared with this preference.
    pub(crate) fn preferring(mut self, preference: ExecutionPreference) -> Self {
        self.saves_energy = preference == ExecutionPreference::LowPower;
        self
    }

    /// How this end of a burst waits that was asked to wait like this: for a model that is to save energy
    /// neither end polls.
    pub(crate) fn waiting(&self, asked: Wait) -> Wait {
        waiting(self.saves_energy, asked)
    }

    pub(crate) fn longest_packet(&self) -> usize {
        self.longest_packet
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Process id of the driver service.
    pub(crate) fn driver_pid(&self) -> u32 {
        self.link.peer.pid
    }

    /// Runs once over the control socket and waits for the result.
    ///
    /// Memories that have a descriptor cross the socket with their first use; others are copied
    /// there and back.
    ///
    /// # Errors
    /// The service is gone, the deadline passed, or the caller called it off. What the execution itself came
    /// to is in the result's status.
    pub(crate) fn execute<'a>(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        patience: impl Into<Patience<'a>>,
    ) -> Result<Executed, ClientError> {
        self.execute_leaving(request, options, patience, &mut None)
    }

    /// The same. Where the deadline passes first, `late` is the reply of the execution that may be under
    /// way yet, with the memories of the request.
    pub(crate) fn execute_leaving<'a>(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        patience: impl Into<Patience<'a>>,
        late: &mut Option<LateReply>,
    ) -> Result<Executed, ClientError> {
        let patience = patience.into();
        let tracer = self.link.tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let (wire, copies) = self.pack(request, options, patience)?;
        let (call, descriptors) = (Call::Execute(wire), copies.descriptors());
        marks.mark(SpanKind::EncodeRequest);
        let replied = self.link.call_leaving(call, &descriptors, patience, late);
        marks.mark(SpanKind::WaitForResult);
        let executed = match replied {
            Ok((Answer::Executed(executed), _)) => executed,
            Ok(_) => return Err(ClientError::UnexpectedAnswer),
            // The request itself was refused: that is the execution's result.
            Err(ClientError::Refused { status, detail }) => {
                tracing::debug!(%status, detail, "execution refused");
                return Ok(Executed::of(status));
            }
            Err(error) => return Err(error),
        };
        let finished = copies.finish(request, &executed);
        marks.mark(SpanKind::DecodeResult);
        finished
    }

    /// A request for a message, with copies of memory that has no descriptor.
    fn pack(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        patience: Patience<'_>,
    ) -> Result<(SynchronousRequest, Copies), ClientError> {
        self.link.check_not_forked()?;
        // Not released while the request is under way, whatever another thread drops meanwhile.
        let buffers = request.pools.iter().filter_map(|pool| match pool {
            RequestPool::Memory(_) => None,
            RequestPool::Token(token) => self.link.find_buffer(*token),
        });
        let _kept: Vec<_> = buffers.collect();
        let mut copies = Copies::default();
        let pools = request
            .pools
            .iter()
            .map(|pool| self.source(pool, &mut copies, patience))
            .collect::<Result<_, _>>()?;
        let wire = SynchronousRequest {
            model: self.number,
            inputs: request.inputs.iter().map(WireArgument::from).collect(),
            outputs: request.outputs.iter().map(WireArgument::from).collect(),
            pools,
            measure_timing: options.measure_timing,
            deadline: options.deadline.map(|at| at.nanos),
            loop_timeout: options.loop_timeout.map(nanos),
        };
        Ok((wire, copies))
    }

    /// How the service finds a pool.
    fn source(
        &self,
        pool: &RequestPool,
        copies: &mut Copies,
        patience: Patience<'_>,
    ) -> Result<PoolSource, ClientError> {
        let memory = match pool {
            RequestPool::Memory(memory) => memory,
            RequestPool::Token(token) => return Ok(PoolSource::Token { token: *token }),
        };
        if let Some(number) = self.link.share_memory(memory, patience)? {
            return Ok(PoolSource::Shared { memory: number });
        }
        self.link.give_back_dropped(patience)?;
        copies.add(memory)
    }
}

impl Executed {
    /// The outcome of an execution that told no more than this.
    pub(crate) fn of(status: ErrorStatus) -> Self {
        Executed { result: ExecutionResult::of(status), driver_time: None }
    }
}

/// For a message; what is longer than 500 years is as long as can be.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn executed_from(executed: &control::Executed) -> Executed {
    let result = executed.to_result();
    let measured = Some(result.timing.time_in_driver_us).filter(|us| *us != u64::MAX);
    let nanos = executed.in_driver_ns.filter(|_| measured.is_some());
    Executed {
        driver_time: nanos.map(Duration::from_nanos).or(measured.map(Duration::from_micros)),
        result,
    }
}

/// Shared copies for one request of memory that has no descriptor.
#[derive(Debug, Default)]
struct Copies(Vec<(Pool, ShmMemory)>);

impl Copies {
    fn add(&mut self, memory: &Pool) -> Result<PoolSource, ClientError> {
        self.0.push((Pool::clone(memory), ShmMemory::copy_of(memory)?));
        Ok(PoolSource::Descriptor { length: memory.len() })
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().filter_map(|(_, copy)| copy.fd()).collect()
    }

    /// What came of the request, its outputs where the caller wants them.
    fn finish(
        &self,
        request: &Request,
        executed: &control::Executed,
    ) -> Result<Executed, ClientError> {
        self.copy_back(request)?;
        let mut executed = executed_from(executed);
        if let Err(error) = burst_wire::check_shapes(&executed.result, request.outputs.len()) {
            tracing::warn!(%error, "malformed result");
            executed = Executed::of(ErrorStatus::GeneralFailure);
        }
        Ok(executed)
    }

    /// Outputs back to where the caller wants them.
    fn copy_back(&self, request: &Request) -> Result<(), ClientError> {
        let mut buffer = Vec::new();
        for output in request.outputs.iter().filter(|output| !output.has_no_value) {
            let pool = request.pools.get(output.location.pool_index as usize);
            let Some(RequestPool::Memory(memory)) = pool else { continue };
            let Some((_, copy)) = self.0.iter().find(|(one, _)| Arc::ptr_eq(one, memory)) else {
                continue;
            };
            // Offset and length 0 mean the whole pool; the service checked that others lie in it.
            let whole = output.location.offset == 0 && output.location.length == 0;
            let bytes = if whole { memory.len() } else { u64::from(output.location.length) };
            let length = usize::try_from(bytes).map_err(|_| ClientError::PoolTooLong { bytes })?;
            let offset = u64::from(output.location.offset);
            if offset + bytes > memory.len() {
                continue; // refused by the service; nothing was written
            }
            buffer.resize(length, 0);
            copy.read(offset, &mut buffer)?;
            memory.write(offset, &buffer)?;
        }
        Ok(())
    }
}

impl Drop for ModelHandle {
    fn drop(&mut self) {
        self.link.release_remote(Call::ReleaseModel { model: self.number }, "a model", self.number);
    }
}

fn waiting(saves_energy: bool, asked: Wait) -> Wait {
    if saves_energy { Wait::Sleep } else { asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_a_model_of_low_power_this_end_sleeps() {
        for asked in [Wait::Spin, Wait::default(), Wait::Sleep] {
            assert_eq!(waiting(false, asked), asked);
            assert_eq!(waiting(true, asked), Wait::Sleep);
        }
    }
}
