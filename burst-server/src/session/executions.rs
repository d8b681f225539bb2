//! One execution over the socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_hal::{ErrorStatus, ExecutionOptions, Failure, Request, RequestArgument, TimePoint};
use burst_wire::control::{Answer, Executed, SynchronousRequest};

use super::Session;
use super::memories::open_source;
use crate::ServerError;
use crate::execution::finish;
use crate::panics::catch_panic;
use crate::scheduler::Work;

/// Executes a request that arrived at `arrived`.
pub(super) fn execute(
    session: &Session,
    request: &SynchronousRequest,
    descriptors: Vec<OwnedFd>,
    arrived: Instant,
) -> Result<Answer, ServerError> {
    let entry = session.table().model(request.model)?;
    let call = open_request(session, request, &mut descriptors.into_iter())?;
    entry.check(&call)?;
    let options = options(request);
    if options.deadline.is_some_and(TimePoint::has_passed) {
        return Err(Failure::from(ErrorStatus::MissedDeadlineTransient).into());
    }
    let run = session.run(Work::Execution);
    let entered = run.enter();
    run.begin(options.deadline)?;
    let counts = entry.meter.socket();
    counts.executing();
    let caller = session.link.caller().with_turn(Arc::clone(&run) as _);
    let result = catch_panic(|| entry.model.execute_for(&call, &options, &caller));
    drop(entered);
    let mut result = result?;
    let outputs = call.outputs.len();
    let in_driver = finish(&mut result, outputs, request.measure_timing, arrived);
    // Reading the clock costs nothing beside the system call that each request needs anyway.
    let nanos = u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
    counts.count(result.status, Some(nanos));
    Ok(Answer::Executed(Executed::new(&result, in_driver)))
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
