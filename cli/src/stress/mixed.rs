//! Deadlines, priorities and cancellation, mixed: executions that end in time, too late, in the middle and never by
//! themselves, at all priorities at once; then one that has to be right.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_client::{BurstOptions, Client, ClientError, Deadline, RemotePreparedModel};
use burst_hal::{
    Caller, CancelWord, ErrorStatus, ExecutionOptions, Failure, Fence, FenceState, FencedExecution,
    FencedOptions, LOOP_TIMEOUT_MAXIMUM, Model, PrepareOptions, Priority, TimePoint,
};

use super::frame::Frame;
use super::subjects::{self, ENDLESS_INPUTS};
use super::using::{connect, execute, is_missed, is_passing, is_short, is_shortage, set_up};
use super::worker::{Pair, Worker, check};

/// Executions with a deadline on one stream.
const WITH_DEADLINES: usize = 20;
/// The most microseconds that a deadline is away of an execution that may or may not be done by then.
const SOON_US: usize = 2000;
/// The most microseconds until an execution is cancelled, or its connection ended, that may be over by then.
const MOMENT_US: usize = 500;
/// The same for one that is not over before.
const MIDWAY_US: usize = 10_000;

/// What a turn of all this comes to.
type Turn = Result<()>;

/// Does one thing after the other until it is told to stop.
pub(super) fn play(worker: &mut Worker) -> Result<()> {
    let endless = subjects::endless()?;
    let turns: [fn(&mut Worker, &Model) -> Turn; 7] = [
        with_deadlines,
        at_all_priorities,
        called_off,
        behind_a_fence,
        ended_midway,
        hung_up_on,
        right_afterwards,
    ];
    while worker.goes_on() {
        for turn in turns {
            match turn(worker, &endless) {
                Ok(()) => {}
                Err(error) if is_passing(&error) => worker.pause(&error)?,
                Err(error) => return Err(error),
            }
            worker.step()?;
        }
    }
    Ok(())
}

fn by_chance(worker: &mut Worker, most_us: usize) -> Duration {
    Duration::from_micros(worker.random.below(most_us) as u64)
}

/// A prepared model of a device by chance.
fn prepared(
    worker: &mut Worker,
    client: &Client,
    priority: Priority,
) -> Result<(Pair, Arc<RemotePreparedModel>)> {
    let pair = worker.pair(client)?;
    let options = PrepareOptions { priority, ..PrepareOptions::default() };
    let device = client.device(&pair.device)?;
    let model = device.prepare(&worker.subjects[pair.subject].model, &options)?;
    Ok((pair, model))
}

/// A frame with an input of the pair's model, and the output that is right.
fn frame(worker: &mut Worker, pair: &Pair) -> Result<(Frame, Vec<u8>)> {
    let (input, right) = worker.case(pair);
    Ok((Frame::new(&worker.subjects[pair.subject].model, &[&input])?, right))
}

/// A shortage of the service as an error that passes.
fn unless_short(status: ErrorStatus) -> Result<ErrorStatus> {
    if is_short(status) { Err(ClientError::Execution { status }.into()) } else { Ok(status) }
}

/// What could not be started, with its status.
fn not_started(failure: &Failure) -> anyhow::Error {
    match unless_short(failure.status) {
        Err(passing) => passing,
        Ok(_) => anyhow::anyhow!("an execution was not started: {failure}"),
    }
}

