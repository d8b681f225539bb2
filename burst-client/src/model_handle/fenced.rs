//! Executions that wait for fences and give one.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{
    Caller, CancelHook, ExecutionInfo, Failure, Fence, FencedInfo, FencedOptions, Request,
    RequestPool,
};
use burst_wire::control::{Answer, Call, FENCES_MAX, FencedRequest};
use fmq::Deadline;

use super::{ModelHandle, nanos};
use crate::ClientError;

/// A fenced execution in the service, which keeps what came of it until this is dropped.
#[derive(Debug)]
pub struct RemoteFenced {
    model: Arc<ModelHandle>,
    execution: u32,
    /// Its memories, for as long as somebody may still ask.
    _request: Request,
    /// Cancels it.
    _hook: CancelHook,
    /// Once it has ended.
    info: OnceLock<ExecutionInfo>,
}

impl ModelHandle {
    /// Starts an execution behind fences: its fence, where it has not ended well already, and what says how it ended.
    ///
    /// # Errors
    /// The service refuses it, or is gone. [`ClientError::TooManyFences`];
    /// [`ClientError::OutputNotShared`] for an output that the service cannot write: nobody would copy it
    /// back before the fence is done.
    pub(crate) fn start_fenced(
        self: &Arc<Self>,
        request: Request,
        wait_for: &[Fence],
        options: &FencedOptions,
        caller: &Caller,
        until: Deadline,
    ) -> Result<(Option<Fence>, Arc<RemoteFenced>), ClientError> {
        let limit = FENCES_MAX;
        let fences = u32::try_from(wait_for.len()).ok().filter(|fences| *fences <= limit);
        let fences = fences.ok_or(ClientError::TooManyFences { count: wait_for.len(), limit })?;
        check_outputs(&request)?;
        let tracer = self.link.tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let (wire, copies) = self.pack(&request, &options.execution, until.into())?;
        let mut descriptors = copies.descriptors();
        descriptors.extend(wait_for.iter().map(Fence::as_fd));
        let call = Call::ExecuteFenced(FencedRequest {
            request: wire,
            fences,
            duration: options.duration.map(nanos),
        });
        marks.mark(SpanKind::EncodeRequest);
        let (execution, fence) = self.launch_fenced(call, &descriptors, until)?;
        marks.mark(SpanKind::Publish);
        let link = Arc::downgrade(&self.link);
        let hook = caller.cancel_word().when_cancelled(move || {
            if let Some(link) = link.upgrade() {
                link.cancel_execution(execution);
            }
        });
        let info = RemoteFenced {
            model: Arc::clone(self),
            execution,
            _request: request,
            _hook: hook,
            info: OnceLock::new(),
        };
        Ok((fence, Arc::new(info)))
    }

    fn launch_fenced(
        &self,
        call: Call,
        descriptors: &[BorrowedFd<'_>],
        until: Deadline,
    ) -> Result<(u32, Option<Fence>), ClientError> {
        match self.link.launch(call, descriptors, until, &mut None)? {
            (Answer::Fenced { execution }, fences) => {
                Ok((execution, fences.into_iter().next().map(Fence::from)))
            }
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }
}

/// Outputs have to lie where the service writes them.
fn check_outputs(request: &Request) -> Result<(), ClientError> {
    for (output, argument) in request.outputs.iter().enumerate() {
        let pool = request.pools.get(argument.location.pool_index as usize);
        if !argument.has_no_value
            && let Some(RequestPool::Memory(memory)) = pool
            && memory.fd().is_none()
        {
            return Err(ClientError::OutputNotShared { output });
        }
    }
    Ok(())
}

impl RemoteFenced {
    /// How it ended, and how long it took, with no answer later than this.
    ///
    /// # Errors
    /// The service's before it has ended; the service is gone; [`ClientError::Timeout`].
    pub fn execution_info_until(&self, deadline: Deadline) -> Result<ExecutionInfo, ClientError> {
        let link = self.model.link();
        link.check_not_forked()?;
        if let Some(info) = self.info.get() {
            return Ok(*info);
        }
        let call = Call::ExecutionInfo { execution: self.execution };
        match link.quick_call(call, &[], deadline)? {
            (Answer::ExecutionInfo(info), _) => Ok(*self.info.get_or_init(|| (&info).into())),
            _ => Err(ClientError::UnexpectedAnswer),
        }
    }
}

impl FencedInfo for RemoteFenced {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        Ok(self.execution_info_until(Deadline::never())?)
    }
}

impl Drop for RemoteFenced {
    fn drop(&mut self) {
        let (link, execution) = (self.model.link(), self.execution);
        link.release_remote(Call::ReleaseExecution { execution }, "a fenced execution", execution);
    }
}
