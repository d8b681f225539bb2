//! Calls about executions that their client does not wait for.
//!
//! The reply to a launch is sent before the execution starts: so its end is never told before.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use burst_hal::{Fence, Request, RequestArgument, RequestPool};
use burst_launch::{CheckedFence, Completion};
use burst_wire::control::{Answer, FENCES_MAX, FencedRequest, SynchronousRequest};

use super::Session;
use super::executions::{open_request, options};
use super::replies::{CallOutput, Progress};
use crate::ServerError;
use crate::admission::{Charge, Limit};
use crate::launches::{Fences, NewLaunch};

/// Descriptors of an execution's own fence: both ends.
const OWN_FENCE: u64 = 2;
/// What the service keeps of each execution beside its request.
const KEPT_BYTES: usize = 4096;
/// Numbers that the service gives to executions lie below, so that a client has the others for its own.
const OWN_NUMBERS: u32 = 1 << 31;

/// Starts an execution whose result the client is told, and replies to call `id`.
pub(super) fn asynchronously(
    session: &Session,
    id: u64,
    number: u32,
    request: &SynchronousRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Progress, ServerError> {
    let entry = session.table().model(request.model)?;
    let place = session.link.pending_execution()?;
    let call = open_request(session, request, &mut descriptors.into_iter())?;
    entry.check(&call)?;
    let kept = kept(session, &call, 0)?;
    let launch = NewLaunch {
        number,
        entry,
        request: call,
        options: options(request),
        arrived,
        fenced: None,
        place,
        kept,
    };
    launch_and_reply(session, id, launch, Answer::Done.into())
}

/// Starts an execution that waits for fences, and replies to call `id` with its own.
pub(super) fn fenced(
    session: &Session,
    id: u64,
    fenced: &FencedRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Progress, ServerError> {
    let FencedRequest { request, fences, duration } = fenced;
    let (fences, most) = (u64::from(*fences), u64::from(FENCES_MAX));
    session.host.metrics.limits.within(Limit::Fences, fences, most)?;
    let entry = session.table().model(request.model)?;
    let place = session.link.pending_execution()?;
    let mut descriptors = descriptors.into_iter();
    let call = open_request(session, request, &mut descriptors)?;
    entry.check_fenced(&call)?;
    let kept = kept(session, &call, fences + OWN_FENCE)?;
    let wait_for = CheckedFence::check_all(descriptors.map(Fence::from).collect())?;
    let (completion, fence) = Completion::new(request.measure_timing)?;
    let descriptor = fence
        .as_fd()
        .try_clone_to_owned()
        .map_err(|_| ServerError::System { call: "dup", errno: rustix::io::Errno::MFILE })?;
    let number = free_number(session);
    let fences = Fences { wait_for, duration: duration.map(Duration::from_nanos), completion };
    let launch = NewLaunch {
        number,
        entry,
        request: call,
        options: options(request),
        arrived,
        fenced: Some(fences),
        place,
        kept,
    };
    let answer = Answer::Fenced { execution: number };
    launch_and_reply(session, id, launch, CallOutput { answer, descriptor: Some(descriptor) })
}

fn launch_and_reply(
    session: &Session,
    id: u64,
    launch: NewLaunch,
    output: CallOutput,
) -> Result<Progress, ServerError> {
    let number = launch.number;
    let launched = session.launches.enter(launch)?;
    if let Err(gone) = session.replies.send(id, Ok(output)) {
        session.launches.withdraw(number);
        return Err(gone.into());
    }
    launched.start();
    Ok(Progress::ReplyFollows)
}

/// A number for a fenced execution.
fn free_number(session: &Session) -> u32 {
    loop {
        let number = session.table().next_number() % OWN_NUMBERS;
        if session.launches.is_free(number) {
            return number;
        }
    }
}

/// Charges what an execution keeps until its end: so many descriptors, and the request.
fn kept(session: &Session, request: &Request, descriptors: u64) -> Result<Charge, ServerError> {
    let arguments = request.inputs.iter().chain(&request.outputs);
    let dimensions: usize = arguments.map(|argument| argument.dimensions.len()).sum();
    let bytes = KEPT_BYTES
        + (request.inputs.len() + request.outputs.len()) * size_of::<RequestArgument>()
        + dimensions * size_of::<u32>()
        + request.pools.len() * size_of::<RequestPool>();
    Ok(session.budgets.kept(descriptors, bytes as u64)?)
}

/// Asks an execution to give up; unknown ones are ignored.
pub(super) fn cancel(session: &Session, execution: u32) -> Answer {
    session.launches.cancel(execution);
    Answer::Done
}

/// What came of a fenced execution.
pub(super) fn info(session: &Session, execution: u32) -> Result<Answer, ServerError> {
    let info = session.launches.info(execution)?;
    Ok(Answer::ExecutionInfo((&info).into()))
}

/// Forgets a fenced execution, which goes on.
pub(super) fn release(session: &Session, execution: u32) -> Result<Answer, ServerError> {
    session.launches.release(execution)?;
    Ok(Answer::Done)
}
