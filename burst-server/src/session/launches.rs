//! Calls about executions that their client does not wait for.
//!
//! The reply to a launch is sent before the execution starts: so its end is never told before.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::{Fence, Request, RequestArgument, RequestPool};
use burst_launch::{CheckedFence, Completion};
use burst_wire::control::{Answer, FencedRequest, SynchronousRequest};

use super::Session;
use super::buffers::kept_for;
use super::executions::{counted, open_request, options};
use super::replies::{CallOutput, Progress};
use crate::ServerError;
use crate::admission::Charge;
use crate::launches::{Fences, Launched, NewLaunch};
use crate::prepared::PreparedEntry;

/// Descriptors of an execution's own fence: both ends.
const OWN_FENCE: u64 = 2;
/// What the service keeps of each execution beside its request.
const KEPT_BYTES: usize = 4096;
/// What it keeps of each descriptor: a fence is known to the execution and to the thread that watches fences.
const KEPT_BYTES_PER_DESCRIPTOR: usize = 256;
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
    let taken = take_in(session, &entry, number, (request, descriptors), arrived);
    counted_unless_taken(&entry, arrived, &taken);
    start_and_reply(session, id, (number, taken?), Answer::Done.into())
}

/// What was refused before it was launched is counted here; what was launched, at its end.
fn counted_unless_taken<T>(
    entry: &PreparedEntry,
    arrived: Instant,
    taken: &Result<T, ServerError>,
) {
    if let Err(error) = taken {
        counted(entry, arrived, Err(error));
    }
}

/// An asynchronous execution, which is known by now and has not started.
fn take_in(
    session: &Session,
    entry: &Arc<PreparedEntry>,
    number: u32,
    (request, descriptors): (&SynchronousRequest, Vec<OwnedFd>),
    arrived: Instant,
) -> Result<Arc<Launched>, ServerError> {
    let place = session.link.pending_execution()?;
    // Before the tokens are looked up: what is found then is this, whatever is released meanwhile.
    let buffers = kept_for(session, entry, &request.pools.0)?;
    let call = open_request(session, request, &mut descriptors.into_iter())?;
    entry.check(&call)?;
    let kept = kept(session, &call, 0)?;
    let launch = NewLaunch {
        number,
        entry: Arc::clone(entry),
        request: call,
        buffers,
        options: options(request),
        arrived,
        fenced: None,
        place,
        kept,
    };
    session.launches.enter(launch)
}

/// Starts an execution that waits for fences, and replies to call `id` with its own.
pub(super) fn fenced(
    session: &Session,
    id: u64,
    fenced: &FencedRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Progress, ServerError> {
    let entry = session.table().model(fenced.request.model)?;
    let taken = take_in_fenced(session, &entry, (fenced, descriptors), arrived);
    counted_unless_taken(&entry, arrived, &taken);
    let (number, launched, descriptor) = taken?;
    let answer = Answer::Fenced { execution: number };
    let output = CallOutput { answer, descriptor: Some(descriptor) };
    start_and_reply(session, id, (number, launched), output)
}

/// A fenced execution, which is known by now and has not started: its number, itself and its fence.
fn take_in_fenced(
    session: &Session,
    entry: &Arc<PreparedEntry>,
    (fenced, descriptors): (&FencedRequest, Vec<OwnedFd>),
    arrived: Instant,
) -> Result<(u32, Arc<Launched>, OwnedFd), ServerError> {
    let FencedRequest { request, fences, duration } = fenced;
    let fences = u64::from(*fences);
    let place = session.link.pending_execution()?;
    let buffers = kept_for(session, entry, &request.pools.0)?;
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
        entry: Arc::clone(entry),
        request: call,
        buffers,
        options: options(request),
        arrived,
        fenced: Some(fences),
        place,
        kept,
    };
    Ok((number, session.launches.enter(launch)?, descriptor))
}

fn start_and_reply(
    session: &Session,
    id: u64,
    (number, launched): (u32, Arc<Launched>),
    output: CallOutput,
) -> Result<Progress, ServerError> {
    if let Err(lost) = session.replies.send(id, Ok(output)) {
        session.launches.withdraw(number);
        return Ok(Progress::ClientLost(lost));
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
    let of_descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    let bytes = KEPT_BYTES
        + of_descriptors.saturating_mul(KEPT_BYTES_PER_DESCRIPTOR)
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