/// Deadlines that are kept or missed, as it comes.
fn with_deadlines(worker: &mut Worker, _: &Model) -> Turn {
    let Some((_client, pair, mut stream)) = set_up(worker)? else { return Ok(()) };
    for _ in 0..WITH_DEADLINES {
        let (input, right) = worker.case(&pair);
        stream.input(0).copy_from_slice(&input);
        let time = by_chance(worker, SOON_US);
        match stream.run(Deadline::after(time)).map(drop) {
            Ok(()) => {
                check(stream.output(0)?, &right)?;
                worker.happened("deadlines_kept");
                worker.answered(&pair)?;
            }
            Err(ClientError::Timeout) => {
                worker.happened("deadlines_missed");
                // The stream is of no more use once an answer may still come to memory that is written.
                break;
            }
            Err(error) if is_shortage(&error) => worker.pause(&error)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Executions at every priority are under way at once, and each is right.
fn at_all_priorities(worker: &mut Worker, _: &Model) -> Turn {
    let Some(client) = connect(worker)? else { return Ok(()) };
    let mut under_way = Vec::new();
    for (priority, name) in [
        (Priority::Low, "priority_low"),
        (Priority::Medium, "priority_medium"),
        (Priority::High, "priority_high"),
    ] {
        let (pair, model) = prepared(worker, &client, priority)?;
        for _ in 0..2 {
            let (frame, right) = frame(worker, &pair)?;
            let execution = model
                .start(frame.request().clone(), &ExecutionOptions::default())
                .map_err(|failure| not_started(&failure))?;
            under_way.push((pair.clone(), name, frame, right, execution));
        }
    }
    for (pair, name, frame, right, execution) in under_way {
        match unless_short(execution.wait().status)? {
            ErrorStatus::None => check(&frame.output()?, &right)?,
            status => bail!("an execution with {name} ended with {}", status.name()),
        }
        worker.happened(name);
        worker.answered(&pair)?;
    }
    Ok(())
}

/// Executions that are cancelled or dropped at any time: what comes is right, or says that it was called off.
fn called_off(worker: &mut Worker, _: &Model) -> Turn {
    let Some(client) = connect(worker)? else { return Ok(()) };
    let (pair, model) = prepared(worker, &client, Priority::Medium)?;
    let (frame, right) = frame(worker, &pair)?;
    let start = || {
        let request = frame.request().clone();
        model.start(request, &ExecutionOptions::default()).map_err(|failure| not_started(&failure))
    };
    let execution = start()?;
    std::thread::sleep(by_chance(worker, MOMENT_US));
    execution.cancel();
    match unless_short(execution.wait().status)? {
        ErrorStatus::None => {
            check(&frame.output()?, &right)?;
            worker.happened("cancelled_too_late");
        }
        ErrorStatus::GeneralFailure => worker.happened("cancelled"),
        status => bail!("an execution that was cancelled ended with {}", status.name()),
    }
    drop(start()?);
    worker.happened("dropped");
    Ok(())
}

/// A fence that nobody signals, and what has to live for that.
fn never() -> Result<(Fence, impl Drop)> {
    let (read, write) = std::io::pipe().context("no pipe for a fence")?;
    Ok((Fence::from(OwnedFd::from(read)), OwnedFd::from(write)))
}

/// Executions behind a fence that nobody signals: cancelled, and with a deadline. The one behind the first fails
/// with it.
fn behind_a_fence(worker: &mut Worker, _: &Model) -> Turn {
    let Some(client) = connect(worker)? else { return Ok(()) };
    let (pair, model) = prepared(worker, &client, Priority::Medium)?;
    let frames = [frame(worker, &pair)?.0, frame(worker, &pair)?.0, frame(worker, &pair)?.0];
    let (fence, signal) = never()?;
    let word = CancelWord::default();
    let launch = |frame: &Frame, fence: &Fence, options: &FencedOptions, caller: &Caller| {
        model.start_fenced(frame.request().clone(), std::slice::from_ref(fence), options, caller)
    };
    let options = FencedOptions::default();
    let first = launch(&frames[0], &fence, &options, &Caller::new(&word))?;
    let behind = first.fence.clone().context("what waits for a fence has none of its own")?;
    let second = launch(&frames[1], &behind, &options, &Caller::default())?;
    let soon = TimePoint::after(by_chance(worker, SOON_US));
    let execution = ExecutionOptions { deadline: Some(soon), ..ExecutionOptions::default() };
    let late =
        launch(&frames[2], &fence, &FencedOptions { execution, ..options }, &Caller::default());
    std::thread::sleep(by_chance(worker, MOMENT_US));
    word.cancel();
    for (one, what) in [(&first, "cancelled"), (&second, "failed_behind_one")] {
        match ended(one)? {
            ErrorStatus::GeneralFailure => worker.happened(what),
            status => bail!("behind a cancelled execution one ended with {}", status.name()),
        }
    }
    match late {
        Ok(late) => match ended(&late)? {
            status if is_missed(status) => worker.happened("missed_at_a_fence"),
            status => bail!("at its deadline, before its fence, one ended with {}", status.name()),
        },
        Err(error) if is_missed(error.status()) => worker.happened("deadlines_missed"),
        Err(error) => return Err(error.into()),
    }
    drop(signal);
    Ok(())
}

/// How a fenced execution ended, whose fence has to fail.
fn ended(execution: &FencedExecution) -> Result<ErrorStatus> {
    if let Some(fence) = &execution.fence
        && fence.wait(None) != FenceState::Failed
    {
        bail!("the fence of an execution that came to nothing is done");
    }
    match execution.info.execution_info() {
        Ok(info) => unless_short(info.status),
        Err(failure) => bail!("nothing is known of an execution that has ended: {failure}"),
    }
}

/// The loop without end, prepared by a device that runs it, by chance; nothing where none does.
fn loop_of(
    worker: &mut Worker,
    client: &Client,
    endless: &Model,
) -> Result<Option<Arc<RemotePreparedModel>>> {
    let mut able = Vec::new();
    for pairs in worker.devices(client)? {
        let device = client.device(&pairs[0].device)?;
        if device.query_operations(endless)?.into_iter().all(|runs| runs) {
            able.push(device);
        }
    }
    if able.is_empty() {
        return Ok(None);
    }
    let device = &able[worker.random.below(able.len())];
    Ok(Some(device.prepare(endless, &PrepareOptions::default())?))
}

fn endless_frame(endless: &Model) -> Result<Frame> {
    Frame::new(endless, &[&ENDLESS_INPUTS[0], &ENDLESS_INPUTS[1]])
}

/// An execution that never ends by itself: its deadline ends it, on each way, and so does whoever cancels it.
fn ended_midway(worker: &mut Worker, endless: &Model) -> Turn {
    let Some(client) = connect(worker)? else { return Ok(()) };
    let Some(model) = loop_of(worker, &client, endless)? else { return Ok(()) };
    let frame = endless_frame(endless)?;
    let forever = ExecutionOptions {
        loop_timeout: Some(LOOP_TIMEOUT_MAXIMUM),
        ..ExecutionOptions::default()
    };
    let in_time = |worker: &mut Worker| {
        let at = TimePoint::after(by_chance(worker, MIDWAY_US));
        ExecutionOptions { deadline: Some(at), ..forever }
    };
    let options = in_time(worker);
    let started = model.start(frame.request().clone(), &options);
    let status = started.map_err(|failure| not_started(&failure))?.wait().status;
    midway(worker, "asynchronous", status)?;
    let options = in_time(worker);
    let executed = model.execute(frame.request(), &options, Worker::long())?;
    midway(worker, "synchronous", executed.result.status)?;
    let mut burst = model.configure_burst(&BurstOptions::default())?;
    if burst.takes_deadlines() {
        let options = in_time(worker);
        let status = burst.execute(frame.request(), &options, Worker::long())?.status;
        midway(worker, "burst", status)?;
    }
    let started = model.start(frame.request().clone(), &forever);
    let execution = started.map_err(|failure| not_started(&failure))?;
    std::thread::sleep(by_chance(worker, MIDWAY_US));
    execution.cancel();
    match unless_short(execution.wait().status)? {
        ErrorStatus::GeneralFailure => worker.happened("loops_cancelled"),
        status => bail!("a loop that was cancelled ended with {}", status.name()),
    }
    Ok(())
}

/// What an execution came to that only its deadline ends.
fn midway(worker: &mut Worker, route: &str, status: ErrorStatus) -> Result<()> {
    let status = unless_short(status)?;
    if !is_missed(status) {
        bail!("{route}: a loop without end ended with {} at its deadline", status.name());
    }
    worker.happened("deadlines_that_ended_loops");
    worker.step()
}

/// Ends connections while executions are under way: one that may be over by then, and one that is not.
fn hung_up_on(worker: &mut Worker, endless: &Model) -> Turn {
    let Some((client, pair, mut stream)) = set_up(worker)? else { return Ok(()) };
    let device = client.device(&pair.device)?;
    let pause = by_chance(worker, MOMENT_US);
    let ended = hang_up_after(pause, &device, move || stream.run(Worker::long()).map(drop))?;
    match ended {
        Ok(()) => worker.happened("hung_up_too_late"),
        Err(error) if error.is_loss() => worker.happened("hung_up"),
        // A service that saw the end first gives the execution up, and may still say so in the burst's queue.
        Err(ClientError::Execution { status: ErrorStatus::GeneralFailure }) => {
            worker.happened("hung_up");
        }
        Err(error) => return Err(error.into()),
    }
    let Some(client) = connect(worker)? else { return Ok(()) };
    let Some(model) = loop_of(worker, &client, endless)? else { return Ok(()) };
    let device = client.device(&worker.pair(&client)?.device)?;
    let frame = endless_frame(endless)?;
    let options = ExecutionOptions {
        loop_timeout: Some(LOOP_TIMEOUT_MAXIMUM),
        ..ExecutionOptions::default()
    };
    let pause = by_chance(worker, MIDWAY_US);
    let run = || Ok(model.execute(frame.request(), &options, Worker::long())?.result.status);
    match hang_up_after(pause, &device, run)? {
        Err(error) if error.is_loss() => worker.happened("hung_up_midway"),
        Err(error) => return Err(error.into()),
        Ok(status) => match unless_short(status)? {
            ErrorStatus::GeneralFailure => worker.happened("hung_up_midway"),
            status => bail!("a loop whose connection ended came to {}", status.name()),
        },
    }
    Ok(())
}

/// What waiting for an answer comes to, whose connection ends after this time.
fn hang_up_after<T: Send>(
    pause: Duration,
    device: &burst_client::RemoteDevice,
    run: impl FnOnce() -> Result<T, ClientError> + Send,
) -> Result<Result<T, ClientError>> {
    let ended = std::thread::scope(|scope| {
        let waits = scope.spawn(run);
        std::thread::sleep(pause);
        device.hang_up();
        waits.join()
    });
    ended.map_err(|_| anyhow::anyhow!("a thread panicked that waited for an answer"))
}

/// After all that the service computes as ever.
fn right_afterwards(worker: &mut Worker, _: &Model) -> Turn {
    let Some((_client, pair, mut stream)) = set_up(worker)? else { return Ok(()) };
    execute(worker, &pair, &mut stream)
}
