//! One execution over the socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::trace::{Marks, SpanKind, when_on};
use burst_hal::{
    ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Request, RequestArgument, TimePoint,
};
use burst_wire::control::{Answer, Executed, SynchronousRequest};

use super::Session;
use super::buffers::kept_for;
use super::memories::open_source;
use crate::ServerError;
use crate::execution::finish;
use crate::panics::catch_panic;
use crate::prepared::{PreparedEntry, left_until};
use crate::scheduler::{NoToken, Work};

/// Executes a request that arrived at `arrived`.
pub(super) fn execute(
    session: &Session,
    request: &SynchronousRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Answer, ServerError> {
    let tracer = when_on(&session.link.tracer());
    let mut marks = Marks::begin(tracer.as_deref());
    let entry = session.table().model(request.model)?;
    let executed = execute_on(session, &entry, (request, descriptors), arrived, &mut marks);
    counted(&entry, arrived, executed.as_ref().map(|(result, _)| result.status));
    let (result, in_driver) = executed?;
    let executed = Executed::new(&result, in_driver);
    marks.mark(SpanKind::EncodeResult);
    marks.whole(SpanKind::Request, 0);
    Ok(Answer::Executed(executed))
}

/// Counts a request over the socket for this model that has ended, or was refused.
pub(super) fn counted(
    entry: &PreparedEntry,
    arrived: Instant,
    ended: Result<ErrorStatus, &ServerError>,
) {
    // Reading the clock costs nothing beside the system call that each request needs anyway.
    let nanos = u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
    entry.meter.socket().count(ended.unwrap_or_else(ServerError::status), Some(nanos));
}

/// The result of a request for this model, and its time in the driver where that was asked for.
fn execute_on(
    session: &Session,
    entry: &PreparedEntry,
    (request, descriptors): (&SynchronousRequest, Vec<OwnedFd>),
    arrived: Instant,
    marks: &mut Marks<'_>,
) -> Result<(ExecutionResult, Option<u64>), ServerError> {
    // Before the tokens are looked up: what is found then is this, whatever is released meanwhile.
    let _kept = kept_for(session, entry, &request.pools.0)?;
    let call = open_request(session, request, &mut descriptors.into_iter())?;
    entry.check(&call)?;
    let options = options(request);
    let left = left_until(options.deadline);
    if let Some(status) = entry.refusal(left) {
        return Err(Failure::from(status).into());
    }
    marks.mark(SpanKind::DecodeRequest);
    let run = session.run(Work::Execution, entry.priority);
    let entered = run.enter();
    run.begin(options.deadline).map_err(|none| match none {
        NoToken::MissedDeadline => Failure::from(entry.missed(left)).into(),
        NoToken::CalledOff => ServerError::from(none),
    })?;
    let caller = entry.paying(session.link.caller().with_turn(Arc::clone(&run) as _));
    let computing = entry.meter.computing(&run);
    marks.skip(); // waiting for the turn has its own span
    let result = catch_panic(|| entry.model.execute_for(&call, &options, &caller));
    drop(computing);
    drop(entered);
    marks.mark(SpanKind::Device);
    let mut result = result?;
    result.status = entry.judge(result.status, left);
    let outputs = call.outputs.len();
    let in_driver = finish(&mut result, outputs, request.measure_timing, arrived);
    Ok((result, in_driver))
}

/// The request that a message describes, with its memories.
pub(super) fn open_request(
    session: &Session,
    request: &SynchronousRequest,
    descriptors: &mut impl Iterator<Item = OwnedFd>,
) -> Result<Request, ServerError> {
    let pools = request.pools.0.iter();
    Ok(Request {
        inputs: request.inputs.0.iter().map(RequestArgument::from).collect(),
        outputs: request.outputs.0.iter().map(RequestArgument::from).collect(),
        pools: pools
            .map(|source| open_source(session, *source, descriptors))
            .collect::<Result<_, _>>()?,
    })
}

/// How it is to be executed.
pub(super) fn options(request: &SynchronousRequest) -> ExecutionOptions {
    ExecutionOptions {
        measure_timing: request.measure_timing,
        deadline: request.deadline.map(|nanos| TimePoint { nanos }),
        loop_timeout: request.loop_timeout.map(Duration::from_nanos),
    }
}
